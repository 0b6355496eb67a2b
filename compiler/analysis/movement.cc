// See movement.h.
#include "compiler/analysis/movement.h"

namespace hlojit {

bool moves_by_fixed_map(const Instruction& i) {
  constexpr uint32_t kOther = op_trait::kRuntimeSizes | op_trait::kUpdates;
  if (i.info().op_class != OpClass::kMoves || has_trait(i, kOther) || !i.shape.is_array()) return false;
  Coords result;
  VarSource vars;
  for (int64_t n : i.shape.dims) result.push_back(IndexExpr::var(vars.fresh(), n));
  return operand_coords(i, 0, result).has_value();
}

std::span<Instruction* const> moved_operands(const Instruction& i) {
  if (i.is(Opcode::kConcatenate)) return i.operands();
  return i.operands().first(i.is(Opcode::kPad) || i.is(Opcode::kDynamicUpdateSlice) ? 2 : 1);
}

size_t update_count(const Instruction& i) { return i.shape.is_tuple() ? i.shape.elements.size() : 1; }

bool takes_updated_box(const Instruction& slice, const Instruction& update) {
  const bool dynamic = slice.is(Opcode::kDynamicSlice);
  if (!(dynamic || slice.is(Opcode::kSlice)) || !update.is(Opcode::kDynamicUpdateSlice)) return false;
  const Ints &all = update.shape.dims, &box = update_sizes(update);
  if (slice.operand(0)->shape.dims != all || slice.shape.dims != box) return false;
  // One vector of starts says less.
  if (update.operand_count() != all.size() + 2 || (dynamic && slice.operand_count() != all.size() + 1)) return false;
  for (size_t d = 0; d < all.size(); ++d) {
    if (box[d] == all[d]) continue;
    const Instruction* start = update.operand(d + 2);
    if (dynamic) {
      if (slice.operand(d + 1) != start) return false;
      continue;
    }
    const SliceRange& taken = slice.attrs.slice[d];
    if (!start->is(Opcode::kConstant) || start->literal->as_int(0) != taken.start || taken.stride != 1) return false;
  }
  return true;
}

std::set<DType> moved_types(const Computation& fused) {
  std::set<DType> all, computed;
  for (const auto& i : fused.instructions()) {
    using enum Opcode;
    const OpClass op_class = i->info().op_class;
    bool moves = op_class == OpClass::kMoves || (op_class == OpClass::kSource && !i->is(kIota));
    bool converts = i->is(kBitcastConvert) && i->operand(0)->shape.rank() == i->shape.rank();
    moves |= converts || i->is(kSelect) || i->is(kTuple);
    auto add = [&](const Shape& shape) {
      if (!shape.is_array() || (!is_narrow_float(shape.type) && shape.type != DType::kC64)) return;
      all.insert(shape.type);
      if (!moves) computed.insert(shape.type);
    };
    for (const Shape* leaf : leaves(i->shape)) add(*leaf);
    for (const Instruction* o : i->operands()) add(o->shape);
  }
  for (DType type : computed) all.erase(type);
  return all;
}

bool crosses_borders(const Instruction& reshape) {
  if (!reshape.is(Opcode::kReshape) || reshape.shape.element_count() == 0) return false;
  std::vector<int64_t> borders;
  for (const Ints& dims : {reshape.shape.dims, reshape.operand(0)->shape.dims}) {
    int64_t below = 1;
    for (size_t d = dims.size(); d-- > 0;) borders.push_back(below *= dims[d]);
  }
  std::ranges::sort(borders);
  auto apart = [](int64_t x, int64_t y) { return y % x != 0; };
  return std::ranges::adjacent_find(borders, apart) != borders.end();
}

}  // namespace hlojit

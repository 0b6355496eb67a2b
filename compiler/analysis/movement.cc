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

}  // namespace hlojit

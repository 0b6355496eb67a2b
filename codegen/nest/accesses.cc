// See accesses.h.
#include "codegen/nest/accesses.h"

#include <algorithm>
#include <utility>

#include "codegen/nest/reducer.h"
#include "compiler/analysis/known_index.h"
#include "compiler/ir/narrow.h"
#include "compiler/plan/op_cost.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

// What an element takes, in elementary operations. Floats of a byte and less are taken apart and put together: an op
// on two of them is fifty.
int operations_of(const Instruction& i) {
  constexpr int kDecode = 12, kRoundAndEncode = 28;
  const bool tiny = i.shape.is_array() && is_float(i.shape.type) && dtype_bits(i.shape.type) <= 8;
  if (i.is(Opcode::kParameter)) return tiny ? kDecode : 0;
  const int own = cost_of(i).operations;
  return own + (own > 0 && tiny ? kRoundAndEncode : 0);
}

}  // namespace

bool is_shared_by_rows(const Access& a, int row, int lane) {
  return a.parameter && a.address.coefficient(lane) != 0 && a.address.coefficient(row) == 0;
}

Coords first_of_ones(const Shape& shape, Coords coords) {
  for (size_t d = 0; d < coords.size(); ++d) {
    if (shape.dims[d] == 1) coords[d] = 0;
  }
  return coords;
}

bool AccessWalk::visited(const Instruction* value, const Coords& coords) {
  auto& list = seen_[value];
  if (std::find(list.begin(), list.end(), coords) != list.end()) return true;
  list.push_back(coords);
  return false;
}

void AccessWalk::check_bounds(const Shape& shape, const IndexExpr& address) {
  const Range at = address.range();
  within_buffers_ &= at.lo >= 0 && at.hi < physical_elements(shape);
}

void AccessWalk::write(const Shape& shape, const Coords& coords) {
  IndexExpr address = linear_index(shape, coords);
  check_bounds(shape, address);
  write(shape.type, std::move(address));
  accesses_.back().halves = halves(shape.type);
}

void AccessWalk::read(const Instruction* i, const Coords& coords) {
  if (visited(i, coords)) return;
  if (auto stop = stops_.find(i); stop != stops_.end()) {
    accesses_.push_back({.address = stop->second(coords), .bytes = dtype_bytes(i->shape.type)});
    return;
  }
  const int operations = operations_of(*i);
  operations_ += operations;
  combines_masks_ |= is_elementwise(i->opcode) && i->shape.is_array() && is_pred(i->shape.type) &&
                     i->operand_count() > 0 && is_pred(i->operand(0)->shape.type);
  // Scalars are computed outside of all loops; what is only moved counts a little.
  if (i->shape.is_array() && i->shape.rank() > 0) {
    bool in_bits = in_bits_ && in_bits_->contains(i->shape.type);
    weight_[dtype_bytes(in_bits ? i->shape.type : working_type(i->shape.type))] += operations + 0.5;
  }
  if (i->is(Opcode::kParameter)) {
    IndexExpr address = linear_index(i->shape, coords);
    std::vector<int> used = address.variables();
    Coords looked_up;
    for (int v : used) {
      if (auto symbol = symbols_.find(v); symbol != symbols_.end()) {
        looked_up.insert(looked_up.end(), symbol->second.begin(), symbol->second.end());
      }
    }
    const bool offset = std::ranges::any_of(used, [&](int v) { return symbols_.contains(v); });
    // Where one index says for all of the loops is an offset, as good as any number.
    const bool random = std::ranges::any_of(looked_up, [](const IndexExpr& x) { return !x.variables().empty(); });
    check_bounds(i->shape, address);
    within_buffers_ &= !offset;
    accesses_.push_back({.address = address,
                         .bytes = dtype_bytes(i->shape.type),
                         .halves = halves(i->shape.type),
                         .random = random,
                         .looked_up = std::move(looked_up),
                         .parameter = i});
    return;
  }
  if (i->is(Opcode::kConstant) && i->literal->shape().element_count() > 1 && !i->literal->is_splat()) {
    // A few numbers, but found by the coordinates: dims that they tell apart are not to be lost in merged ones.
    accesses_.push_back({.address = linearize(i->shape.dims, coords), .bytes = dtype_bytes(i->shape.type)});
    return;
  }
  if (i->is(Opcode::kIota)) return add_index(coords[static_cast<size_t>(i->attrs.dimensions[0])]);
  Coords reduced;
  for (int64_t n : reduction_sizes(*i)) reduced.push_back(IndexExpr::var(vars_.fresh(), n));
  has_reduction_ |= is_reduction(*i);
  follow(i, known_relation(*i, coords, reduced, vars_));
}

void AccessWalk::read_operand(const Instruction* user, size_t operand, const Coords& coords) {
  const bool before = std::exchange(stored_, lanes_outside_ && compares_stored(*user));
  read(user->operand(operand), coords);
  stored_ = before;
}

int AccessWalk::operations_without(int var) const {
  int sum = 0;
  for (const auto& [i, places] : seen_) {
    const auto same = std::ranges::count_if(places, [&](const Coords& at) {
      return !at.empty() && std::ranges::none_of(at, [&](const IndexExpr& x) { return x.depends_on(var); });
    });
    sum += static_cast<int>(same) * operations_of(*i);
  }
  return sum;
}

int AccessWalk::lane_bytes() const {
  constexpr double kGoodPart = 0.25;
  double all = 0;
  for (const auto& [bytes, weight] : weight_) all += weight;
  for (const auto& [bytes, weight] : weight_) {
    if (weight >= kGoodPart * all) return bytes;
  }
  return 1;
}

void AccessWalk::follow(const Instruction* i, const AccessRelation& relation) {
  takes_bits_ |= i->is(Opcode::kBitcastConvert);
  const bool before = stored_;
  if (is_elementwise(i->opcode) || is_reduction(*i)) stored_ = lanes_outside_ && compares_stored(*i);
  for (const Symbol& s : relation.symbols) {
    symbols_.emplace(s.var, s.coords);
    read(i->operand(s.operand), s.coords);
  }
  for (const Read& r : relation.reads) {
    if (std::any_of(r.guards.begin(), r.guards.end(), [](const Guard& g) { return g.never(); })) continue;
    for (const Guard& g : r.guards) {
      if (g.always()) continue;
      // A window's guards stay, and those that loops cannot be cut at as the program decides where: dims they are about
      // are not to be lost in merged ones.
      const bool decided = std::ranges::any_of(g.expr.variables(), [&](int v) { return symbols_.contains(v); });
      if (!g.expr.is_affine() || is_reduction(*i) || decided) add_index(g.expr);
      within_buffers_ = false;
      edges_.push_back({g.expr, g.lo, false});
      edges_.push_back({g.expr, g.hi, true});
    }
    const Instruction* o = i->operand(r.operand);
    const bool moves = i->info().op_class == OpClass::kMoves && o->shape.is_array();
    read(o, moves ? first_of_ones(o->shape, r.coords) : r.coords);
  }
  if (relation.fill) read(i->operand(*relation.fill), {});
  stored_ = before;
  if (!is_reduction(*i)) return;
  for (const Instruction* init : initial_values(*i)) read(init, {});
}

}  // namespace hlojit::codegen

// Reductions as loops. Where the result is a scalar the lanes go along the reduced elements, with several
// accumulators to hide latency, and are combined by halves; where the result is a vector (its
// coordinates carry lanes) the reduced elements are taken one by one. Reductions of one kernel that read
// the same domain and do not depend on each other share their loops.
#include <algorithm>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/reducer.h"

namespace hlojit::codegen {
namespace {

// Longest chain of reductions below an instruction: equal levels cannot depend on each other.
int reduction_level(const Instruction* i, std::unordered_map<const Instruction*, int>& levels) {
  if (auto it = levels.find(i); it != levels.end()) return it->second;
  int level = 0;
  for (const Instruction* o : i->operands()) {
    level = std::max(level, reduction_level(o, levels) + (o->is(Opcode::kReduce) ? 1 : 0));
  }
  return levels[i] = level;
}

// Reductions that can share one pass: same input sizes, same dims, independent of each other.
std::vector<const Instruction*> reduction_group(const Instruction* i) {
  if (!i->is(Opcode::kReduce)) return {i};
  std::unordered_map<const Instruction*, int> levels;
  std::vector<const Instruction*> group = {i};
  int level = reduction_level(i, levels);
  for (const auto& other : i->parent()->instructions()) {
    if (other.get() == i || !other->is(Opcode::kReduce)) continue;
    if (other->operand(0)->shape.dims != i->operand(0)->shape.dims) continue;
    if (other->attrs.dimensions != i->attrs.dimensions) continue;
    if (reduction_level(other.get(), levels) == level) group.push_back(other.get());
  }
  return group;
}

}  // namespace

const std::vector<Value>& ElementEmitter::reduction(const Instruction* i, const Coords& coords, Scope& scope) {
  Scope& at = home(coords, scope);
  auto find = [&]() -> const std::vector<Value>* {
    for (const auto& [known, values] : at.reductions[i]) {
      if (known == coords) return &values;
    }
    return nullptr;
  };
  if (auto* known = find()) return *known;
  std::vector<const Instruction*> group = reduction_group(i);
  std::vector<std::vector<Value>> results = reduce_loops(group, coords, at);
  complete_rows();
  for (size_t k = 0; k < group.size(); ++k) at.reductions[group[k]].emplace_back(coords, results[k]);
  return *find();
}

std::vector<std::vector<Value>> ElementEmitter::reduce_loops(std::span<const Instruction* const> group,
                                                             const Coords& coords, Scope& at) {
  const Instruction* first = group[0];
  std::vector<Reducer> reducers;
  bool reorder = true;
  for (const Instruction* i : group) {
    reducers.push_back(Reducer::of(*i));
    reorder &= reducers.back().reorderable();
  }
  int outer_lanes = 1;
  for (const IndexExpr& e : coords) outer_lanes = std::max(outer_lanes, lane_count(e));
  bool own_lanes = outer_lanes == 1 && reorder;

  // What one element of a member needs, at coordinates of the reduction variables.
  auto inputs_at = [&](const Instruction* i, const Coords& reduced) { return access_relation(*i, coords, reduced, vars_); };
  int widest = 1;
  auto walk = [&](AccessWalk& w, const Coords& reduced) {
    for (const Instruction* i : group) w.follow(i, inputs_at(i, reduced));
    widest = std::max(widest, w.widest());
  };
  Ints dims = reduction_sizes(*first);
  // Several accumulators hide the latency of the combining op.
  int native = std::max(1, vector_bytes() / 4), wide = 4 * native;
  std::vector<LoopPiece> pieces = plan_loops(dims, vars_, walk, {own_lanes, wide, 0, !reorder});
  native = std::max(1, vector_bytes() / std::max(widest, 1));
  wide = 4 * native;

  // Accumulators: for each lane count in use, each member, each result.
  std::vector<int> counts;
  std::vector<std::vector<int>> piece_widths;
  for (const LoopPiece& p : pieces) {
    piece_widths.push_back(widths(p, wide, native));
    for (int w : piece_widths.back()) {
      if (std::find(counts.begin(), counts.end(), w) == counts.end()) counts.push_back(w);
    }
  }
  std::sort(counts.rbegin(), counts.rend());
  std::vector<std::vector<Value>> initial;  // scalars, a member each
  for (size_t m = 0; m < group.size(); ++m) {
    std::vector<Value> values;
    for (const Instruction* init : initial_values(*group[m])) values.push_back(emit(init, {}, root_));
    if (values.empty()) values.push_back(reducers[m].identity(at.builder));
    initial.push_back(values);
  }
  auto start = [&](size_t m, size_t k, int lanes) {
    Value v = reducers[m].has_identity() ? reducers[m].identity(at.builder) : initial[m][k];
    return splat(at.builder, v, lanes);
  };
  Carried carried;
  std::vector<DType> types;
  for (int w : counts) {
    for (size_t m = 0; m < group.size(); ++m) {
      for (size_t k = 0; k < initial[m].size(); ++k) {
        Value v = start(m, k, w > 1 ? w : outer_lanes);
        append_parts(carried, v);
        if (w == counts[0]) types.push_back(v.type);
      }
    }
  }
  size_t per = counts.empty() ? 0 : carried.size() / counts.size();  // parts a lane count
  for (size_t p = 0; p < pieces.size(); ++p) {
    carried = loops(at, pieces[p], 0, piece_widths[p], carried,
                    [&](Scope& s, const Coords& reduced, int, int lanes, const Carried& in) {
      Carried out = in;
      auto group_at = static_cast<size_t>(std::find(counts.begin(), counts.end(), lanes) - counts.begin()) * per;
      size_t slot = 0, part = group_at;
      for (size_t m = 0; m < group.size(); ++m) {
        std::vector<Value> accumulators, values;
        size_t n = initial[m].size(), from = part;
        for (size_t k = 0; k < n; ++k) accumulators.push_back(take_parts(types[slot + k], in, part));
        AccessRelation relation = inputs_at(group[m], reduced);
        std::vector<Guard> guards;
        for (const Read& r : relation.reads) guards.insert(guards.end(), r.guards.begin(), r.guards.end());
        llvm::Value* element_counts = holds(guards, s);
        under(element_counts, [&] { values = reducers[m].operands(*this, s, *group[m], relation); });
        int width = lanes > 1 ? lanes : outer_lanes;
        for (Value& v : values) v = splat(s.builder, v, width);
        std::vector<Value> next = reducers[m].step(s.builder, number(), accumulators, values);
        Carried made;
        for (size_t k = 0; k < n; ++k) {
          append_parts(made, element_counts ? choose(s.builder, element_counts, next[k], accumulators[k]) : next[k]);
        }
        std::copy(made.begin(), made.end(), out.begin() + static_cast<ptrdiff_t>(from));
        slot += n;
      }
      return out;
    });
  }

  std::vector<std::vector<Value>> results;
  size_t slot = 0, first_part = 0;
  llvm::IRBuilder<>& b = at.builder;
  for (size_t m = 0; m < group.size(); ++m) {
    size_t n = initial[m].size();
    std::vector<Value> total;
    for (size_t c = 0; c < counts.size(); ++c) {
      std::vector<Value> part;
      size_t next = c * per + first_part;
      for (size_t k = 0; k < n; ++k) part.push_back(take_parts(types[slot + k], carried, next));
      if (own_lanes) part = reducers[m].across_lanes(b, number(), part);
      total = total.empty() ? part : reducers[m].combine(b, number(), total, part);
    }
    slot += n;
    for (const Value& v : initial[m]) first_part += v.imag ? 2 : 1;
    if (total.empty()) {
      total = initial[m];
      for (Value& v : total) v = splat(b, v, outer_lanes);
    } else if (reducers[m].has_identity() && !initial_values(*group[m]).empty()) {
      std::vector<Value> from = initial[m];
      for (Value& v : from) v = splat(b, v, outer_lanes);
      total = reducers[m].combine(b, number(), from, total);
    }
    results.push_back(reducers[m].finish(b, number(), total));
  }
  return results;
}

}  // namespace hlojit::codegen

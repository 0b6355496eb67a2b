// See known_places.h. Which dim is looked up along, and which the others are, is read off the access relation.
#include "compiler/passes/known_places.h"

#include <algorithm>

#include "compiler/analysis/access.h"
#include "compiler/analysis/dataflow.h"
#include "compiler/builder.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/simplify_rules.h"
#include "compiler/plan/kernel.h"

namespace hlojit {
namespace {

/// One dim of operand 0 at places that one dim of the result numbers; its others are the result's other dims.
struct Looked {
  size_t dim = 0;     ///< of the operand
  size_t number = 0;  ///< of the result
  Ints places;
  Ints order;  ///< which of the operand's dims each of the result's is
};

/// The values of a symbol for each element along the result's dim `number`, the only one that it depends on; none if
/// they are no constant's.
Ints places_of(const Instruction& i, const Symbol& s, size_t number) {
  const Instruction* indices = i.operand(s.operand);
  const Literal* splat = splat_value(indices);
  const Literal* literal = indices->is(Opcode::kConstant) ? indices->literal.get() : splat;
  Ints places;
  if (!literal || i.shape.dims[number] > kMostPartsAnywhere) return places;
  const IndexExpr element = linearize(indices->shape.dims, s.coords);
  std::vector<int64_t> at(i.shape.dims.size(), 0);
  for (int64_t n = 0; n < i.shape.dims[number]; ++n) {
    at[number] = n;
    const int64_t value = literal->as_int(literal == splat ? 0 : element.evaluate(at));
    const bool huge = is_unsigned(indices->shape.type) && value < 0;  // a u64 beyond int64
    places.push_back(huge ? s.clamp.hi : std::clamp(value, s.clamp.lo, s.clamp.hi));
  }
  return places;
}

/// Of the operand's memory that lies together at one place along `dim` less than a line is read: more is read by
/// vectors as it lies, wherever it is.
bool lies_in_pieces(const Shape& shape, size_t dim) {
  int64_t bytes = dtype_bytes(shape.type);
  for (int64_t d : shape.layout.minor_to_major) {
    if (d == static_cast<int64_t>(dim)) break;
    bytes *= shape.dims[static_cast<size_t>(d)];
  }
  return bytes < kCacheLine;
}

std::optional<Looked> looked_up(const Instruction& i) {
  const auto rank = static_cast<int>(i.shape.dims.size());
  const Ints& from = i.operand(0)->shape.dims;
  VarSource vars(rank);
  Coords at;
  // Dims of size 1 have variables, too: which of them is which is asked.
  for (int d = 0; d < rank; ++d) at.push_back(IndexExpr::var(d, std::max<int64_t>(i.shape.dims[d], 2)));
  const AccessRelation r = access_relation(i, at, {}, vars);
  if (r.symbols.size() != 1 || r.reads.size() != 1 || !r.reads[0].guards.empty() || r.reads[0].operand != 0) return {};
  if (from.size() != i.shape.dims.size()) return {};
  Looked found{.dim = 0, .number = 0, .places = {}, .order = Ints(from.size(), -1)};
  std::vector<int> numbers;
  for (const IndexExpr& c : r.symbols[0].coords) std::ranges::copy(c.variables(), std::back_inserter(numbers));
  if (numbers.size() != 1) return {};
  found.number = static_cast<size_t>(numbers[0]);
  for (size_t d = 0; d < from.size(); ++d) {
    int var = r.reads[0].coords[d].sole_variable();
    if (var == r.symbols[0].var) {
      found.dim = d;
      var = numbers[0];
    } else if (var >= rank || var < 0 || var == numbers[0] || from[d] != i.shape.dims[static_cast<size_t>(var)]) {
      return {};
    }
    if (found.order[static_cast<size_t>(var)] >= 0) return {};
    found.order[static_cast<size_t>(var)] = static_cast<int64_t>(d);
  }
  if (!lies_in_pieces(i.operand(0)->shape, found.dim)) return {};
  found.places = places_of(i, r.symbols[0], found.number);
  return found;
}

/// Places that follow each other are one slice.
Instruction* side_by_side(Builder& b, Instruction* x, const Looked& l) {
  const auto dim = static_cast<int64_t>(l.dim);
  Builder::Values parts;
  for (size_t k = 0, end = 0; k < l.places.size(); k = end) {
    for (end = k + 1; end < l.places.size() && l.places[end] == l.places[end - 1] + 1;) ++end;
    parts.push_back(b.slice_in_dim(x, l.places[k], l.places[end - 1] + 1, 1, dim));
  }
  Instruction* taken = parts.size() == 1 ? parts[0] : b.concat_in_dim(std::move(parts), dim);
  return std::ranges::is_sorted(l.order) ? taken : b.transpose(taken, l.order);
}

}  // namespace

bool known_places(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    Builder b(c);
    bool here = false;
    for (Instruction* i : c->snapshot()) {
      if (!has_trait(*i, op_trait::kRandomPlaces) || has_trait(*i, op_trait::kUpdates) || !i->shape.is_array())
        continue;
      if (!i->control_predecessors.empty() || i->shape.has_dynamic_dims() || i->shape.element_count() == 0) continue;
      if (i->users().empty() && !i->is_root()) continue;
      const std::optional<Looked> l = looked_up(*i);
      if (!l || l->places.empty()) continue;
      Instruction* made = side_by_side(b, i->operand(0), *l);
      made->shape.layout = i->shape.layout;
      made->location = i->location;
      explain(options, "known_places", *c, "{} as slices of {}", i->name, i->operand(0)->name);
      i->replace_all_uses_with(made);
      here = true;
    }
    if (here) c->sort_topologically();
    changed |= here;
  }
  return changed;
}

}  // namespace hlojit

// Sorts of which only the first elements are read: they are those that a selection gives, and nobody reads the others.
#include <algorithm>

#include "compiler/analysis/counting.h"
#include "compiler/analysis/sort_order.h"
#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

using enum Opcode;

// How many of the first elements along dim are read; nullopt: not by slices alone.
std::optional<int64_t> first_read(const Instruction& sorted, int64_t dim) {
  int64_t most = 0;
  for (const Instruction* user : sorted.users()) {
    if (user->is(kGetTupleElement) && sorted.shape.is_tuple()) {
      auto of_element = first_read(*user, dim);
      if (!of_element) return std::nullopt;
      most = std::max(most, *of_element);
      continue;
    }
    if (!user->is(kSlice)) return std::nullopt;
    const SliceRange& part = user->attrs.slice[static_cast<size_t>(dim)];
    if (part.start != 0 || part.stride != 1) return std::nullopt;
    most = std::max(most, part.limit);
  }
  return sorted.is_root() ? std::nullopt : std::optional(most);
}

// Of each row of x the elements at these places.
Instruction* at_places(Builder& b, Instruction* x, Instruction* places) {
  const int64_t n = x->shape.dims.back(), rows = x->shape.element_count() / n, k = places->shape.dims.back();
  GatherDims g;
  g.operand_batching_dims = g.start_indices_batching_dims = {0};
  g.collapsed_slice_dims = g.start_index_map = {1};
  g.index_vector_dim = 2;
  g.slice_sizes = {1, 1};
  Instruction* taken = b.gather(b.reshape(x, {rows, n}), b.reshape(places, {rows, k}), std::move(g));
  return b.reshape(taken, places->shape.dims);
}

}  // namespace

Instruction* expand_leading_sort(Builder& b, const Instruction& op) {
  constexpr int64_t kFewest = 64, kPart = 16;  // a selection of many takes as long as a sort
  Instruction* x = op.operand(0);
  const int64_t dim = x->shape.rank() - 1, n = x->shape.dims.back();
  if (op.attrs.dimensions[0] != dim || n < kFewest || x->shape.element_count() == 0) return nullptr;
  if (op.operand_count() > 2 || (op.operand_count() == 2 && !counts_along(*op.operand(1), dim))) return nullptr;
  const std::vector<SortKey> order = sort_order(*op.to_apply());
  const bool keyed =
      order.size() == 1 && order[0].operand == 0 && (is_float(x->shape.type) || is_integral(x->shape.type));
  const int64_t k = keyed ? first_read(op, dim).value_or(0) : 0;
  if (k == 0 || k * kPart > n) return nullptr;

  Attributes a;
  a.k = k;
  a.largest = order[0].descending;
  Instruction* top = b.op(kTopK, {order[0].canonical ? canonical_form(b, x) : x}, std::move(a));
  Instruction* places = b.get_tuple_element(top, 1);
  std::vector<PadDim> behind(x->shape.dims.size());
  behind.back().high = n - k;
  auto whole = [&](Instruction* part) { return b.pad(part, b.constant(part->shape.type, 0), behind); };
  Instruction* values = whole(order[0].canonical ? at_places(b, x, places) : b.get_tuple_element(top, 0));
  if (op.operand_count() == 1) return op.shape.is_tuple() ? b.tuple({values}) : values;
  return b.tuple({values, whole(b.convert(places, op.operand(1)->shape.type))});
}

}  // namespace hlojit

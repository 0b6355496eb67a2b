// Sorts that are less than that: of many short rows, and of rows of which the first elements alone are read.
#include <algorithm>
#include <limits>

#include "compiler/analysis/sort_order.h"
#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

using enum Opcode;

// Floats that are equal, and all NaNs, as one each.
Instruction* canonical_form(Builder& b, Instruction* x) {
  const DType type = x->shape.type;
  auto everywhere = [&](double v) { return b.broadcast(b.constant(type, v), x->shape.dims); };
  Instruction* zero = everywhere(0);
  x = b.select(b.compare(Direction::kEq, x, zero), zero, x);
  return b.select(b.compare(Direction::kNe, x, x), everywhere(std::numeric_limits<double>::quiet_NaN()), x);
}

// What compares as the elements do: floats as integers, in total order. nullptr: of a type without such a mapping.
Instruction* key_of(Builder& b, Instruction* x, bool canonical) {
  if (is_integral(x->shape.type)) return dtype_bits(x->shape.type) >= 8 ? x : nullptr;
  const DType type = x->shape.type, as = integer_of(dtype_bits(type), true);
  if (!is_float(type) || dtype_bits(type) < 16) return nullptr;
  const Ints& dims = x->shape.dims;
  auto everywhere = [&](DType t, double v) { return b.broadcast(b.constant(t, v), dims); };
  if (canonical) x = canonical_form(b, x);
  // The magnitudes of negative numbers count backwards.
  Instruction* bits = b.bitcast_convert(x, as);
  Instruction* sign = b.binary(kShiftRightArithmetic, bits, everywhere(as, dtype_bits(as) - 1));
  return b.binary(kXor, bits, b.binary(kShiftRightLogical, sign, everywhere(as, 1)));
}

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

// Numbers the elements along dim.
bool counts(const Instruction* i, int64_t dim) {
  while (i->is(kBroadcast)) {
    auto at = std::ranges::find(i->attrs.dimensions, dim);
    if (at == i->attrs.dimensions.end()) return false;
    dim = at - i->attrs.dimensions.begin();
    i = i->operand(0);
  }
  return i->is(kIota) && i->attrs.dimensions[0] == dim && is_integral(i->shape.type) && dtype_bits(i->shape.type) >= 32;
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

// The first elements in order are those that a selection gives; nobody reads the others.
Instruction* expand_leading_sort(Builder& b, const Instruction& op) {
  constexpr int64_t kFewest = 64, kPart = 16;  // a selection of many takes as long as a sort
  Instruction* x = op.operand(0);
  const int64_t dim = x->shape.rank() - 1, n = x->shape.dims.back();
  if (op.attrs.dimensions[0] != dim || n < kFewest || x->shape.element_count() == 0) return nullptr;
  if (op.operand_count() > 2 || (op.operand_count() == 2 && !counts(op.operand(1), dim))) return nullptr;
  std::optional<SortOrder> order = sort_order(*op.to_apply());
  const bool keyed = order && order->operand == 0 && (is_float(x->shape.type) || is_integral(x->shape.type));
  const int64_t k = keyed ? first_read(op, dim).value_or(0) : 0;
  if (k == 0 || k * kPart > n) return nullptr;

  Attributes a;
  a.k = k;
  a.largest = order->descending;
  Instruction* top = b.op(kTopK, {order->canonical ? canonical_form(b, x) : x}, std::move(a));
  Instruction* places = b.get_tuple_element(top, 1);
  std::vector<PadDim> behind(x->shape.dims.size());
  behind.back().high = n - k;
  auto whole = [&](Instruction* part) { return b.pad(part, b.constant(part->shape.type, 0), behind); };
  Instruction* values = whole(order->canonical ? at_places(b, x, places) : b.get_tuple_element(top, 0));
  if (op.operand_count() == 1) return op.shape.is_tuple() ? b.tuple({values}) : values;
  return b.tuple({values, whole(b.convert(places, op.operand(1)->shape.type))});
}

// The exchanges of neighbours that odd-even transposition makes, on all rows at once. Neighbours change places only if
// the later one comes first, so equal elements keep their order. A call of the library for each row takes longer than
// all the exchanges.
Instruction* expand_short_sort(Builder& b, const Instruction& op) {
  constexpr int64_t kFewRows = 16, kMostSelects = 36;  // pairs of them, each for all rows
  const Shape& shape = op.operand(0)->shape;
  const int64_t dim = op.attrs.dimensions[0], n = shape.dims[static_cast<size_t>(dim)];
  if (n < 2 || n > kMostSelects || shape.element_count() / n < kFewRows) return nullptr;
  std::optional<SortOrder> order = sort_order(*op.to_apply());
  if (!order) return nullptr;
  Builder::Values arrays(op.operands().begin(), op.operands().end());
  const size_t count = arrays.size();
  auto at = static_cast<size_t>(order->operand);
  const bool mapped = is_float(arrays[at]->shape.type);
  if (n * (n - 1) / 2 * static_cast<int64_t>(count + (mapped ? 1 : 0)) > kMostSelects) return nullptr;
  Instruction* key = key_of(b, arrays[at], order->canonical);
  if (!key) return nullptr;
  if (mapped) at = count, arrays.push_back(key);

  Ints others = shape.dims, one = shape.dims;
  others.erase(others.begin() + dim);
  one[static_cast<size_t>(dim)] = 1;
  std::vector<Builder::Values> places(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    for (Instruction* a : arrays)
      places[static_cast<size_t>(k)].push_back(b.reshape(b.slice_in_dim(a, k, k + 1, 1, dim), others));
  }
  for (size_t round = 0; round < places.size(); ++round) {
    for (size_t k = round % 2; k + 1 < places.size(); k += 2) {
      Builder::Values &first = places[k], &second = places[k + 1];
      Instruction* swap = b.compare(order->descending ? Direction::kGt : Direction::kLt, second[at], first[at]);
      for (size_t a = 0; a < arrays.size(); ++a) {
        Instruction *x = first[a], *y = second[a];
        first[a] = b.select(swap, y, x), second[a] = b.select(swap, x, y);
      }
    }
  }
  Builder::Values sorted;
  for (size_t a = 0; a < count; ++a) {
    Builder::Values parts;
    for (const Builder::Values& p : places) parts.push_back(b.reshape(p[a], one));
    sorted.push_back(b.concat_in_dim(parts, dim));
  }
  return op.shape.is_tuple() ? b.tuple(sorted) : sorted[0];
}

}  // namespace hlojit

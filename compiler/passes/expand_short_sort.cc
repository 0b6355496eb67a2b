// Sorts of many short rows: the exchanges of neighbours that odd-even transposition makes, on all rows at once.
// Neighbours change places only if the later one comes first, so equal elements keep their order. A call of the library
// for each row takes longer than all the exchanges.
#include <limits>

#include "compiler/analysis/sort_order.h"
#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

using enum Opcode;

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

}  // namespace

Instruction* canonical_form(Builder& b, Instruction* x) {
  const DType type = x->shape.type;
  auto everywhere = [&](double v) { return b.broadcast(b.constant(type, v), x->shape.dims); };
  Instruction* zero = everywhere(0);
  x = b.select(b.compare(Direction::kEq, x, zero), zero, x);
  return b.select(b.compare(Direction::kNe, x, x), everywhere(std::numeric_limits<double>::quiet_NaN()), x);
}

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

// Sorts of many short rows: the exchanges of neighbours that odd-even transposition makes, on all rows at once.
// Neighbours change places only if the later one comes first, so equal elements keep their order. A call of the library
// for each row takes longer than all the exchanges. So it does for the few best of many short rows: each is the best of
// what comes after the one before.
#include <limits>

#include "compiler/analysis/sort_order.h"
#include "compiler/ir/combining.h"
#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

using enum Opcode;

// The magnitudes of negative numbers count backwards; and as they did before.
Instruction* mirrored(Builder& b, Instruction* bits) {
  const DType type = bits->shape.type;
  auto everywhere = [&](int v) { return b.broadcast(b.constant(type, v), bits->shape.dims); };
  Instruction* sign = b.binary(kShiftRightArithmetic, bits, everywhere(dtype_bits(type) - 1));
  return b.binary(kXor, bits, b.binary(kShiftRightLogical, sign, everywhere(1)));
}

// What compares as the elements do: floats as integers, in total order. nullptr: of a type without such a mapping.
Instruction* key_of(Builder& b, Instruction* x, bool canonical) {
  if (x->shape.type == DType::kPred) return x;
  if (is_integral(x->shape.type)) return dtype_bits(x->shape.type) >= 8 ? x : nullptr;
  const DType type = x->shape.type;
  if (!is_float(type) || dtype_bits(type) < 16) return nullptr;
  return mirrored(b, b.bitcast_convert(canonical ? canonical_form(b, x) : x, integer_of(dtype_bits(type), true)));
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
  const std::vector<SortKey> order = sort_order(*op.to_apply());
  Builder::Values arrays(op.operands().begin(), op.operands().end());
  const size_t count = arrays.size();
  std::vector<size_t> at;  // of the arrays, those that are compared
  for (const SortKey& by : order) {
    at.push_back(static_cast<size_t>(by.operand));
    if (is_float(by.type)) at.back() = arrays.size(), arrays.push_back(nullptr);
  }
  if (order.empty() || n * (n - 1) / 2 * std::ssize(arrays) > kMostSelects) return nullptr;
  for (size_t k = 0; k < order.size(); ++k) {
    Instruction* key = key_of(b, op.operand(static_cast<size_t>(order[k].operand)), order[k].canonical);
    if (!key) return nullptr;
    arrays[at[k]] = key;
  }

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
      Instruction* swap = nullptr;
      for (size_t key = at.size(); key-- > 0;) {
        Instruction *x = first[at[key]], *y = second[at[key]];
        Instruction* less = b.compare(order[key].descending ? Direction::kGt : Direction::kLt, y, x);
        swap = swap ? b.binary(kOr, less, b.binary(kAnd, b.compare(Direction::kEq, y, x), swap)) : less;
      }
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

Instruction* expand_short_top_k(Builder& b, const Instruction& op) {
  // (Of rows of 77 the two best so take 0.7 of the library's time, the four best 0.9; and compile ten times as long.)
  constexpr int64_t kFewRows = 16, kFew = 4, kPair = 2, kLong = 256, kShort = 32;
  const Shape& shape = op.operand(0)->shape;
  const int64_t dim = shape.rank() - 1, n = shape.dims.back(), k = op.attrs.k;
  if (k < 1 || k > kFew || n > (k > kPair ? kShort : kLong) || shape.element_count() / n < kFewRows) return nullptr;
  Instruction* key = key_of(b, op.operand(0), false);
  if (!key) return nullptr;
  const DType type = key->shape.type, places = DType::kS32;
  const Opcode best = op.attrs.largest ? kMaximum : kMinimum;
  Ints rows = shape.dims, kept;
  rows.back() = 1;
  for (int64_t d = 0; d < dim; ++d) kept.push_back(d);
  Instruction* iota = b.iota(Shape::array(places, shape.dims), dim);
  auto everywhere = [&](Literal v) { return b.broadcast(b.constant(std::move(v)), shape.dims); };
  auto along_row = [&](Instruction* x) { return b.broadcast_in_dim(x, shape.dims, kept); };
  auto best_of = [&](Instruction* x, Opcode of, Instruction* where) {
    Literal last = extreme_number(x->shape.type, of == kMinimum);
    Instruction* from = b.constant(last);
    if (where) x = b.select(where, x, everywhere(last));
    return b.reduce({x}, {from}, b.combiner(of, x->shape.type), {dim});
  };
  Instruction* after = nullptr;  // what comes after those found, of equal ones the later
  Builder::Values values, indices;
  for (int64_t j = 0; j < k; ++j) {
    Instruction* top = best_of(key, best, after);
    Instruction* equal = b.compare(Direction::kEq, key, along_row(top));
    Instruction* place = best_of(iota, kMinimum, after ? b.binary(kAnd, equal, after) : equal);
    Instruction* worse = b.compare(op.attrs.largest ? Direction::kLt : Direction::kGt, key, along_row(top));
    Instruction* later = b.binary(kAnd, equal, b.compare(Direction::kGt, iota, along_row(place)));
    after = b.binary(kOr, worse, later);
    values.push_back(b.reshape(top, rows));
    indices.push_back(b.reshape(place, rows));
  }
  Instruction* taken = b.concat_in_dim(values, dim);
  if (type != shape.type) taken = b.bitcast_convert(mirrored(b, taken), shape.type);
  return b.tuple({taken, b.concat_in_dim(indices, dim)});
}

}  // namespace hlojit

// Sorts of many short rows: exchanges that are the same in all rows, made on all of them at once. A call of the library
// for each row takes longer than all of these.
//
//   f32[7,20000], each column sorted     r0 = x[0,:] ... r6 = x[6,:]
//     ->  swap = r1 < r0    r0' = swap ? r1 : r0    r1' = swap ? r0 : r1    and so on
//
// Numbers of which equal ones are the same are exchanged by minima and maxima, as Batcher's merges do; others by
// neighbours alone (odd-even transposition), which change places only if the later one comes first, so that equal
// elements keep their order. So it is with the few best of many short rows, too: each is the best of what comes after
// the one before.
#include <bit>
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

using Exchange = std::pair<size_t, size_t>;

// Of neighbours alone.
std::vector<Exchange> transpositions(size_t n) {
  std::vector<Exchange> list;
  for (size_t round = 0; round < n; ++round) {
    for (size_t k = round % 2; k + 1 < n; k += 2) list.emplace_back(k, k + 1);
  }
  return list;
}

// Fewer, of elements that are further apart (Knuth's algorithm 5.2.2M).
std::vector<Exchange> merges(size_t n) {
  std::vector<Exchange> list;
  const size_t top = std::bit_ceil(n) / 2;
  for (size_t p = top; p > 0; p /= 2) {
    size_t r = 0, d = p;
    for (size_t q = top;; q /= 2) {
      for (size_t k = 0; k + d < n; ++k) {
        if ((k & p) == r) list.emplace_back(k, k + d);
      }
      if (q == p) break;
      d = q - p, r = p;
    }
  }
  return list;
}

/// Arrays cut along a dim, at each place the values of all of them; and put together again.
class Row {
 public:
  Row(Builder& b, std::span<Instruction* const> arrays, int64_t dim) : b_(b), dim_(dim) {
    const Shape& shape = arrays[0]->shape;
    Ints others = shape.dims;
    others.erase(others.begin() + dim);
    for (int64_t k = 0; k < shape.dims[static_cast<size_t>(dim)]; ++k) {
      Builder::Values& here = places.emplace_back();
      for (Instruction* a : arrays) here.push_back(b.reshape(b.slice_in_dim(a, k, k + 1, 1, dim), others));
    }
    one_ = shape.dims;
    one_[static_cast<size_t>(dim)] = 1;
  }

  Instruction* joined(size_t array) const {
    Builder::Values parts;
    for (const Builder::Values& p : places) parts.push_back(b_.reshape(p[array], one_));
    return b_.concat_in_dim(parts, dim_);
  }

  std::vector<Builder::Values> places;

 private:
  Builder& b_;
  int64_t dim_;
  Ints one_;
};

// Numbers alone, of which equal ones are the same.
bool sorts_numbers(const Instruction& op, const std::vector<SortKey>& keys) {
  return op.operand_count() == 1 && keys.size() == 1 && !keys[0].canonical;
}

// nullptr: that would be too many operations, or they have no such keys.
Instruction* sorted_numbers(Builder& b, const Instruction& op, bool descending, size_t most) {
  const Shape& shape = op.operand(0)->shape;
  const int64_t dim = op.attrs.dimensions[0];
  const std::vector<Exchange> exchanges = merges(static_cast<size_t>(shape.dims[static_cast<size_t>(dim)]));
  Instruction* key = 2 * exchanges.size() <= most ? key_of(b, op.operand(0), false) : nullptr;
  if (!key) return nullptr;
  Row row(b, Builder::Values{key}, dim);
  for (const auto& [first, second] : exchanges) {
    Instruction *&x = row.places[first][0], *&y = row.places[second][0];
    Instruction *least = b.binary(kMinimum, x, y), *greatest = b.binary(kMaximum, x, y);
    x = descending ? greatest : least, y = descending ? least : greatest;
  }
  Instruction* sorted = row.joined(0);
  if (key->shape.type != shape.type) sorted = b.bitcast_convert(mirrored(b, sorted), shape.type);
  return op.shape.is_tuple() ? b.tuple({sorted}) : sorted;
}

/// Which of two places' values come first.
struct Order {
  const std::vector<SortKey>& keys;
  std::vector<size_t> at;  ///< of the arrays that are exchanged, those that are compared
  bool directly = false;   ///< by a float as it is: -0 is 0, and what is no number comes last

  /// Compared and chosen for an exchange.
  size_t operations(size_t arrays) const { return (directly ? 4 : 4 * keys.size() - 3) + 2 * arrays; }

  Instruction* second_first(Builder& b, const Builder::Values& first, const Builder::Values& second) const {
    Instruction* swap = nullptr;
    for (size_t k = keys.size(); k-- > 0;) {
      Instruction *x = first[at[k]], *y = second[at[k]];
      if (keys[k].descending) std::swap(x, y);
      if (directly) return b.binary(kAnd, b.unary(kNot, b.compare(Direction::kGe, y, x)), is_number(b, y));
      Instruction* less = b.compare(Direction::kLt, y, x);
      swap = swap ? b.binary(kOr, less, b.binary(kAnd, b.compare(Direction::kEq, y, x), swap)) : less;
    }
    return swap;
  }

  static Instruction* is_number(Builder& b, Instruction* x) { return b.compare(Direction::kEq, x, x); }
};

// By neighbours. nullptr: that would be too many operations.
Instruction* sorted_in_order(Builder& b, const Instruction& op, const std::vector<SortKey>& keys, size_t most) {
  auto compares = [](const SortKey& k) { return k.canonical && (k.type == DType::kF32 || k.type == DType::kF64); };
  Order order{keys, {}, keys.size() == 1 && compares(keys[0])};
  Builder::Values arrays(op.operands().begin(), op.operands().end());
  for (const SortKey& by : keys) {
    order.at.push_back(static_cast<size_t>(by.operand));
    if (is_float(by.type) && !order.directly) order.at.back() = arrays.size(), arrays.push_back(nullptr);
  }
  const int64_t dim = op.attrs.dimensions[0];
  const std::vector<Exchange> exchanges =
      transpositions(static_cast<size_t>(op.operand(0)->shape.dims[static_cast<size_t>(dim)]));
  if (exchanges.size() * order.operations(arrays.size()) > most) return nullptr;
  for (size_t k = 0; k < keys.size() && !order.directly; ++k) {
    Instruction* key = key_of(b, op.operand(static_cast<size_t>(keys[k].operand)), keys[k].canonical);
    if (!key) return nullptr;
    arrays[order.at[k]] = key;
  }

  Row row(b, arrays, dim);
  for (const auto& [k, next] : exchanges) {
    Builder::Values &first = row.places[k], &second = row.places[next];
    Instruction* swap = order.second_first(b, first, second);
    for (size_t a = 0; a < arrays.size(); ++a) {
      Instruction *x = first[a], *y = second[a];
      first[a] = b.select(swap, y, x), second[a] = b.select(swap, x, y);
    }
  }
  Builder::Values sorted;
  for (size_t a = 0; a < op.operand_count(); ++a) sorted.push_back(row.joined(a));
  return op.shape.is_tuple() ? b.tuple(sorted) : sorted[0];
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
  constexpr int64_t kFewRows = 16, kMostInRow = 16, kMostNarrowInRow = 8;  // more take LLVM long
  constexpr size_t kMostOperations = 300;                                  // half of what one kernel may hold
  const Shape& shape = op.operand(0)->shape;
  const int64_t dim = op.attrs.dimensions[0], n = shape.dims[static_cast<size_t>(dim)];
  if (n < 2 || n > int64_t{kMostOperations} || shape.element_count() / n < kFewRows) return nullptr;
  if (dim + 1 == shape.rank() && n > (dtype_bytes(shape.type) < 4 ? kMostNarrowInRow : kMostInRow)) return nullptr;
  const std::vector<SortKey> keys = sort_order(*op.to_apply());
  if (keys.empty()) return nullptr;
  if (sorts_numbers(op, keys)) return sorted_numbers(b, op, keys[0].descending, kMostOperations);
  return sorted_in_order(b, op, keys, kMostOperations);
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

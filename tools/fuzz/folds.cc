// Reductions in whose results the order of terms shows, and their number: long sums, that drift where they are made in
// one accumulator, and selections, of which some may take elements in any order and some may not.
#include <algorithm>

#include "layout/lists.h"
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

// Many terms of two values next to each other, which no binary fraction is: added one by one they are rounded the same
// way again and again. `sizes` have one long dimension.
Instruction* terms(Draft& s, DType t, const Ints& sizes) {
  double term = s.random.pick(std::vector{0.333, 0.1, -0.7});
  return s.b.op(kClamp, {s.b.constant(t, term), s.of(t, sizes), s.b.constant(t, term + 0.0001)});
}

Ints long_sizes(Draft& s, int64_t least, int64_t most) {
  Ints sizes = {s.random.between(least, most)};
  for (int64_t n = s.random.between(0, 2); n > 0; --n) {
    sizes.insert(sizes.begin() + s.random.between(0, std::ssize(sizes)), s.random.pick(Ints{1, 2, 3, 4, 8, 16}));
  }
  int64_t elements = product(sizes);
  while (elements > 64'000) {
    auto large = std::ranges::max_element(sizes);
    elements /= *large;
    *large = *large * 3 / 4;
    elements *= *large;
  }
  return sizes;
}

Ints long_dim(const Ints& sizes) { return {std::ranges::max_element(sizes) - sizes.begin()}; }

DType float_type(Draft& s) {
  using enum DType;
  return s.random.pick(std::vector{kF32, kF32, kF32, kF32, kF64, kBF16});
}

// Along the long dimension, of which the others are few; now and then the variance.
Instruction* long_sum(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  DType t = float_type(s);
  Ints sizes = long_sizes(s, 3'000, 60'000), dims = long_dim(sizes), kept;
  Instruction* x = terms(s, t, sizes);
  if (s.random.chance(0.2)) return reduce_by(s, kAdd, x, s.permutation(x->shape.rank()));
  Instruction* sum = reduce_by(s, kAdd, x, dims);
  if (s.random.chance(0.7)) return sum;
  for (int64_t d = 0; d < x->shape.rank(); ++d) {
    if (d != dims[0]) kept.push_back(d);
  }
  double n = static_cast<double>(sizes[static_cast<size_t>(dims[0])]);
  Instruction* mean = s.b.op(kMultiply, {sum, s.splat(t, 1 / n, sum->shape.dims)});
  Instruction* apart = s.b.op(kSubtract, {x, s.b.broadcast_in_dim(mean, sizes, kept)});
  return reduce_by(s, kAdd, s.b.op(kMultiply, {apart, apart}), dims);
}

// Keeps the last element below a bound: what it gives depends on the order of the elements.
Computation* last_below(Draft& s, double bound) {
  Builder b(s.draw.module, "in_order");
  Instruction* before = b.parameter(Shape::scalar(DType::kF32));
  Instruction* now = b.parameter(Shape::scalar(DType::kF32));
  Instruction* below = b.compare(Direction::kLt, now, b.constant(DType::kF32, bound));
  return b.build(s.random.chance(0.3) ? now : b.op(kSelect, {below, now, before}));
}

// A long sum and, over the same elements, what must take them in order.
Instruction* sum_beside_order(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  Ints sizes = long_sizes(s, 3'000, 6'000), dims = long_dim(sizes);
  DType t = DType::kF32;
  Instruction* x = terms(s, t, sizes);
  Computation* in_order = last_below(s, s.random.chance(0.5) ? 0.333 : 10);
  Instruction* last = s.b.reduce({x}, {s.b.constant(t, 5)}, in_order, dims);
  Instruction* sum = reduce_by(s, kAdd, s.random.chance(0.5) ? x : s.b.unary(kAbs, x), dims);
  s.keep(last);
  return s.random.chance(0.5) ? s.b.op(kAdd, {sum, last}) : sum;
}

// The same beside a result whose tiles cut the dimension where the operand's do not.
Instruction* order_beside_tiles(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  const Ints sizes = {s.random.pick(Ints{24, 40, 60, 100, 130}), s.random.pick(Ints{1, 3, 8, 17})};
  const Ints tiles = s.random.pick(std::vector<Ints>{{8, 12}, {12, 8}, {3, 8}, {5, 4}});
  auto tiled = [&](size_t k) {
    Layout l = Layout::descending(2);
    l.tiles = {Tile{{tiles[k], s.random.pick(Ints{2, 4})}}};
    return l;
  };
  Shape shape = Shape::array(DType::kF32, sizes);
  shape.layout = tiled(0);
  Instruction* x = s.b.parameter(shape);
  Instruction* beside = s.keep(s.b.unary(s.random.chance(0.5) ? kNegate : kCosine, x));
  beside->shape.layout = tiled(1);
  s.draw.pinned.insert({x, beside});
  return s.b.reduce({x}, {s.b.constant(DType::kF32, 5)}, last_below(s, 0.333),
                    s.random.chance(0.5) ? Ints{0, 1} : Ints{0});
}

// Two sums of narrow floats in one computation, of more terms than such a float can count.
Instruction* joint_narrow_sums(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  DType t = s.random.chance(0.7) ? DType::kBF16 : DType::kF16;
  Ints sizes = long_sizes(s, 1'000, 6'000);
  Builder b(s.draw.module, "sums");
  Builder::Values p;
  for (int k = 0; k < 4; ++k) p.push_back(b.parameter(Shape::scalar(t)));
  b.build(b.tuple({b.op(kAdd, {p[0], p[2]}), b.op(kAdd, {p[1], p[3]})}));
  Instruction* zero = s.b.constant(t, 0);
  return s.b.reduce({terms(s, t, sizes), terms(s, t, sizes)}, {zero, zero}, b.computation(), long_dim(sizes));
}

// A product of a few rows and columns whose depth is long.
Instruction* long_dot(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  int64_t m = s.random.between(1, 9), n = s.random.between(1, 9), k = s.random.between(3'000, 60'000 / (m + n));
  bool deep_first = s.random.chance(0.4);
  Ints left = {m, k}, right = {k, n};
  if (deep_first) std::swap(left[0], left[1]);
  DotDims dims;
  dims.lhs_contracting = {deep_first ? 0 : 1};
  dims.rhs_contracting = {0};
  // Not f64: the evaluator, too, adds its products one by one.
  DType t = s.random.chance(0.8) ? DType::kF32 : DType::kBF16;
  return s.b.dot_general(terms(s, t, left), terms(s, t, right), dims);
}

// A computation of comparisons and selections only, on elements of several parts: one test of the two elements for all
// parts, or a test for each, or none at all.
Computation* selection(Draft& s, const std::vector<DType>& types) {
  Builder b(s.draw.module, "selection");
  Builder::Values before, now, results;
  for (DType t : types) before.push_back(b.parameter(Shape::scalar(t)));
  for (DType t : types) now.push_back(b.parameter(Shape::scalar(t)));
  auto comparison = [&] {
    auto k = static_cast<size_t>(s.random.below(std::ssize(types)));
    return b.compare(static_cast<Direction>(s.random.below(6)), before[k], now[k]);
  };
  auto test = [&] {
    Instruction* p = comparison();
    for (int64_t n = s.random.pick(Ints{0, 0, 1, 2}); n > 0; --n) {
      p = b.op(s.random.chance(0.5) ? kAnd : kOr, {p, comparison()});
    }
    return p;
  };
  Instruction* common = test();
  for (size_t k = 0; k < types.size(); ++k) {
    switch (s.random.below(8)) {
      case 0: results.push_back(s.random.chance(0.5) ? before[k] : now[k]); break;
      case 1: results.push_back(b.op(s.random.chance(0.5) ? kMaximum : kMinimum, {before[k], now[k]})); break;
      case 2: results.push_back(b.op(kSelect, {test(), before[k], now[k]})); break;
      default: results.push_back(b.op(kSelect, {common, before[k], now[k]})); break;
    }
  }
  return b.build(results.size() == 1 ? results[0] : b.tuple(results));
}

// Few different values, so that many are equal.
Instruction* with_equals(Draft& s, Instruction* x) {
  DType t = x->shape.type;
  if (is_float(t)) return s.random.chance(0.1) ? s.b.unary(kLog, s.small(x, 2)) : s.small(x, 2);
  return is_pred(t) ? x : s.b.op(kAnd, {x, s.splat(t, dtype_bits(t) > 2 ? 3 : 1, x->shape.dims)});
}

Instruction* select_elements(Draft& s) {
  DType t = s.type();
  if (is_complex(t)) return nullptr;
  Ints sizes = {s.random.pick(Ints{9, 16, 33, 64, 100, 130, 300})};
  if (s.random.chance(0.5)) sizes.insert(sizes.begin() + s.random.below(2), s.random.between(1, 9));
  int64_t along = long_dim(sizes)[0];
  Builder::Values arrays = {with_equals(s, s.of(t, sizes))}, starts = {s.of(t, {})};
  std::vector<DType> types = {t};
  for (int64_t n = s.random.pick(Ints{0, 1, 1, 2}); n > 0; --n) {
    bool counts = s.random.chance(0.7);
    DType u = counts ? s.random.pick(std::vector{DType::kS32, DType::kS32, DType::kU32, DType::kS64}) : s.type();
    if (is_complex(u)) continue;
    arrays.push_back(counts ? s.b.iota(Shape::array(u, sizes), along) : with_equals(s, s.of(u, sizes)));
    starts.push_back(counts ? s.b.constant(u, 0) : s.of(u, {}));
    types.push_back(u);
  }
  if (s.random.chance(0.3)) s.keep(s.b.unary(kCopy, arrays[0]));  // whose tiles cut the dimension otherwise
  return s.b.reduce(arrays, starts, selection(s, types),
                    s.random.chance(0.8) ? Ints{along} : s.permutation(std::ssize(sizes)));
}

}  // namespace

Family long_sum_family() { return {"long sums", {{long_sum, 8}, {sum_beside_order, 8}, {long_dot, 4}}, 0.1}; }
Family joint_sum_family() { return {"joint sums", {{joint_narrow_sums, 12}}, 0.03}; }
Family tiled_order_family() { return {"order beside tiles", {{order_beside_tiles, 20}}, 0.03}; }
Family selection_family() { return {"selections", {{select_elements, 30}}, 0.15}; }

}  // namespace hlojit::tools::fuzz

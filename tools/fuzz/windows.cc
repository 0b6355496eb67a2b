// Windows that slide, pick and accumulate: reduce-window, select-and-scatter, scan.
#include <algorithm>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

std::vector<WindowDim> window(Draft& s, const Shape& shape) {
  std::vector<WindowDim> dims;
  for (int64_t size : shape.dims) {
    WindowDim w;
    if (s.random.chance(0.6)) {
      w.size = s.random.between(1, 4);
      w.stride = s.random.between(1, 3);
      w.pad_low = s.random.between(-1, 3);
      w.pad_high = s.random.between(-1, 3);
      if (s.random.chance(0.15)) w.lhs_dilate = s.random.between(2, 3);
      if (s.random.chance(0.15)) w.rhs_dilate = s.random.between(2, 3);
      if (s.random.chance(0.25)) {  // a prefix or a suffix, in whole or in part
        w = {.size = std::max<int64_t>(s.random.chance(0.8) ? size : size / 2, 1)};
        (s.random.chance(0.5) ? w.pad_low : w.pad_high) = w.size - 1;
      }
    }
    dims.push_back(w);
  }
  return dims;
}

// A combination, its neutral start (or, for what is not associative, any) and an operand fit for it.
struct Combination {
  Computation* computation;
  Instruction *x, *init;
};

Combination combination(Draft& s, Instruction* x) {
  DType t = x->shape.type;
  Opcode op = is_pred(t)                              ? s.random.pick(std::vector{kOr, kAnd, kXor})
              : is_complex(t) || s.random.chance(0.5) ? kAdd
              : is_float(t)                           ? s.random.pick(std::vector{kMaximum, kMinimum, kMultiply})
                                                      : s.random.pick(std::vector{kMaximum, kMinimum, kMultiply, kOr});
  double start = is_pred(t) ? (op == kAnd ? 1 : 0) : op == kMultiply ? 1 : op == kMaximum ? -2 : op == kMinimum ? 3 : 0;
  if (!is_signed(t) && !is_float(t) && !is_complex(t)) start = std::max(start, 0.0);
  if (dtype_bits(t) <= 2) start = std::min(start, 1.0);
  if (is_float(t)) x = s.small(x, op == kMultiply ? 1 : 2);
  if (is_complex(t)) x = s.b.op(kComplex, {s.small(s.b.unary(kReal, x), 2), s.small(s.b.unary(kImag, x), 2)});
  Instruction* init = s.b.constant(t, start);
  const bool loops = s.draw.rules_loop;
  if (s.random.chance(loops ? 1 : 0.15)) return {applied_rule(s, {t}, loops ? 1 : 0.02), x, init};
  return {combiner(s, op, t), x, init};
}

// Combined in another precision than the arrays', which the initial value may have, too.
void mix(Draft& s, Combination& c) {
  using enum DType;
  DType t = s.random.pick(std::vector{kF32, kF32, kF64, kBF16, kF16});
  c.computation = combiner(s, s.random.pick(std::vector{kAdd, kMaximum, kMinimum}), t);
  if (s.random.chance(0.5)) c.init = s.b.convert(c.init, t);
}

// What windows start from between the elements and around, as gradients of strided windows have it.
void spread(Draft& s, Combination& c) {
  std::vector<PadDim> padding;
  Ints sizes;
  for (int64_t size : c.x->shape.dims) {
    PadDim p;
    if (s.random.chance(0.6))
      p = {s.random.between(size > 2 ? -1 : 0, 3), s.random.between(0, 3), s.random.between(0, 2)};
    padding.push_back(p);
    sizes.push_back(size * (p.interior + 1) + 6);
  }
  if (s.fits(sizes)) c.x = s.b.pad(c.x, c.init, padding);
}

}  // namespace

Instruction* windows_of(Draft& s, Instruction* x) {
  Combination c = combination(s, x);
  if (s.random.chance(0.2)) spread(s, c);
  const Shape& seen = c.x->shape;
  if (is_float(x->shape.type) && s.random.chance(0.3)) mix(s, c);
  std::vector<WindowDim> w = window(s, seen);
  Ints sizes;
  for (size_t d = 0; d < w.size(); ++d) sizes.push_back(seen.dims[d] * w[d].lhs_dilate + 8);
  return s.fits(sizes) ? s.b.reduce_window({c.x}, {c.init}, c.computation, w) : nullptr;
}

namespace {

Instruction* reduce_window(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && v.rank() <= 4; });
  return x ? windows_of(s, x) : nullptr;
}

// The greatest of each window and where it stands, and the like: several values at once, in order.
Instruction* joint_window(Draft& s) {
  Instruction* x = s.any([](const Shape& v) {
    return v.rank() >= 1 && v.rank() <= 3 && !is_complex(v.type) && !is_pred(v.type) && dtype_bits(v.type) >= 8;
  });
  if (!x) return nullptr;
  DType t = x->shape.type;
  Instruction* at = s.b.iota(Shape::array(DType::kS32, x->shape.dims), s.random.below(x->shape.rank()));
  Builder b(s.draw.module, "joint");
  Instruction* v = b.parameter(Shape::scalar(t));
  Instruction* i = b.parameter(Shape::scalar(DType::kS32));
  Instruction* w = b.parameter(Shape::scalar(t));
  Instruction* j = b.parameter(Shape::scalar(DType::kS32));
  Instruction* take = b.compare(s.random.chance(0.5) ? Direction::kGt : Direction::kLe, w, v);
  b.build(b.tuple({b.op(kSelect, {take, w, v}), b.op(kSelect, {take, j, i})}));
  return s.b.reduce_window({x, at}, {s.b.constant(t, 0), s.b.constant(DType::kS32, -1)}, b.computation(),
                           window(s, x->shape));
}

// All elements up to each, or from it on, along one dimension: in one running value or, beyond a few hundred, in
// blocks.
Instruction* running_window(Draft& s) {
  DType t = s.type();
  int64_t n = s.random.pick(Ints{7, 40, 130, 257, 300, 400});
  Ints sizes = {n};
  if (s.random.chance(0.6)) sizes.insert(sizes.begin() + s.random.below(2), s.random.between(1, 6));
  Instruction* x = s.draw.depth == 0 ? s.of(t, sizes) : nullptr;
  if (!x) return nullptr;
  Combination c = combination(s, x);
  if (is_float(t) && s.random.chance(0.5)) mix(s, c);
  std::vector<WindowDim> w(sizes.size());
  WindowDim& along = w[sizes[0] == n ? 0 : 1];
  along.size = n;
  (s.random.chance(0.6) ? along.pad_low : along.pad_high) = n - 1;
  return s.b.reduce_window({c.x}, {c.init}, c.computation, w);
}

// So long that few fit in: a reduction each.
Instruction* long_window(Draft& s) {
  DType t = s.type();
  const int64_t size = s.random.pick(Ints{64, 65, 100, 130, 257}), stride = s.random.between(1, 40);
  Ints sizes = {size + stride * s.random.between(0, 4) + s.random.between(0, stride - 1)};
  std::vector<WindowDim> w = {{.size = size, .stride = stride}};
  if (s.random.chance(0.6)) sizes.insert(sizes.begin(), s.random.between(1, 6)), w.insert(w.begin(), WindowDim{});
  if (s.random.chance(0.3)) sizes.push_back(s.random.between(1, 2)), w.emplace_back();
  Instruction* x = s.draw.depth == 0 ? s.of(t, sizes) : nullptr;
  if (!x) return nullptr;
  Combination c = combination(s, x);
  return s.b.reduce_window({c.x}, {c.init}, c.computation, w);
}

// A few elements of several arrays in a row, so few that all positions are known where code is made.
Instruction* joined(Draft& s, DType t) {
  Builder::Values parts;
  for (int64_t n = s.random.between(2, 3); n > 0; --n) parts.push_back(s.of(t, {s.random.between(1, 3)}));
  Instruction* all = s.b.concat_in_dim(parts, 0);
  if (!is_pred(t) && !is_unsigned(t) && s.random.chance(0.5)) all = s.b.unary(kNegate, all);
  return s.random.chance(0.2) ? s.b.rev(all, {0}) : all;
}

Instruction* joined_window(Draft& s) {
  Instruction* x = joined(s, s.type());
  WindowDim w{.size = s.random.between(1, 3), .pad_low = s.random.between(0, 2), .pad_high = s.random.between(0, 2)};
  std::vector<WindowDim> dims = {w};
  if (s.random.chance(0.5)) x = s.b.reshape(x, {x->shape.dims[0], 1}), dims.emplace_back();
  Combination c = combination(s, x);
  return s.b.reduce_window({c.x}, {c.init}, c.computation, dims);
}

Instruction* joined_convolution(Draft& s) {
  DType t = s.random.chance(0.7) ? DType::kF32 : s.type();
  if (is_pred(t) || is_complex(t) || dtype_bits(t) < 16) return nullptr;
  auto exact = [&](Instruction* x) { return is_float(t) ? s.small(x, 2) : x; };
  Instruction* x = joined(s, t);
  int64_t size = s.random.between(1, 3);
  Instruction* k = s.b.reshape(exact(s.of(t, {size})), {1, 1, size});
  WindowDim w{.size = size, .pad_low = s.random.between(0, 2), .pad_high = s.random.between(0, 2)};
  w.reversal = s.random.chance(0.3);
  x = s.b.reshape(exact(x), {1, 1, x->shape.dims[0]});
  return s.b.conv(x, k, {w}, ConvDims{0, 1, 1, 0, 0, 1, {2}, {2}, {2}}, 1, 1);
}

}  // namespace

Instruction* picked_of(Draft& s, Instruction* x) {
  if (is_complex(x->shape.type)) return nullptr;
  DType t = x->shape.type;
  Attributes a;
  Ints source;
  for (int64_t n : x->shape.dims) {
    WindowDim w{.size = s.random.between(1, 3), .stride = s.random.between(1, 3)};
    if (s.random.chance(0.4)) w.pad_low = s.random.between(0, 2), w.pad_high = s.random.between(0, 2);
    int64_t padded = n + w.pad_low + w.pad_high;
    source.push_back(padded < w.size ? 0 : (padded - w.size) / w.stride + 1);
    a.window.push_back(w);
  }
  Builder b(s.draw.module, "better");
  Instruction* p = b.parameter(Shape::scalar(t));
  Instruction* q = b.parameter(Shape::scalar(t));
  Direction d = s.random.pick(std::vector{Direction::kGe, Direction::kGe, Direction::kGt, Direction::kLe});
  if (s.random.chance(0.2)) {  // by a key
    Computation* key = applied(s, {t}, {t}, s.draw.rules_loop ? Loops::kMaybe : Loops::kNone);
    p = b.call(key, {p}), q = b.call(key, {q});
  }
  b.build(b.compare(d, p, q));
  Combination c = combination(s, s.of(t, source));
  return s.b.op(kSelectAndScatter, {x, c.x, c.init}, std::move(a), {b.computation(), c.computation});
}

namespace {

Instruction* select_and_scatter(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && v.rank() <= 3 && !is_complex(v.type); });
  return x ? picked_of(s, x) : nullptr;
}

// Sums of windows over rows, some of which lie outside: many elements are divided by one inside, and so is, at the same
// place of the loops, what the sums are part of.
Instruction* divided_windows(Draft& s) {
  const DType t = s.random.chance(0.8) ? DType::kF32 : DType::kF64;
  const int64_t rows = s.random.between(3, 9), length = s.random.between(130, 300);
  if (s.draw.depth > 0) return nullptr;
  auto divided = [&](Instruction* x) {
    Instruction* by = s.of(t, {x->shape.dims[0]});
    return s.b.op(kDivide, {x, s.b.broadcast_in_dim(by, x->shape.dims, {0})});
  };
  Instruction* terms = divided(s.of(t, {rows, length}));
  for (int64_t n = s.random.between(0, 2); n > 0; --n) terms = s.b.op(kAdd, {terms, divided(s.of(t, {rows, length}))});
  const WindowDim along{.size = length};
  const WindowDim down{.size = s.random.between(1, 2), .stride = s.random.between(1, 3), .pad_low = 1, .pad_high = 1};
  Instruction* sums =
      s.b.reduce_window({s.limited(terms, 8)}, {s.b.constant(t, 0)}, combiner(s, kAdd, t), {down, along});
  const int64_t count = sums->shape.dims[0];
  const Ints sizes = {count, s.random.between(130, 300)};
  return divided(s.b.op(kMultiply, {s.of(t, sizes), s.b.broadcast_in_dim(s.b.reshape(sums, {count}), sizes, {0})}));
}

// A loop over the slices of one dimension that carries a value along.
Instruction* scan(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && v.rank() <= 3 && dtype_bits(v.type) >= 8; });
  if (!x || is_complex(x->shape.type)) return nullptr;
  if (is_float(x->shape.type)) x = s.small(x, 2);
  DType t = x->shape.type;
  int64_t d = s.random.below(x->shape.rank());
  Ints slice = x->shape.dims;
  slice.erase(slice.begin() + d);
  Instruction* start = s.of(t, slice);
  if (is_float(t)) start = s.small(start, 2);
  Builder b(s.draw.module, "step");
  Instruction* in = b.parameter(Shape::array(t, slice));
  Instruction* carry = b.parameter(Shape::array(t, slice));
  Instruction* next = b.op(is_pred(t) ? kXor : s.random.pick(std::vector{kAdd, kMaximum, kSubtract}), {in, carry});
  if (is_float(t)) next = b.op(kClamp, {b.constant(t, -64), next, b.constant(t, 64)});
  b.build(b.tuple({s.random.chance(0.5) ? next : b.unary(is_pred(t) ? kNot : kCopy, carry), next}));
  Attributes a;
  a.dimensions = {d};
  a.has_dimensions = true;
  a.other.emplace_back("num_carries", "1");
  if (s.random.chance(0.4)) a.other.emplace_back("is_reverse", "true");
  return s.b.op(kScan, {x, start}, std::move(a), {b.computation()});
}

}  // namespace

Family window_family() { return {"windows", {{reduce_window, 5}, {joint_window, 1}, {select_and_scatter, 3}}, 0.08}; }
Family running_window_family() { return {"running windows", {{running_window, 20}, {long_window, 8}}, 0.05}; }
Family joined_window_family() { return {"windows over parts", {{joined_window, 12}, {joined_convolution, 8}}, 0.05}; }
Family divided_window_family() { return {"windows over quotients", {{divided_windows, 8}}, 0.03}; }
Family scan_family() { return {"scan", {{scan, 3}}, 0.03}; }

}  // namespace hlojit::tools::fuzz

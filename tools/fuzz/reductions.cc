// Reductions: of one value and of several, by computations that reorder and by some that must not be, and
// chains of them over one domain with dear values between.
#include <algorithm>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

double identity(Opcode op, DType type) {
  if (op == kAdd || op == kOr || op == kXor) return 0;
  if (op == kMultiply) return 1;
  if (is_pred(type)) return op == kAnd || op == kMinimum ? 1 : 0;
  if (is_float(type)) return op == kMaximum ? -INFINITY : INFINITY;
  int bits = dtype_bits(type);
  if (op == kAnd) return -1;
  bool low = op == kMaximum;
  if (!is_signed(type)) return low ? 0 : -1;
  return low ? -0x1p0 * static_cast<double>(uint64_t{1} << (bits - 1)) : -2;
}

// The identity as bits: doubles do not hold all of s64, and -1 stands for all ones, -2 for the greatest.
Instruction* init_value(Draft& s, Opcode op, DType type) {
  double value = identity(op, type);
  Literal l(Shape::scalar(type));
  if (is_float(type))
    l.set_double(0, value);
  else if (is_complex(type))
    l.set_complex(0, {value, 0});
  else if (value == -2)
    l.set_int(0, static_cast<int64_t>((uint64_t{1} << (dtype_bits(type) - 1)) - 1));
  else
    l.set_int(0, static_cast<int64_t>(value));
  return s.b.constant(std::move(l));
}

Ints reduced_dims(Draft& s, const Shape& shape) {
  Ints dims = s.some(shape.rank());
  if (dims.empty() && shape.rank() > 0 && s.random.chance(0.9)) dims = {s.random.below(shape.rank())};
  if (s.random.chance(0.2)) s.random.shuffle(dims);
  return dims;
}

int64_t count(const Shape& shape, const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape.dims[static_cast<size_t>(d)];
  return n;
}

}  // namespace

Instruction* reduce_by(Draft& s, Opcode op, Instruction* x, const Ints& dims) {
  return s.b.reduce({x}, {init_value(s, op, x->shape.type)}, combiner(s, op, x->shape.type), dims);
}

namespace {

Opcode reduction_of(Draft& s, DType type) {
  if (is_pred(type)) return s.random.pick(std::vector{kAnd, kOr, kXor});
  if (is_complex(type)) return kAdd;
  if (is_float(type)) return s.random.pick(std::vector{kAdd, kAdd, kAdd, kMaximum, kMinimum, kMultiply});
  return s.random.pick(std::vector{kAdd, kAdd, kMaximum, kMinimum, kMultiply, kAnd, kOr, kXor});
}

// Values whose combination is exact in any order, as far as the type can hold it.
Instruction* exact(Draft& s, Opcode op, Instruction* x, int64_t n) {
  if (op == kMultiply) return s.b.unary(kSign, x);
  if (op != kAdd) return x;
  double room = dtype_bits(x->shape.type) == 16 ? 200 : dtype_bits(x->shape.type) > 16 ? 1e6 : 4;
  return s.small(x, std::clamp(room / static_cast<double>(std::max<int64_t>(n, 1)), 1.0, 8.0));
}

Instruction* reduce(Draft& s) {
  Instruction* x = s.any();
  Opcode op = reduction_of(s, x->shape.type);
  Ints dims = reduced_dims(s, x->shape);
  if (is_float(x->shape.type) && (!s.draw.tame || op == kMultiply || s.random.chance(0.3))) {
    x = exact(s, op, x, count(x->shape, dims));
  }
  return reduce_by(s, op, x, dims);
}

// Greatest or least element and where it stands; ties go to the lower index.
Computation* argument_combiner(Draft& s, DType type, DType index, bool greatest) {
  Builder b(s.draw.module, "arg");
  Instruction* v0 = b.parameter(Shape::scalar(type));
  Instruction* i0 = b.parameter(Shape::scalar(index));
  Instruction* v1 = b.parameter(Shape::scalar(type));
  Instruction* i1 = b.parameter(Shape::scalar(index));
  if (s.random.chance(0.3)) {  // no word on equals: the order of the elements decides
    Direction d = s.random.pick(std::vector{Direction::kGt, Direction::kGe, Direction::kLt, Direction::kLe});
    Instruction* stays = b.compare(d, v0, v1);
    return b.build(b.tuple({b.op(kSelect, {stays, v0, v1}), b.op(kSelect, {stays, i0, i1})}));
  }
  Instruction* better = b.compare(greatest ? Direction::kGt : Direction::kLt, v0, v1);
  if (is_float(type) && s.random.chance(0.7)) better = b.op(kOr, {better, b.compare(Direction::kNe, v0, v0)});
  Instruction* first = b.op(kAnd, {b.compare(Direction::kEq, v0, v1), b.compare(Direction::kLt, i0, i1)});
  Instruction* take = b.op(kOr, {better, first});
  return b.build(b.tuple({b.op(kSelect, {better, v0, v1}), b.op(kSelect, {take, i0, i1})}));
}

Instruction* argmax(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && !is_pred(v.type) && !is_complex(v.type); });
  if (!x) return nullptr;
  DType t = x->shape.type, index = s.random.chance(0.7) ? DType::kS32 : DType::kS64;
  int64_t d = s.random.below(x->shape.rank());
  bool greatest = s.random.chance(0.6);
  Instruction* positions =
      s.random.chance(0.8) ? s.b.iota(Shape::array(index, x->shape.dims), d) : s.of(index, x->shape.dims);
  if (is_float(t) && s.random.chance(0.3)) x = s.small(x, 2);  // has equals
  return s.b.reduce({x, positions}, {init_value(s, greatest ? kMaximum : kMinimum, t), s.b.constant(index, 0)},
                    argument_combiner(s, t, index, greatest), {d});
}

// Several values at once: sum and maximum, sum and sum of squares.
Instruction* joint(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && !is_pred(v.type) && !is_complex(v.type); });
  if (!x) return nullptr;
  Instruction* y = s.of(s.random.chance(0.5) ? x->shape.type : DType::kS32, x->shape.dims);
  Ints dims = reduced_dims(s, x->shape);
  Builder b(s.draw.module, "joint");
  Opcode f = reduction_of(s, x->shape.type), g = reduction_of(s, y->shape.type);
  if (is_float(x->shape.type)) x = exact(s, f, x, count(x->shape, dims));
  if (is_float(y->shape.type)) y = exact(s, g, y, count(y->shape, dims));
  DType t = x->shape.type, u = y->shape.type;
  Instruction* a0 = b.parameter(Shape::scalar(t));
  Instruction* b0 = b.parameter(Shape::scalar(u));
  Instruction* a1 = b.parameter(Shape::scalar(t));
  Instruction* b1 = b.parameter(Shape::scalar(u));
  b.build(b.tuple({b.op(f, {a0, a1}), b.op(g, {b0, b1})}));
  return s.b.reduce({x, y}, {init_value(s, f, t), init_value(s, g, u)}, b.computation(), dims);
}

// Computations that look like selections and depend on the order: it is row-major over the operand.
Instruction* ordered(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && !is_complex(v.type); });
  if (!x) return nullptr;
  DType t = x->shape.type;
  bool bits = is_integral(t) || is_pred(t);
  Builder b(s.draw.module, "ordered");
  Instruction* x0 = b.parameter(Shape::scalar(t));
  Instruction* x1 = b.parameter(Shape::scalar(t));
  Instruction* root = x1;
  switch (s.random.below(5)) {
    case 0: break;
    case 1: root = x0; break;
    case 2: root = bits ? b.op(kOr, {b.op(kAnd, {x0, x1}), b.unary(kNot, x1)}) : b.unary(kAbs, x1); break;
    case 3: root = is_pred(t) ? b.op(kAnd, {x0, b.unary(kNot, x1)}) : b.op(kSubtract, {x1, x0}); break;
    case 4: {  // the last that is beyond a bound few are beyond: lanes on their own would not know which is last
      Direction far = is_pred(t) ? Direction::kEq : Direction::kLt;
      root = b.op(kSelect, {b.compare(far, x1, b.constant(t, is_pred(t) ? 0 : 3)), x0, x1});
      break;
    }
  }
  b.build(root);
  Instruction* init = s.b.constant(t, is_pred(t) ? static_cast<double>(s.random.below(2)) : 1);
  if (is_float(t)) x = s.small(x, 4);
  return s.b.reduce({x}, {init}, b.computation(), reduced_dims(s, x->shape));
}

}  // namespace

Family reduction_family() { return {"reductions", {{reduce, 8}, {argmax, 2}, {joint, 2}, {ordered, 2}}, 0.6}; }

namespace {

// The dimensions a chain is over, and how to go down to the rest and back.
struct Domain {
  Draft& s;
  Ints sizes, dims, kept;
  Instruction* sum(Instruction* x) {
    if (!s.draw.tame) x = exact(s, kAdd, x, count(x->shape, dims));
    return reduce_by(s, kAdd, x, dims);
  }
  Instruction* greatest(Instruction* x) { return reduce_by(s, kMaximum, x, dims); }
  Instruction* back(Instruction* x) { return s.b.broadcast_in_dim(x, sizes, kept); }
};

// A random walk of reductions whose results feed the values that the next ones reduce.
Instruction* chain(Draft& s) {
  Instruction* x = s.any([&](const Shape& v) { return is_float(v.type) && v.rank() >= 1 && dtype_bits(v.type) >= 16; });
  if (!x) return nullptr;
  Domain d{s, x->shape.dims, {}, {}};
  d.dims = reduced_dims(s, x->shape);
  std::ranges::sort(d.dims);
  for (int64_t k = 0; k < x->shape.rank(); ++k) {
    if (std::ranges::find(d.dims, k) == d.dims.end()) d.kept.push_back(k);
  }
  std::vector<Instruction*> full = {x}, reduced;
  auto value = [&] {
    return reduced.empty() || s.random.chance(0.5) ? s.random.pick(full) : d.back(s.random.pick(reduced));
  };
  for (int64_t n = s.random.between(4, 10); n > 0; --n) {
    switch (s.random.below(7)) {
      case 0: reduced.push_back(d.greatest(s.random.pick(full))); break;
      case 1:
      case 2: reduced.push_back(d.sum(s.random.pick(full))); break;
      case 3:
        full.push_back(s.b.unary(kExponential, s.limited(s.b.op(kSubtract, {s.random.pick(full), value()}), 4)));
        break;
      case 4: full.push_back(s.b.op(kSubtract, {s.random.pick(full), value()})); break;
      case 5: full.push_back(s.limited(s.b.op(kMultiply, {s.random.pick(full), value()}), 64)); break;
      case 6: full.push_back(s.b.unary(kTanh, value())); break;
    }
  }
  if (!reduced.empty() && s.random.chance(0.5)) s.keep(s.random.pick(reduced));
  return s.random.chance(0.8) || reduced.empty() ? s.b.op(kMultiply, {full.back(), value()}) : d.back(reduced.back());
}

Instruction* softmax(Draft& s) {
  Instruction* x = s.any([&](const Shape& v) { return is_float(v.type) && v.rank() >= 1 && dtype_bits(v.type) >= 16; });
  if (!x) return nullptr;
  int64_t dim = s.random.below(x->shape.rank());
  Domain d{s, x->shape.dims, {dim}, {}};
  for (int64_t k = 0; k < x->shape.rank(); ++k) {
    if (k != dim) d.kept.push_back(k);
  }
  Instruction* e = s.b.unary(kExponential, s.b.op(kSubtract, {x, d.back(d.greatest(x))}));
  Instruction* sum = d.sum(e);
  if (s.random.chance(0.3)) return s.b.op(kSubtract, {x, d.back(s.b.unary(kLog, sum))});
  return s.b.op(kDivide, {e, d.back(sum)});
}

// Columns that are cut for several tasks, but not into equal parts; what is made of them may have the memory of what is
// added to them.
Instruction* wide_columns(Draft& s) {
  const DType t = s.type();
  if (is_complex(t) || s.draw.depth > 0) return nullptr;
  const int64_t columns = s.random.between(257, 1500), rows = s.random.between(200'000, 400'000) / columns;
  const Opcode op = reduction_of(s, t);
  Instruction* x = s.of(t, {rows, columns});
  if (is_float(t)) x = exact(s, op, x, rows);
  Instruction* all = reduce_by(s, op, x, {0});
  if (s.random.chance(0.3)) return all;
  Instruction* more = s.of(t, {columns});
  return is_pred(t) ? s.b.binary(kXor, all, more) : s.b.binary(kMaximum, all, more);
}

// What a reducer returns as a tuple of one, and so does the reduction.
Instruction* tuple_of_one(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1; });
  if (!x) return nullptr;
  const DType t = x->shape.type;
  const Opcode op = reduction_of(s, t);
  if (is_float(t)) x = exact(s, op, x, x->shape.element_count());
  Builder b(s.draw.module, "one");
  Instruction* p = b.parameter(Shape::scalar(t));
  Instruction* q = b.parameter(Shape::scalar(t));
  b.build(b.tuple({b.op(op, {p, q})}));
  Instruction* init = init_value(s, op, t);
  if (s.random.chance(0.6)) return s.b.reduce({x}, {init}, b.computation(), reduced_dims(s, x->shape));
  std::vector<WindowDim> window(x->shape.dims.size());
  for (WindowDim& w : window) w.size = s.random.between(1, 3), w.pad_low = s.random.between(0, w.size - 1);
  return s.b.reduce_window({x}, {init}, b.computation(), window);
}

// Sums and products of integers, in wider ones, of which few bits are wanted.
Instruction* narrowed_sum(Draft& s) {
  using enum DType;
  const DType narrow = s.random.pick(std::vector{kU8, kS8, kU16, kPred, kS16, kU4});
  const DType wide = s.random.pick(std::vector{kU32, kS32, kS64, kU16}),
              to = s.random.pick(std::vector{kU8, kS8, kU16, kS16, kU4});
  Ints sizes = {s.random.between(1, 150), s.random.between(1, 9)};
  if (s.random.chance(0.5)) sizes[1] = 8;
  if (s.random.chance(0.3)) sizes.insert(sizes.begin() + s.random.below(2), s.random.between(1, 70));
  Instruction* x = s.b.convert(s.of(narrow, sizes), wide);
  const Opcode op = s.random.pick(std::vector{kAdd, kAdd, kMultiply, kMaximum});
  const int64_t d = s.random.chance(0.7) ? std::ssize(sizes) - 1 : s.random.below(std::ssize(sizes));
  Instruction* init = s.random.chance(0.5) ? init_value(s, op, wide) : s.of(wide, {});
  return s.b.convert(s.b.reduce({x}, {init}, combiner(s, op, wide), {d}), to);
}

// Rows of bf16 of some vectors, computed with beside what is known by its place and other types, and what they add up
// to.
Instruction* bfloat_rows(Draft& s) {
  using enum DType;
  const Ints sizes = {s.random.between(1, 9), s.random.between(30, 400)};
  const int64_t d = s.random.below(2);
  auto along = [&](Instruction* x) { return s.b.broadcast_in_dim(x, sizes, {d}); };
  const Ints side = {sizes[static_cast<size_t>(d)]};
  Instruction* x = s.small(s.of(kBF16, sizes), 8);
  for (int64_t n = s.random.between(1, 3); n > 0; --n) {
    switch (s.random.below(5)) {
      case 0: x = s.b.binary(kMaximum, x, along(s.b.iota(Shape::array(kBF16, side), 0))); break;
      case 1: x = s.b.binary(kAdd, x, s.b.convert(along(s.small(s.of(kF32, side), 4)), kBF16)); break;
      case 2: x = s.b.select(s.of(kPred, sizes), x, s.small(s.of(kBF16, sizes), 8)); break;
      case 3:
        x = s.b.binary(kMultiply, x, s.b.convert(s.of(s.random.pick(std::vector{kS4, kU8, kPred}), sizes), kBF16));
        break;
      default: x = s.b.binary(kSubtract, x, along(s.small(s.of(kBF16, side), 8))); break;
    }
  }
  switch (s.random.below(4)) {
    case 0: return reduce_by(s, kAdd, s.small(s.b.convert(x, kF32), 64), {s.random.below(2)});
    case 1: return reduce_by(s, kMaximum, x, {s.random.below(2)});
    case 2: return s.keep(s.b.compare(Direction::kLt, x, s.of(kBF16, sizes))), x;
    default: return x;
  }
}

// Powers of e that cannot overflow by their form, and such as miss it by one thing: the largest along another dim, of
// another array, or of what was narrowed; a factor that is not the same twice; a bound above zero; a divisor that is
// zero.
Instruction* falling_power(Draft& s) {
  using enum DType;
  const DType t = s.random.pick(std::vector{kF32, kF32, kF32, kF64, kBF16, kF16});
  const int64_t n = s.random.between(1, 40);
  const Ints sizes = {n, s.random.chance(0.7) ? n : s.random.between(1, 40)};
  // Far apart, whatever the values at hand are.
  auto large = [&] {
    Instruction* place = s.b.iota(Shape::array(t, sizes), s.random.below(2));
    return s.b.op(kAdd, {s.limited(s.of(t, sizes), 8), s.b.op(kMultiply, {place, s.splat(t, 11, sizes)})});
  };
  Instruction *x = large(), *y = s.random.chance(0.8) ? x : large();
  auto largest = [&] {
    const int64_t d = s.random.below(2), back = s.random.chance(0.7) || sizes[0] != sizes[1] ? 1 - d : d;
    const bool narrows = t != kF16 && s.random.chance(0.2);
    Instruction* of = narrows ? s.b.convert(s.b.convert(y, kF16), t) : y;
    if (s.random.chance(0.2)) of = s.b.convert(of, kF64);
    Instruction* most = reduce_by(s, kMaximum, of, {d});
    if (most->shape.type != t) most = s.b.convert(most, t);
    if (s.random.chance(0.3)) most = s.b.op(kMaximum, {most, s.splat(t, -10, most->shape.dims)});
    return s.b.broadcast_in_dim(most, sizes, {back});
  };
  // Of few values, so that some are zero, of either sign.
  auto divisor = [&] {
    Instruction* d = s.limited(s.of(t, sizes), 2);
    switch (s.random.below(4)) {
      case 0: return s.b.op(kMinimum, {d, s.splat(t, 0, sizes)});
      case 1: return s.b.unary(kAbs, d);
      case 2: return s.b.op(kMultiply, {d, d});
      default: return s.b.unary(kSqrt, s.b.unary(kNegate, s.b.unary(kAbs, d)));
    }
  };
  Instruction* power = nullptr;
  switch (s.random.below(7)) {
    case 0: power = s.b.unary(kNegate, s.b.op(kMultiply, {x, s.random.chance(0.3) ? s.b.unary(kNegate, y) : y})); break;
    case 1: power = s.b.unary(kNegate, s.b.unary(kAbs, x)); break;
    case 2: power = s.b.op(kMinimum, {x, s.splat(t, s.random.chance(0.5) ? 0 : 200, sizes)}); break;
    case 3: {
      Instruction* size = s.b.unary(kAbs, x);
      power = s.b.op(kDivide, {s.random.chance(0.5) ? size : s.b.unary(kNegate, size), divisor()});
      break;
    }
    default: power = s.b.op(kSubtract, {x, largest()}); break;
  }
  if (s.random.chance(0.2)) power = s.b.op(kMultiply, {power, s.splat(t, s.random.chance(0.7) ? 0.5 : -0.5, sizes)});
  if (s.random.chance(0.2)) power = s.b.select(s.of(kPred, sizes), power, s.splat(t, -INFINITY, sizes));
  return s.b.unary(kExponential, power);
}

}  // namespace

Family falling_power_family() { return {"falling powers", {{falling_power, 12}}, 0.05}; }
Family bfloat_row_family() { return {"rows of bf16", {{bfloat_rows, 10}}, 0.04}; }
Family narrowed_sum_family() { return {"narrowed sums", {{narrowed_sum, 8}}, 0.03}; }
Family tuple_of_one_family() { return {"tuples of one", {{tuple_of_one, 4}}, 0.03}; }
Family wide_column_family() { return {"wide columns", {{wide_columns, 8}}, 0.03}; }
Family chain_family() { return {"chains", {{chain, 4}, {softmax, 1}}, 0.4}; }

}  // namespace hlojit::tools::fuzz

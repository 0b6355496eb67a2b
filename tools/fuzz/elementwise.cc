// Elementwise ops on all types, and the little graphs of them that compilers get wrong.
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

const std::vector<Opcode> kFloatUnary = {kAbs,       kNegate,     kSign,     kFloor, kCeil,        kRoundAfz,
                                         kRoundEven, kSqrt,       kRsqrt,    kCbrt,  kExponential, kExponentialMinusOne,
                                         kLog,       kLogPlusOne, kLogistic, kTanh,  kSine,        kCosine,
                                         kTan,       kErf,        kIsFinite, kAcos,  kAcosh,       kAsin,
                                         kAsinh,     kAtanh,      kCosh,     kSinh,  kReal,        kImag};
const std::vector<Opcode> kSmoothUnary = {kAbs, kNegate, kTanh,        kLogistic,   kSine, kCosine,
                                          kErf, kTanh,   kExponential, kLogPlusOne, kSqrt, kRsqrt};
const std::vector<Opcode> kFloatBinary = {kAdd,    kAdd,     kSubtract, kSubtract,  kMultiply, kMultiply, kMultiply,
                                          kDivide, kMaximum, kMinimum,  kRemainder, kPower,    kAtan2};
const std::vector<Opcode> kSmoothBinary = {kAdd, kAdd, kSubtract, kSubtract, kMultiply, kMultiply, kMaximum, kMinimum};
const std::vector<Opcode> kIntUnary = {kAbs, kNegate, kNot, kPopcnt, kClz, kSign};
const std::vector<Opcode> kIntBinary = {kAdd,
                                        kSubtract,
                                        kMultiply,
                                        kMulHi,
                                        kDivide,
                                        kRemainder,
                                        kMaximum,
                                        kMinimum,
                                        kAnd,
                                        kOr,
                                        kXor,
                                        kShiftLeft,
                                        kShiftRightArithmetic,
                                        kShiftRightLogical,
                                        kPower};
const std::vector<Opcode> kComplexUnary = {
    kNegate, kReal,       kImag,     kAbs,   kSign,  kExponential, kExponentialMinusOne,
    kLog,    kLogPlusOne, kLogistic, kSqrt,  kRsqrt, kTan,         kTanh,
    kSine,   kCosine,     kAcos,     kAcosh, kAsin,  kAsinh,       kAtanh,
    kCosh,   kSinh};
const std::vector<Opcode> kComplexBinary = {kAdd, kSubtract, kMultiply, kMultiply, kDivide, kPower, kAtan2};
const std::vector<Opcode> kPredBinary = {kAnd, kOr, kXor, kAdd, kMultiply, kMaximum, kMinimum};

// Guards that keep values and their errors small.
Instruction* smooth(Draft& s, Opcode op, Instruction* x) {
  Builder& b = s.b;
  auto away_from_zero = [&] { return b.binary(kAdd, b.unary(kAbs, x), s.splat(x->shape.type, 0.5, x->shape.dims)); };
  if (op == kExponential) x = s.limited(x, 3);
  if (op == kLogPlusOne) x = b.unary(kAbs, x);
  if (op == kSqrt || op == kRsqrt) x = away_from_zero();
  return b.unary(op, x);
}

Instruction* unary(Draft& s) {
  Instruction* x = s.any();
  DType t = x->shape.type;
  if (is_pred(t)) return s.b.unary(kNot, x);
  if (is_complex(t)) return s.b.unary(s.random.pick(kComplexUnary), x);
  if (is_float(t)) {
    if (s.draw.tame) return smooth(s, s.random.pick(kSmoothUnary), x);
    return s.b.unary(s.random.pick(kFloatUnary), x);
  }
  Opcode op = s.random.pick(kIntUnary);
  if (!is_signed(t) && (op == kAbs || op == kNegate || op == kSign)) op = kNot;
  return s.b.unary(op, x);
}

Instruction* binary(Draft& s) {
  Instruction* x = s.any();
  DType t = x->shape.type;
  Instruction* y = s.of(x->shape);
  if (s.random.chance(0.3)) std::swap(x, y);
  if (is_pred(t)) return s.b.op(s.random.pick(kPredBinary), {x, y});
  if (is_complex(t)) return s.b.op(s.random.pick(kComplexBinary), {x, y});
  if (!is_float(t)) return s.b.op(s.random.pick(kIntBinary), {x, y});
  if (!s.draw.tame) return s.b.op(s.random.pick(kFloatBinary), {x, y});
  if (s.random.chance(0.15)) {
    return s.b.op(kDivide, {x, s.b.binary(kAdd, s.b.unary(kAbs, y), s.splat(t, 1, y->shape.dims))});
  }
  return s.limited(s.b.op(s.random.pick(kSmoothBinary), {x, y}), 100);
}

// JAX's x // n and x % n of integers, and what differs from them by a number or a direction.
Instruction* floor_division(Draft& s) {
  Instruction* x = s.any();
  const DType t = x->shape.type;
  if (!is_integral(t) || dtype_bits(t) < 8) return nullptr;
  const int64_t n = s.random.pick(Ints{1, 2, 4, 8, 64, 3, 10, -2, -7, 0});
  auto all = [&](int64_t v) { return s.splat(t, static_cast<double>(is_signed(t) ? v : std::abs(v)), x->shape.dims); };
  auto differs = [&](Instruction* a, int64_t v) {
    return s.b.compare(s.random.chance(0.95) ? Direction::kNe : Direction::kEq, a, all(v));
  };
  Instruction* rest = s.b.binary(kRemainder, x, all(n));
  Instruction* sign = is_signed(t) ? differs(s.b.unary(kSign, x), n < 0 ? -1 : 1) : differs(x, 0);
  if (s.random.chance(0.3)) {  // of a known n
    sign = s.b.compare(s.random.chance(0.95) ? Direction::kLt : Direction::kGt, rest, all(0));
    if (s.random.chance(0.5))
      sign = s.b.compare(Direction::kNe, sign, s.splat(DType::kPred, n < 0 ? 1 : 0, x->shape.dims));
  }
  Instruction* lower = s.b.binary(kAnd, sign, differs(rest, 0));
  if (s.random.chance(0.4)) return s.b.select(lower, s.b.binary(kAdd, rest, all(n)), rest);
  Instruction* q = s.b.binary(kDivide, x, all(n));
  return s.b.select(lower, s.b.binary(kSubtract, q, all(s.random.chance(0.9) ? 1 : 2)), q);
}

Instruction* compare(Draft& s) {
  Instruction* x = s.any();
  Instruction* y = s.of(x->shape);
  Direction d = static_cast<Direction>(s.random.below(is_complex(x->shape.type) ? 2 : 6));
  DType t = x->shape.type;
  CompareType type = CompareType::kDefault;  // or the same by name, or the order of all floats
  if (s.random.chance(0.3)) {
    type = is_signed(t)                   ? CompareType::kSigned
           : is_unsigned(t) || is_pred(t) ? CompareType::kUnsigned
           : is_float(t)                  ? CompareType::kTotalOrder
                                          : CompareType::kFloat;
  }
  return s.b.compare(d, x, y, type);
}

Instruction* select(Draft& s) {
  Instruction* x = s.any();
  Instruction* y = s.of(x->shape);
  bool scalar = s.random.chance(0.2);
  Instruction* p = s.of(DType::kPred, scalar ? Ints{} : x->shape.dims);
  return s.b.op(kSelect, {p, x, y});
}

Instruction* clamp(Draft& s) {
  Instruction* x = s.any();
  if (is_complex(x->shape.type) || is_pred(x->shape.type)) return nullptr;
  bool scalar = s.random.chance(0.6);
  Ints sizes = scalar ? Ints{} : x->shape.dims;
  return s.b.op(kClamp, {s.of(x->shape.type, sizes), x, s.of(x->shape.type, sizes)});
}

Instruction* convert(Draft& s) {
  Instruction* x = s.any();
  DType to = s.type();
  if (is_complex(x->shape.type) && !is_complex(to)) return nullptr;
  return s.b.convert(x, to);
}

Instruction* bitcast_convert(Draft& s) { return bits_of(s, s.any()); }

Instruction* reduce_precision(Draft& s) {
  Instruction* x = s.any_float();
  if (!x) return nullptr;
  Attributes a;
  a.exponent_bits = s.random.between(2, 8);
  a.mantissa_bits = s.random.between(1, 10);
  return s.b.op(kReducePrecision, {x}, std::move(a));
}

// Powers that are roots, quotients and products.
Instruction* known_power(Draft& s) {
  Instruction* x = s.any_float();
  if (!x || dtype_bits(x->shape.type) < 16) return nullptr;
  const double y = s.random.pick(std::vector{-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0});
  return s.b.op(kPower, {x, s.splat(x->shape.type, y, x->shape.dims)});
}

// Integers in floats: whatever is summed of them is exact.
Instruction* integers(Draft& s) {
  Instruction* x = s.any_float();
  return x && dtype_bits(x->shape.type) >= 16 ? s.small(x, 4) : nullptr;
}

// x*y - y*x is 0, contracted or not; x*x + y is the case for contraction.
Instruction* products(Draft& s) {
  Instruction* x = s.any_float();
  if (!x) return nullptr;
  Instruction* y = s.of(x->shape);
  Instruction* xy = s.b.op(kMultiply, {x, y});
  if (s.random.chance(0.5)) return s.b.op(kSubtract, {xy, s.random.chance(0.5) ? xy : s.b.op(kMultiply, {y, x})});
  Instruction* z = s.of(x->shape);
  Opcode op = s.random.chance(0.5) ? kAdd : kSubtract;
  return s.random.chance(0.5) ? s.b.op(op, {xy, z}) : s.b.op(op, {z, xy});
}

// What gives a module its complex numbers.
Instruction* complex(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.type == DType::kF32 || v.type == DType::kF64; });
  return x ? s.b.op(kComplex, {x, s.of(x->shape)}) : nullptr;
}

Instruction* stochastic(Draft& s) {
  Instruction* x = s.any_float();
  if (!x) return nullptr;
  std::vector<DType> random = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
  std::erase_if(random, [&](DType t) { return dtype_bits(t) != dtype_bits(x->shape.type); });
  DType to = s.random.pick(std::vector{DType::kS8, DType::kS16, DType::kS32});
  if (random.empty()) return nullptr;
  return s.b.op(kStochasticConvert, Shape::array(to, x->shape.dims), {x, s.of(random[0], x->shape.dims)});
}

// Functions of whole rows, chosen by what a row has one of: its condition, its number or a scalar; one in another, and
// what is done with them next.
Instruction* row_choices(Draft& s) {
  const DType t = s.random.pick(std::vector{DType::kF32, DType::kF32, DType::kBF16, DType::kF64});
  Ints sizes = {s.random.between(1, 9), s.random.between(30, 300)};
  if (s.random.chance(0.3)) sizes.insert(sizes.begin(), s.random.between(2, 3));
  Instruction* x = s.limited(s.of(t, sizes), 4);
  Instruction* chosen = x;
  for (int64_t n = s.random.between(1, 3); n > 0; --n) {
    Instruction* rows = s.of(DType::kPred, {sizes[0]});
    Instruction* condition = s.random.chance(0.3) ? s.of(DType::kPred, {}) : s.b.broadcast_in_dim(rows, sizes, {0});
    if (s.random.chance(0.3)) condition = s.b.unary(kNot, condition);
    Instruction* dear = smooth(s, s.random.pick(kSmoothUnary), s.random.chance(0.5) ? x : s.limited(chosen, 4));
    Instruction* other = s.random.chance(0.3) ? s.splat(t, 0, sizes) : chosen;
    chosen =
        s.random.chance(0.5) ? s.b.op(kSelect, {condition, dear, other}) : s.b.op(kSelect, {condition, other, dear});
  }
  return s.random.chance(0.3) ? s.b.binary(kAdd, chosen, s.b.rev(x, {std::ssize(sizes) - 1})) : chosen;
}

// Which of two whole arrays it is, said for all of it, or once for what some of its dims number; and a movement of
// that.
Instruction* array_choices(Draft& s) {
  const Ints sizes = s.shape(1, 4);
  const DType t = s.type();
  const Ints dims = s.some(std::ssize(sizes), 0.4);
  Ints said;
  for (int64_t d : dims) said.push_back(sizes[static_cast<size_t>(d)]);
  Instruction* condition = s.fresh(DType::kPred, said);
  if (dims.size() < sizes.size() && (!dims.empty() || s.random.chance(0.5)))
    condition = s.b.broadcast_in_dim(condition, sizes, dims);
  Instruction* chosen = s.b.op(kSelect, {condition, s.fresh(t, sizes), s.fresh(t, sizes)});
  if (s.random.chance(0.3)) chosen = s.b.transpose(chosen, s.permutation(std::ssize(sizes)));
  return s.random.chance(0.2) ? s.b.rev(chosen, {std::ssize(sizes) - 1}) : chosen;
}

// One step of a polynomial in z, of a function, or of an op with z or, a quotient, with what no other arm has.
Instruction* step_of_arm(Draft& s, Instruction* arm, Instruction* z, Opcode op) {
  const Shape& shape = z->shape;
  if (op == kMultiply) {
    Instruction* product = s.random.chance(0.8) ? s.b.binary(kMultiply, arm, z) : s.b.binary(kMultiply, z, arm);
    Instruction* c = s.splat(shape.type, s.random.between(-8, 8) / 8.0, shape.dims);
    return s.random.chance(0.8) ? s.b.binary(kAdd, product, c) : s.b.binary(kAdd, c, product);
  }
  if (op == kMaximum || op == kSubtract) return s.b.binary(op, arm, z);
  if (op == kDivide) return s.b.binary(kDivide, arm, s.b.unary(kExponential, s.limited(s.of(shape), 1)));
  return smooth(s, op, arm);
}

// A choice between expressions that are alike but for some places: arms that go the same steps, most of the time.
Instruction* like_arms(Draft& s) {
  Instruction* x = s.any_float();
  if (!x || dtype_bits(x->shape.type) < 16) return nullptr;
  const Shape shape = x->shape;
  Instruction *z = s.limited(x, 1), *arms[2] = {s.limited(s.of(shape), 1), s.limited(s.of(shape), 1)};
  for (int64_t n = s.random.between(1, 6); n > 0; --n) {
    Opcode op = s.random.pick(std::vector{kMultiply, kMultiply, kMultiply, kDivide, kMaximum, kSubtract, kTanh, kAbs});
    for (Instruction*& arm : arms) {
      if (s.random.chance(0.95)) arm = step_of_arm(s, arm, z, op);
      if (s.random.chance(0.05)) s.keep(arm);
    }
  }
  Instruction* p = s.of(DType::kPred, s.random.chance(0.2) ? Ints{} : shape.dims);
  return s.limited(s.b.op(kSelect, {p, arms[0], arms[1]}), 100);
}

// A choice between two expressions by a condition that holds for no lanes, for all, for those in front, or for any: up
// to four functions on each side, what they share with the other side or with what follows.
Instruction* dear_sides(Draft& s) {
  const DType t = s.random.pick(std::vector{DType::kF32, DType::kF32, DType::kF64});
  Ints sizes = {s.random.between(1, 150)};
  if (s.random.chance(0.3)) sizes.insert(sizes.begin(), s.random.between(1, 9));
  Instruction *x = s.limited(s.of(t, sizes), 4), *shared = s.b.binary(kAdd, x, s.limited(s.of(t, sizes), 2));
  Instruction* asked = x;
  double threshold = s.random.pick(std::vector<double>{-5, 5, 0, 0.5});
  if (s.random.chance(0.5)) {
    asked = s.b.iota(Shape::array(t, sizes), s.random.below(std::ssize(sizes)));
    threshold = static_cast<double>(s.random.below(150));
  }
  const Direction how = s.random.chance(0.5) ? Direction::kLt : Direction::kGe;
  Instruction* condition = s.b.compare(how, asked, s.splat(t, threshold, sizes));
  Instruction* sides[2] = {x, s.random.chance(0.5) ? shared : s.limited(s.of(t, sizes), 3)};
  for (Instruction*& side : sides) {
    for (int64_t n = s.random.between(0, 4); n > 0; --n) {
      side = smooth(s, s.random.pick(std::vector{kTanh, kSine, kCosine, kLogistic}), side);
      if (s.random.chance(0.4)) side = s.b.binary(s.random.chance(0.5) ? kAdd : kMultiply, side, shared);
      if (s.random.chance(0.05)) s.keep(side);
    }
  }
  if (s.random.chance(0.2)) s.keep(shared);
  Instruction* chosen = s.b.op(kSelect, {condition, sides[0], sides[1]});
  return s.random.chance(0.3) ? s.b.binary(kAdd, chosen, shared) : chosen;
}

}  // namespace

Instruction* bits_of(Draft& s, Instruction* x) {
  auto bits = [](DType t) { return is_pred(t) ? 8 : dtype_bits(t); };
  int from = bits(x->shape.type);
  std::vector<Shape> fit;
  for (DType t : s.draw.types) {
    if (is_complex(t) != is_complex(x->shape.type)) continue;
    // pred holds 0 or 1 only, and what bits a NaN of fewer bits has is nobody's promise.
    if (is_pred(t) != is_pred(x->shape.type)) continue;
    Ints sizes = x->shape.dims;
    int to = bits(t);
    if (from > to && from % to == 0)
      sizes.push_back(from / to);
    else if (from < to && to % from == 0 && !sizes.empty() && sizes.back() == to / from)
      sizes.pop_back();
    else if (from != to)
      continue;
    if (s.fits(sizes)) fit.push_back(Shape::array(t, sizes));
  }
  if (fit.empty()) return nullptr;
  return s.b.op(kBitcastConvert, s.random.pick(fit), {x});
}

Family dear_side_family() { return {"dear sides", {{dear_sides, 12}}, 0.03}; }

Family like_arms_family() { return {"like arms", {{like_arms, 8}}, 0.04}; }

Family row_choice_family() { return {"row choices", {{row_choices, 12}, {array_choices, 6}}, 0.04}; }

Family elementwise_family() {
  return {"elementwise",
          {{unary, 8},
           {binary, 14},
           {floor_division, 1},
           {known_power, 1},
           {compare, 2},
           {select, 4},
           {clamp, 1},
           {convert, 4},
           {bitcast_convert, 1},
           {reduce_precision, 1},
           {integers, 3},
           {products, 2},
           {stochastic, 1}},
          0.95};
}

Family complex_family() { return {"complex", {{complex, 4}, {unary, 4}, {binary, 3}}, 0.08}; }

}  // namespace hlojit::tools::fuzz

// rng: uniform and normal numbers from the bits of a Philox generator, whose counter the run keeps:
//
//   r = f32[n] rng(a, b), distribution=rng_uniform
//     ->  s = u64[2] rng-get-and-update-state(), delta=n/4      bits = rng-bit-generator(s)
//         r = a + (bits >> 9 as a fraction) * (b - a)
//
// Normal numbers are cosines of one uniform number times the radius of another (Box and Muller).
// HLO leaves the numbers open; these are the same in every run.
#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

using enum Opcode;

class Rng {
 public:
  Rng(Builder& b, const Instruction& op) : b_(b), op_(op), type_(op.shape.type) {}

  Instruction* run() {
    if (is_complex(type_)) return nullptr;
    if (op_.attrs.distribution == Distribution::kNormal) return is_float(type_) ? normal() : nullptr;
    if (is_pred(type_)) return fair();
    return is_float(type_) ? uniform() : integers();
  }

 private:
  // f64 is computed as it is, everything narrower in f32.
  DType wide() const { return type_ == DType::kF64 ? DType::kF64 : DType::kF32; }
  Instruction* spread(Instruction* scalar) { return b_.broadcast(scalar, op_.shape.dims); }
  Instruction* number(DType type, double value) { return spread(b_.constant(type, value)); }
  Instruction* bound(size_t k) {
    Instruction* x = op_.operand(k);
    return spread(x->shape.type == wide() || !is_float(type_) ? x : b_.convert(x, wide()));
  }

  // Fresh bits of an unsigned type.
  Instruction* bits(DType type) {
    Shape shape = Shape::array(type, op_.shape.dims);
    Attributes a;
    // Blocks of four words of 32 bits; narrower elements take a word each.
    const int64_t words = shape.element_count() * (dtype_bits(type) == 64 ? 2 : 1);
    a.delta = (words + 3) / 4;
    Instruction* counter = b_.op(kRngGetAndUpdateState, Shape::array(DType::kU64, {2}), {}, std::move(a));
    Attributes philox;
    philox.algorithm = RandomAlgorithm::kPhilox;
    // The generator counts in its second word.
    Instruction* state = b_.rev(counter, {0});
    Instruction* generator = b_.op(kRngBitGenerator, shape, {state}, std::move(philox));
    Instruction* made = expand_random_bits(b_, *generator);
    b_.computation()->remove(generator);
    return made;
  }

  // In [0, 1): the upper bits as the fraction of a number in [1, 2).
  Instruction* fraction() {
    const bool is_f64 = wide() == DType::kF64;
    const DType word = is_f64 ? DType::kU64 : DType::kU32;
    auto constant = [&](uint64_t value) {
      Literal literal(Shape::scalar(word));
      literal.set_int(0, static_cast<int64_t>(value));
      return spread(b_.constant(std::move(literal)));
    };
    Instruction* mantissa = b_.binary(kShiftRightLogical, bits(word), constant(is_f64 ? 12 : 9));
    Instruction* one = constant(is_f64 ? 0x3ff0000000000000 : 0x3f800000);
    Instruction* x = b_.bitcast_convert(b_.binary(kOr, mantissa, one), wide());
    return b_.binary(kSubtract, x, number(wide(), 1));
  }

  Instruction* rounded(Instruction* x) { return type_ == wide() ? x : b_.convert(x, type_); }

  // Rounding may reach the upper bound, which is not among the values: the lower one is.
  Instruction* uniform() {
    Instruction *low = bound(0), *high = bound(1);
    Instruction* x = b_.binary(kAdd, low, b_.binary(kMultiply, fraction(), b_.binary(kSubtract, high, low)));
    Instruction* value = rounded(x);
    Instruction* below = b_.compare(Direction::kLt, value, spread(op_.operand(1)));
    return b_.select(below, value, spread(op_.operand(0)));
  }

  Instruction* normal() {
    constexpr double kTurn = 6.283185307179586;
    Instruction* u = b_.binary(kSubtract, number(wide(), 1), fraction());  // (0, 1]
    Instruction* radius = b_.unary(kSqrt, b_.binary(kMultiply, b_.unary(kLog, u), number(wide(), -2)));
    Instruction* angle = b_.binary(kMultiply, fraction(), number(wide(), kTurn));
    Instruction* x = b_.binary(kMultiply, radius, b_.unary(kCosine, angle));
    return rounded(b_.binary(kAdd, b_.binary(kMultiply, x, bound(1)), bound(0)));
  }

  Instruction* fair() {
    Instruction* one = number(DType::kU32, 1);
    return b_.compare(Direction::kEq, b_.binary(kAnd, bits(DType::kU32), one), one);
  }

  // low + bits % (high - low), without sign: the range of a signed type may not fit in it.
  Instruction* integers() {
    const DType word = dtype_bits(type_) == 64 ? DType::kU64 : DType::kU32;
    auto wrapped = [&](Instruction* x) { return b_.convert(x, word); };
    Instruction *low = spread(wrapped(op_.operand(0))), *high = spread(wrapped(op_.operand(1)));
    Instruction* offset = b_.binary(kRemainder, bits(word), b_.binary(kSubtract, high, low));
    return b_.convert(b_.binary(kAdd, low, offset), type_);
  }

  Builder& b_;
  const Instruction& op_;
  const DType type_;
};

}  // namespace

Instruction* expand_rng(Builder& b, const Instruction& op) { return Rng(b, op).run(); }

}  // namespace hlojit

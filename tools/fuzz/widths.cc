// Words made of bytes and of 16 bits, computed with and moved, on their way back or to a comparison: numbers on both
// sides of what 16 bits hold, signed and not, some of them wanted as words as well.
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* leaf(Draft& s, DType wide, const Ints& sizes) {
  using enum DType;
  const DType from = s.random.pick(std::vector{kU8, kU8, kS8, kPred, kU16, kS16});
  if (s.random.chance(0.3)) {
    const double value = s.random.pick(std::vector<double>{0, 1, 2, 3, 77, 128, 150, 255, 257, 32767, 40000});
    return s.splat(wide, is_signed(wide) && s.random.chance(0.2) ? -value : value, sizes);
  }
  if (s.random.chance(0.7)) return s.b.convert(s.of(from, sizes), wide);
  const int64_t d = s.random.below(std::ssize(sizes));
  Ints more = sizes;
  more[static_cast<size_t>(d)] += 2;
  const int64_t at = s.random.below(3);
  Ints starts(sizes.size(), 0), limits = sizes;
  starts[static_cast<size_t>(d)] = at;
  limits[static_cast<size_t>(d)] += at;
  return s.b.slice(s.b.convert(s.of(from, more), wide), starts, limits);
}

Instruction* word(Draft& s, DType wide, const Ints& sizes, int steps) {
  if (steps == 0) return leaf(s, wide, sizes);
  auto next = [&] { return word(s, wide, sizes, static_cast<int>(s.random.below(steps))); };
  switch (s.random.below(10)) {
    case 0: return s.b.unary(is_signed(wide) && s.random.chance(0.5) ? kAbs : kNegate, next());
    case 1: return s.b.select(s.of(DType::kPred, sizes), next(), next());
    case 2: {
      const double by = static_cast<double>(s.random.below(18));
      const Opcode op = s.random.pick(std::vector{kShiftRightArithmetic, kShiftRightLogical, kShiftLeft});
      return s.b.binary(op, next(), s.splat(wide, by, sizes));
    }
    case 3: {
      Instruction* least = s.splat(wide, is_signed(wide) ? -128 : 3, {});
      return s.b.op(kClamp, {least, next(), s.splat(wide, 255, {})});
    }
    case 4: return s.b.binary(kMultiply, next(), leaf(s, wide, sizes));
    case 5: {
      Instruction* by = s.splat(wide, static_cast<double>(s.random.between(1, 300)), sizes);
      return s.b.binary(s.random.chance(0.6) ? kDivide : kRemainder, next(), by);
    }
    case 6: return s.b.binary(s.random.pick(std::vector{kMaximum, kMinimum, kAnd}), next(), next());
    default: return s.b.binary(s.random.chance(0.5) ? kAdd : kSubtract, next(), next());
  }
}

Instruction* word_of_bytes(Draft& s) {
  using enum DType;
  const DType wide = s.random.pick(std::vector{kS32, kS32, kS32, kU32, kS64});
  Ints sizes = {s.random.between(1, 150)};
  if (s.random.chance(0.4)) sizes.insert(sizes.begin(), s.random.between(1, 9));
  const int steps = static_cast<int>(s.random.between(1, 5));
  Instruction* x = word(s, wide, sizes, steps);
  if (s.random.chance(0.1)) s.keep(x);
  if (s.random.chance(0.3)) {
    const Direction how = s.random.pick(std::vector{Direction::kLt, Direction::kGe, Direction::kEq});
    return s.b.compare(how, x, word(s, wide, sizes, static_cast<int>(s.random.below(2))));
  }
  return s.b.convert(x, s.random.pick(std::vector{kU8, kS8, kU16, kS16}));
}

}  // namespace

Family width_family() { return {"words of bytes", {{word_of_bytes, 12}}, 0.03}; }

}  // namespace hlojit::tools::fuzz

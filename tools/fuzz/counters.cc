// Counters: iotas, spread, times and plus constants, as whole arrays and random numbers are counted; narrowed, and
// shifted by all bits that they have or by fewer. Their numbers lie on both sides of what the narrower type has.
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* counted(Draft& s, DType t, const Ints& sizes, int steps) {
  if (steps > 0 && s.random.chance(0.8)) {
    Instruction* a = counted(s, t, sizes, steps - 1);
    return s.b.binary(s.random.chance(0.5) ? kAdd : kMultiply, a, counted(s, t, sizes, steps - 1));
  }
  const int64_t along = s.random.between(0, std::ssize(sizes) - 1);
  const int64_t size = sizes[static_cast<size_t>(along)];
  if (s.random.chance(0.25)) return s.splat(t, s.random.pick(std::vector<double>{0, 1, 2, 11, 100, 127}), sizes);
  if (s.random.chance(0.05)) return s.of(t, sizes);
  if (s.random.chance(0.5)) return s.b.iota(Shape::array(t, sizes), along);
  return s.b.broadcast_in_dim(s.b.iota(Shape::array(t, {size}), 0), sizes, {along});
}

Instruction* counter(Draft& s) {
  using enum DType;
  const DType t = s.random.pick(std::vector{kU64, kU64, kS64, kU32, kS32, kU16, kS16});
  Ints sizes = {s.random.pick(Ints{1, 2, 3, 8, 16, 17, 40, 127, 128, 129, 256, 257})};
  if (s.random.chance(0.4)) sizes.insert(sizes.begin() + s.random.below(2), s.random.between(1, 9));
  Instruction* x = counted(s, t, sizes, static_cast<int>(s.random.between(0, 3)));
  if (s.random.chance(0.5)) {
    const double by = static_cast<double>(s.random.pick(Ints{0, 1, 3, 7, 8, 12, 15, 16, 31, 32, 63}));
    Instruction* high = s.b.binary(kShiftRightLogical, x, s.splat(t, by, sizes));
    s.keep(s.random.chance(0.5) ? high : s.b.convert(high, s.random.pick(std::vector{kU32, kU16, kS8})));
  }
  return s.b.convert(x, s.random.pick(std::vector{kU32, kU32, kS32, kU16, kS16, kU8, kS8}));
}

}  // namespace

Family counter_family() { return {"counters", {{counter, 20}}, 0.03}; }

}  // namespace hlojit::tools::fuzz

// atan2 and atan.
//
// atan of a ratio in [0, 1], then the octant. f32 takes one polynomial of the ratio. f64 folds
// ratios above 1/2 with atan(t) = pi/4 + atan((t-1)/(t+1)) inside the one division, which
// halves the degree.
#pragma once

#include "compiler/math/basic.h"

namespace hlojit::math {

inline constexpr double kAtanF32[] = {-0x1.55554p-2, 0x1.999266p-3,  -0x1.24262ap-3, 0x1.c0c8e2p-4,  -0x1.58bcfcp-4,
                                      0x1.dc983ap-5, -0x1.012eeap-5, 0x1.696592p-7,  -0x1.dcc3a2p-10};
inline constexpr double kAtanF64[] = {
    -0x1.5555555555552p-2, 0x1.99999999990d9p-3,  -0x1.249249245358ep-3, 0x1.c71c71aadc596p-4,  -0x1.745d138b7f25dp-4,
    0x1.3b13604ee8067p-4,  -0x1.110c6b454db13p-4, 0x1.e18263b5cef5ep-5,  -0x1.ac6fbf0662c21p-5, 0x1.77ef9932cf101p-5,
    -0x1.2ffb5b9954c4fp-5, 0x1.83403ee3afe92p-6,  -0x1.11af8504bc10fp-7};

// atan(a / b) for 0 <= a <= b, as base + small part.
template <class F>
Pair<F> atan_ratio(F a, F b) {
  F zero = like(a, 0.0);
  if constexpr (is_f64<F>) {
    auto fold = a > b * like(a, 0.5);
    F base = select(fold, like(a, 0x1.921fb54442d18p-1), zero);
    F t = select(fold, a - b, a) / select(fold, a + b, b);
    F z = t * t;
    return {base, fma(z * t, poly(z, kAtanF64), t)};
  } else {
    F t = a / b;
    F z = t * t;
    // Its terms alternate and nearly cancel at 1: no rounding to spare.
    return {zero, fma(z * t, horner(z, kAtanF32), t)};
  }
}

template <class F>
F atan2(F y, F x) {
  F ax = abs_(x), ay = abs_(y), inf = like(x, kInf), zero = like(x, 0.0);
  auto steep = ay > ax;
  F a = select(steep, ax, ay), b = select(steep, ay, ax);
  // The exceptional quotients: both infinite is the diagonal, both zero the axis. And a + b must
  // not overflow.
  auto both_inf = a == inf;
  a = select(both_inf, like(x, 1.0), a);
  b = select(both_inf, like(x, 1.0), select(b == zero, like(x, 1.0), b));
  if constexpr (is_f64<F>) {
    auto huge = b > like(x, 0x1p1000);
    a = select(huge, a * like(x, 0x1p-60), a);
    b = select(huge, b * like(x, 0x1p-60), b);
  }
  Pair<F> r = atan_ratio(a, b);
  // The angle from the x axis: r, pi/2 - r, pi - r or pi/2 + r.
  auto left = signbit_(x);
  F base = r.hi, small = r.lo;
  F half_pi = like(x, 0x1.921fb6p+0, 0x1.921fb54442d18p+0),
    half_pi_lo = like(x, -0x1.777a5cp-25, 0x1.1a62633145c07p-54);
  F quarter_lo = select(base > zero, half_pi_lo * like(x, 0.5), zero);
  auto mirror = (steep & !left) | (left & !steep);
  F offset = select(steep, half_pi, select(left, half_pi + half_pi, zero));
  F offset_lo = select(steep, half_pi_lo, select(left, half_pi_lo + half_pi_lo, zero));
  F signed_base = select(mirror, -base, base);
  F signed_lo = select(mirror, -quarter_lo, quarter_lo);
  F signed_small = select(mirror, -small, small);
  F angle = (offset + signed_base) + (signed_small + (offset_lo + signed_lo));
  angle = select((x != x) | (y != y), like(x, kNan), angle);
  return copysign_(angle, y);
}

template <class F>
F atan(F x) {
  return atan2(x, like(x, 1.0));
}

}  // namespace hlojit::math

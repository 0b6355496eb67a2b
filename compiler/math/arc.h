// asin, acos, asinh, acosh, atanh.
//
// asin and acos: x + x^3 P(x^2) up to 1/2, beyond by the half angle s = sqrt((1 - |x|) / 2), whose
// argument is exact. The hyperbolic ones are log1p of a sum that is kept as a pair.
#pragma once

#include "compiler/math/basic.h"
#include "compiler/math/log.h"

namespace hlojit::math {

inline constexpr double kAsinF32[] = {0x1.55554cp-3, 0x1.3338aap-4, 0x1.6ca7dcp-5,
                                      0x1.04ccc8p-5, 0x1.d59462p-7, 0x1.349806p-5};
inline constexpr double kAsinF64[] = {
    0x1.5555555555578p-3, 0x1.333333332df17p-4,  0x1.6db6db722b5edp-5, 0x1.f1c71a8b9bc0cp-6, 0x1.6e8bdfe6fa61p-6,
    0x1.1c49ddf6c6846p-6, 0x1.ca214590aab28p-7,  0x1.7577813c76cd9p-7, 0x1.618b02ea0beap-7,  0x1.e156c741e9d6cp-9,
    0x1.650367d4c392dp-6, -0x1.59f885863aedep-6, 0x1.0be507ae194b3p-5};

// asin of the reduced argument: |x| up to 1/2, else the half angle, as r + tail.
template <class F>
struct AsinParts {
  Pair<F> r;
  MaskOf<F> folded;  // |x| > 1/2
};

template <class F>
AsinParts<F> asin_parts(F x) {
  F a = abs_(x), half = like(x, 0.5);
  auto folded = a > half;
  F z = select(folded, (like(x, 1.0) - a) * half, a * a);
  F s = select(folded, sqrt_(z), a);
  return {{s, s * z * poly(z, kAsinF32, kAsinF64)}, folded};
}

template <class F>
F asin(F x) {
  auto [p, folded] = asin_parts(x);
  F half_pi = like(x, 0x1.921fb6p+0, 0x1.921fb54442d18p+0);
  F half_pi_lo = like(x, -0x1.777a5cp-25, 0x1.1a62633145c07p-54);
  Pair<F> sum = fast_two_sum(half_pi, -(p.hi + p.hi));
  F tail = sum.lo + fma(p.lo, like(x, -2.0), half_pi_lo);
  F r = select(folded, sum.hi + tail, p.hi + p.lo);
  return copysign_(r, x);
}

template <class F>
F acos(F x) {
  auto [p, folded] = asin_parts(x);
  auto left = signbit_(x);
  F half_pi = like(x, 0x1.921fb6p+0, 0x1.921fb54442d18p+0);
  F half_pi_lo = like(x, -0x1.777a5cp-25, 0x1.1a62633145c07p-54);
  // pi/2 -+ asin|x|; 2 s or pi - 2 s.
  F hi = select(left, p.hi, -p.hi), lo = select(left, p.lo, -p.lo);
  Pair<F> sum = fast_two_sum(half_pi, hi);
  F middle = sum.hi + (sum.lo + (lo + half_pi_lo));
  Pair<F> turn = fast_two_sum(half_pi, -p.hi);
  F turned = turn.hi + (turn.lo + (half_pi_lo - p.lo));
  F r = select(folded, select(left, turned + turned, (p.hi + p.lo) * like(x, 2.0)), middle);
  return select(abs_(x) > like(x, 1.0), like(x, kNan), r);
}

// log(1 + x.hi + x.lo), |x.lo| an ulp of x.hi or so.
template <class F>
F log1p_pair(Pair<F> x) {
  return log1p(x.hi) + x.lo / (like(x.hi, 1.0) + x.hi);
}

template <class F>
F atanh(F x) {
  F a = abs_(x), one = like(x, 1.0);
  Pair<F> den = two_sum(one, -a);
  Pair<F> q = {divide(Pair<F>{a + a, like(x, 0.0)}, den), like(x, 0.0)};
  F r = log1p(q.hi) * like(x, 0.5);
  r = select(a < like(x, 0x1p-13, 0x1p-27), a, r);
  r = select(a == one, like(x, kInf), r);
  return copysign_(select(a > one, like(x, kNan), r), x);
}

// log1p(a + a^2 / (1 + sqrt(1 + a^2))); from 2^30 (2^60) on log(2a).
template <class F>
F asinh(F x) {
  F a = abs_(x), one = like(x, 1.0), zero = like(x, 0.0);
  auto big = a > like(x, 0x1p30, 0x1p60);
  F c = select(big, one, a);
  F w = c * c / (one + sqrt_(fma(c, c, one)));
  Pair<F> v = fast_two_sum(c, w);
  v = {select(big, a, v.hi), select(big, zero, v.lo)};
  F r = log1p_pair(v) + select(big, like(x, 0x1.62e42fefa39efp-1), zero);
  r = select(a < like(x, 0x1p-13, 0x1p-27), a, r);
  return copysign_(select(a < like(x, kInf), r, a), x);
}

// log1p(t + sqrt(t (t + 2))), t = x - 1.
template <class F>
F acosh(F x) {
  F one = like(x, 1.0), zero = like(x, 0.0);
  auto big = x > like(x, 0x1p30, 0x1p60);
  Pair<F> t = fast_two_sum(select(big, one, x), -one);
  F r = sqrt_(fma(t.hi, t.hi, t.hi + t.hi));
  Pair<F> v = two_sum(r, t.hi);
  v = {select(big, x, v.hi), select(big, zero, v.lo + t.lo)};
  r = log1p_pair(v) + select(big, like(x, 0x1.62e42fefa39efp-1), zero);
  r = select(x < like(x, kInf), r, x);
  return select(x < one, like(x, kNan), r);
}

}  // namespace hlojit::math

// pow, in the type's own width with unevaluated pairs; about 0.6 ulp.
//
// |x|^y = e^(y log|x|) and y log|x| may be as large as 745 (104), so log|x| is needed to 2^-65
// (2^-35) relative: with s = (m-1)/(m+1) as a pair, log m = 2s + s z (2/3 + z T(z)), z = s^2; only
// T, which weighs 2^-11, is a plain polynomial.
#pragma once

#include "compiler/math/basic.h"
#include "compiler/math/exp.h"
#include "compiler/math/log.h"

namespace hlojit::math {

inline constexpr double kPowF32[] = {0x1.999996p-2, 0x1.2495p-2, 0x1.c5bfd6p-3, 0x1.97e99cp-3};
inline constexpr double kPowF64[] = {0x1.999999999999ap-2, 0x1.2492492492358p-2, 0x1.c71c71c747f7ep-3,
                                     0x1.745d172d4de26p-3, 0x1.3b13b9402c39cp-3, 0x1.110f73abdbb74p-3,
                                     0x1.e249b97954d15p-4, 0x1.a741fa136960bp-4, 0x1.da6658df7794dp-4};

// log x for finite x > 0, as a pair.
template <class F>
Pair<F> log_pair(F x) {
  auto [e, m] = binade(x);
  F one = like(x, 1.0);
  F f = m - one;
  F u = m + one;
  F u_lo = m - (u - one);
  F r = one / u;
  F s = f * r;
  F s_lo = r * fma(-s, u_lo, fma(-s, u, f));
  Pair<F> z = two_product(s, s);
  z.lo = fma(s + s, s_lo, z.lo);
  // 2/3 + z T(z)
  F third2 = like(x, 0x1.555556p-1, 0x1.5555555555555p-1);
  Pair<F> t = fast_two_sum(third2, z.hi * poly(z.hi, kPowF32, kPowF64));
  t.lo = t.lo + like(x, -0x1.555556p-26, 0x1.5555555555555p-55);
  Pair<F> p = two_product(s, z.hi);
  p.lo = p.lo + fma(s, z.lo, s_lo * z.hi);
  Pair<F> q = two_product(p.hi, t.hi);
  q.lo = q.lo + fma(p.hi, t.lo, p.lo * t.hi);
  Pair<F> l = fast_two_sum(s + s, q.hi);
  l.lo = l.lo + (q.lo + (s_lo + s_lo));
  // e times the high part of ln2 is exact.
  Pair<F> sum = fast_two_sum(e * like(x, 0x1.62e4p-1, 0x1.62e42fefa38p-1), l.hi);
  sum.lo = sum.lo + fma(e, like(x, 0x1.7f7d1cp-20, 0x1.ef35793c7673p-45), l.lo);
  return fast_two_sum(sum.hi, sum.lo);
}

// e^(x.hi + x.lo), clamped to overflow and underflow.
template <class F>
F exp_pair(Pair<F> x) {
  F c = above_zero_exp(at_most(x.hi, like(x.hi, 89.0, 710.0)));
  F lo = select(c == x.hi, x.lo, like(c, 0.0));
  F magic = round_magic(c);
  F t = fma(c, like(c, 0x1.71547652b82fep+0), magic);
  F n = t - magic;
  F h = fma(n, like(c, -0x1.62e43p-1, -0x1.62e42fefa39efp-1), c);  // exact
  F ln2_lo = like(c, 0x1.05c61p-29, -0x1.abc9e3b39803fp-56);
  F r = fma(n, ln2_lo, h);
  lo = lo + fma(n, ln2_lo, h - r);
  // x.lo may be 2^-44, too much for the first order below; after this it is not.
  F sum = r + lo;
  lo = lo - (sum - r);
  r = sum;
  F one = like(c, 1.0);
  Pair<F> p = fast_two_sum(one, r);
  F tail = fma(r * r, poly(r, kExpF32, kExpF64), fma(lo, r, lo));
  return ldexp2(p.hi + (p.lo + tail), as_int(t) - as_int(magic));
}

template <class F>
F pow(F x, F y) {
  F zero = like(x, 0.0), one = like(x, 1.0), inf = like(x, kInf);
  F ax = abs_(x);
  Pair<F> l = log_pair(ax);
  l.hi = select(ax < inf, l.hi, ax);  // inf, NaN
  l.hi = select(ax == zero, -inf, l.hi);
  // An infinite or NaN product has a NaN low part, which exp_pair drops.
  Pair<F> t = two_product(y, l.hi);
  t.lo = fma(y, l.lo, t.lo);
  F r = select((ax == one) | (y == zero), one, exp_pair(t));
  // A negative base: the sign of an odd power, NaN if y is no integer (or NaN). (-inf)^y is no NaN.
  F half = y * like(x, 0.5);
  auto integer = floor_(y) == y;
  auto odd = integer & (floor_(half) != half);
  auto negative = signbit_(x);
  r = select(negative & odd, -r, r);
  return select((x < zero) & (x > -inf) & !integer, like(x, kNan), r);
}

}  // namespace hlojit::math

// exp and what is made of it: expm1, logistic, tanh, sinh, cosh.
//
// x = n ln2 + r with |r| <= ln2/2; e^r = 1 + r + r^2 Q(r), and 2^n goes into the exponent. n comes
// out of the low bits of a sum with round_magic, so no float -> int conversion (AVX2 has none for
// f64); r is exact but for one rounding of n * (the low part of ln2). Of floats, exp itself takes n in
// eighths and the power of an eighth from a list, so that Q has two or three terms instead of five.
#pragma once

#include "compiler/math/basic.h"

namespace hlojit::math {

inline constexpr double kExpF32[] = {0x1.fffffep-2, 0x1.5554a4p-3, 0x1.555788p-5, 0x1.12315ap-7, 0x1.6adbcp-10};
inline constexpr double kExpF64[] = {0x1p-1,
                                     0x1.5555555555559p-3,
                                     0x1.555555555554ap-5,
                                     0x1.111111110f5b3p-7,
                                     0x1.6c16c16c1c1d9p-10,
                                     0x1.a01a01b072f23p-13,
                                     0x1.a01a0186e2e09p-16,
                                     0x1.71ddf696dfc9cp-19,
                                     0x1.27e521c98e246p-22,
                                     0x1.af624950722f1p-26,
                                     0x1.1f05a2f13de32p-29};

// Q for |r| <= ln2/16. The error of the shorter is a fifth of an ulp, which functions that magnify it cannot bear.
inline constexpr double kExpEighthF32[] = {0x1.00089ep-1, 0x1.555854p-3};
inline constexpr double kExpEighthFineF32[] = {0x1p-1, 0x1.555cb6p-3, 0x1.55640ap-5};
template <class F>
struct ExpReduced {
  F r;          // rounded
  F exact, lo;  // r = exact + lo
  F n, t;       // t = n + magic
};

// x = n ln2 + r, n in units of the last place of `magic`.
template <class F>
ExpReduced<F> reduce_exp(F x, F magic) {
  F t = fma(x, like(x, 0x1.71547652b82fep+0), magic);
  F n = t - magic;
  F exact = fma(n, like(x, -0x1.62e43p-1, -0x1.62e42fefa39efp-1), x);
  F ln2_lo = like(x, 0x1.05c61p-29, -0x1.abc9e3b39803fp-56);
  return {fma(n, ln2_lo, exact), exact, n * ln2_lo, n, t};
}

// A power of e is (1 + x) 2^y, as one_plus_ldexp2 takes it. (With whole n a vector of floats took a Zen 4 10.5 cycles,
// bound by its multiply-adds; with eighths 8.3.)
template <class F>
struct ExpParts {
  F x, y, t;
};

template <class F>
ExpParts<F> exp_parts(F x, bool fine) {
  if constexpr (is_f64<F>) {
    auto [r, exact, lo, n, t] = reduce_exp(x, round_magic(x));
    return {fma(r * r, poly(r, kExpF32, kExpF64), r), n, t};
  } else {
    auto [r, exact, lo, n, t] = reduce_exp(x, like(x, 0x1.8p20));
    F q = fine ? horner(r, kExpEighthFineF32) : horner(r, kExpEighthF32);
    return {fma(r * r, q, r), n, t};
  }
}

// 2^shift e^x where neither over- nor underflow leaves the range of one_plus_ldexp2.
template <class F>
F exp_clamped(F x, int shift = 0) {
  auto [p, y, t] = exp_parts(x, true);
  return one_plus_ldexp2(p, y, t, shift);
}

// From here on down e^x is zero, and exactly so from the start: 2^n, moved as one_plus_ldexp2 moves it, is zero itself.
// What underflows takes many times as long, and masks of -1e9 or -inf are what a softmax is full of.
template <class F>
F above_zero_exp(F x) {
  return at_least(x, like(x, -0x1.08c8p+7, -0x1.8ee7ep+9));
}

// e^x that does not overflow; `falls`: as x is not above 20. (Where the scale instruction made the zeros, causal
// attention of 1024 took 17.2 ms on Sapphire Rapids, 7.9 without.)
template <class F>
F exp_or_zero(F x, bool fine, bool falls) {
  auto zero = x < like(x, -104.0, -745.2);
  auto [p, y, t] = exp_parts(has_masks(x) ? x : above_zero_exp(x), fine);
  return one_plus_ldexp2_or_zero(zero, p, y, t, falls);
}

template <class F>
F exp(F x) {
  return exp_or_zero(at_most(x, like(x, 89.0, 710.0)), false, false);
}

// The same bits of an x that is not above zero. (Softmax of 1024x1024 on one core of a Zen 3, without a scale
// instruction: 530 us by exp, 443 so.)
template <class F>
F exp_of_nonpositive(F x) {
  return exp_or_zero(x, false, true);
}

// 2^n (e^r - 1) + (2^n - 1), halved so that 2^1024 is not needed. The exact part of r goes in
// first, what is left of r with the tail: r rounded would cost an ulp. Tiny x is its own answer
// (and -0).
template <class F>
F expm1(F x) {
  F c = at_most(x, like(x, 89.0, 710.0));
  c = at_least(c, like(x, -18.0, -38.0));
  auto [r, exact, lo, n, t] = reduce_exp(c, round_magic(c));
  F tail = fma(r * r, poly(r, kExpF32, kExpF64), lo);
  F h = power_of_two(t, -1);
  F y = fma(tail, h, fma(exact, h, h - like(x, 0.5)));
  return select(abs_(x) < like(x, 0x1p-25, 0x1p-54), x, y + y);
}

// 1 / (1 + e^-x): z / (1 + z) or 1 less that with z = e^-|x|, so that nothing overflows and small results keep all
// bits. Written z - z z / (1 + z), where the errors of the sum and of the quotient count the less the smaller they
// would be.
template <class F>
F logistic(F x) {
  F one = like(x, 1.0);
  F z = exp_or_zero(-abs_(x), true, true);
  F q = fma(-z, z / (one + z), z);
  return select(x < like(x, 0.0), q, one - q);
}

inline constexpr double kTanhF32[] = {-0x1.55554cp-2, 0x1.11036p-3, -0x1.aedd38p-5};
inline constexpr double kTanhF64[] = {
    -0x1.555555555554bp-2, 0x1.111111110f992p-3,   -0x1.ba1ba1b7df0f1p-5, 0x1.664f47b525193p-6,  -0x1.226e0d9b29ef2p-7,
    0x1.d6cb01359c84bp-9,  -0x1.7d103f7a7759bp-10, 0x1.2fac0ec088573p-11, -0x1.b4984c1e0b3ep-13, 0x1.92ed80e68d2cfp-15};

// |x| = n ln2 / 2 + h. With t = tanh h, a short polynomial, and s = 2^n it is (t (s + 1) + s - 1) / (t (s - 1) + s +
// 1), which for n = 0 is t itself. Where that is above one half, 1 less what is missing rounds better. A factor a
// little short of 2 / ln2 puts the step to n = 2 there, too; h grows with n then, but the less depends on t.
template <class F>
F tanh(F x) {
  F a = at_most(abs_(x), like(x, 9.1, 19.1)), one = like(x, 1.0), two = like(x, 2.0);
  F magic = round_magic(x);
  F step = fma(a, like(x, 2.73), magic);
  F n = step - magic;
  F h = fma(n, like(x, -0x1.62e43p-2, -0x1.62e42fefa39efp-2), a);
  F z = h * h;
  F p = poly(z, kTanhF32, kTanhF64);
  F t = is_f64<F> ? h + fma(z * h, p, n * like(x, -0x1.abc9e3b39803fp-57)) : fma(z * h, p, h);
  F s = power_of_two(step, 0);
  auto near_one = a > like(x, 0x1.193eaap-1);
  F over = select(near_one, fma(t, like(x, -2.0), two), fma(t, s + one, s - one));
  F q = over / fma(t, s - one, s + one);
  return copysign_(select(near_one, one - q, q), x);
}

// e^|x| / 2, which overflows only where sinh and cosh do.
template <class F>
F exp_half(F x) {
  return exp_clamped(at_most(abs_(x), like(x, 90.0, 711.0)), -1);
}

template <class F>
F cosh(F x) {
  F e = exp_half(x);
  return e + like(x, 0.25) / e;
}

inline constexpr double kSinhF32[] = {0x1.555556p-3, 0x1.1110e2p-7, 0x1.a02156p-13, 0x1.75a6f6p-19};
inline constexpr double kSinhF64[] = {0x1.5555555555556p-3,  0x1.111111111102p-7,   0x1.a01a01a036c69p-13,
                                      0x1.71de3a3b6a5c3p-19, 0x1.ae646f97d90cfp-26, 0x1.61171cf3ebf87p-33,
                                      0x1.b5bb744dc037ap-41};

// A polynomial up to 1, beyond it (e^|x| - e^-|x|) / 2 cancels little.
template <class F>
F sinh(F x) {
  F a = abs_(x), z = x * x;
  F small = fma(z * a, poly(z, kSinhF32, kSinhF64), a);
  F e = exp_half(x);
  F large = e - like(x, 0.25) / e;
  return copysign_(select(a < like(x, 1.0), small, large), x);
}

}  // namespace hlojit::math

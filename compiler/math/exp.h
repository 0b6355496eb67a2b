// exp and what is made of it: expm1, logistic, tanh, sinh, cosh.
//
// x = n ln2 + r with |r| <= ln2/2; e^r = 1 + r + r^2 Q(r), and 2^n goes into the exponent. n comes
// out of the low bits of a sum with round_magic, so no float -> int conversion (AVX2 has none for
// f64); r is exact but for one rounding of n * (the low part of ln2).
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

template <class F>
struct ExpReduced {
  F r;          // |r| <= ln2/2, rounded
  F exact, lo;  // r = exact + lo
  F n, t;       // t = n + round_magic
};

template <class F>
ExpReduced<F> reduce_exp(F x) {
  F magic = round_magic(x);
  F t = fma(x, like(x, 0x1.71547652b82fep+0), magic);
  F n = t - magic;
  F exact = fma(n, like(x, -0x1.62e43p-1, -0x1.62e42fefa39efp-1), x);
  F ln2_lo = like(x, 0x1.05c61p-29, -0x1.abc9e3b39803fp-56);
  return {fma(n, ln2_lo, exact), exact, n * ln2_lo, n, t};
}

// e^r - 1 - r
template <class F>
F exp_tail(F r) {
  return r * r * poly(r, kExpF32, kExpF64);
}

// 2^shift e^x where neither over- nor underflow leaves the range of one_plus_ldexp2.
template <class F>
F exp_clamped(F x, int shift = 0) {
  auto [r, exact, lo, n, t] = reduce_exp(x);
  return one_plus_ldexp2(fma(r * r, poly(r, kExpF32, kExpF64), r), n, t, shift);
}

// From here on down e^x is zero, and exactly so from the start: 2^n, moved as one_plus_ldexp2 moves it, is zero itself.
// What underflows takes many times as long, and masks of -1e9 or -inf are what a softmax is full of.
template <class F>
F above_zero_exp(F x) {
  return at_least(x, like(x, -0x1.08c8p+7, -0x1.8ee7ep+9));
}

// e^x that does not overflow. (Where the scale instruction made the zeros, causal attention of 1024 took 17.2 ms on
// Sapphire Rapids, 7.9 without.)
template <class F>
F exp_or_zero(F x) {
  auto zero = x < like(x, -104.0, -745.2);
  auto [r, exact, lo, n, t] = reduce_exp(masks_zeros(x) ? x : above_zero_exp(x));
  return one_plus_ldexp2_or_zero(zero, fma(r * r, poly(r, kExpF32, kExpF64), r), n, t, 0);
}

template <class F>
F exp(F x) {
  return exp_or_zero(at_most(x, like(x, 89.0, 710.0)));
}

// 2^n (e^r - 1) + (2^n - 1), halved so that 2^1024 is not needed. The exact part of r goes in
// first, what is left of r with the tail: r rounded would cost an ulp. Tiny x is its own answer
// (and -0).
template <class F>
F expm1(F x) {
  F c = at_most(x, like(x, 89.0, 710.0));
  c = at_least(c, like(x, -18.0, -38.0));
  auto [r, exact, lo, n, t] = reduce_exp(c);
  F tail = fma(r * r, poly(r, kExpF32, kExpF64), lo);
  F h = power_of_two(t, -1);
  F y = fma(tail, h, fma(exact, h, h - like(x, 0.5)));
  return select(abs_(x) < like(x, 0x1p-25, 0x1p-54), x, y + y);
}

// 1 / (1 + e^-x), as z / (1 + z) or 1 / (1 + z) with z = e^-|x| so that nothing overflows and small
// results keep all bits.
template <class F>
F logistic(F x) {
  F one = like(x, 1.0);
  F z = exp_or_zero(-abs_(x));
  F num = select(x < like(x, 0.0), z, one);
  return divide(Pair<F>{num, like(x, 0.0)}, fast_two_sum(one, z));
}

inline constexpr double kTanhF32[] = {-0x1.55554ap-2, 0x1.110ceep-3, -0x1.b91e7ep-5, 0x1.58e518p-6, -0x1.99219ep-8};
// 2^f - 1 = f P(f) for |f| <= 1/2.
inline constexpr double kExp2F32[] = {0x1.62e43p-1,  0x1.ebfbep-3,   0x1.c6af72p-5,
                                      0x1.3b2a48p-7, 0x1.5f0ddcp-10, 0x1.4424b8p-13};

// f32: x + x^3 P(x^2), and from 0.55 on 1 - 2 / (e^2|x| + 1), where the error of e^2|x| shrinks.
template <class F>
F tanh_f32(F x) {
  F a = at_most(abs_(x), like(x, 9.1)), one = like(x, 1.0);
  F magic = round_magic(x), two_log2e = like(x, 0x1.715476p+1);
  F t = fma(a, two_log2e, magic);
  F f = fma(a, two_log2e, magic - t);
  F s = as_float(shl(as_int(t), 23) + as_int(one));  // 2^n: the bits of magic fall out on the left
  F e = fma(f * s, poly(f, kExp2F32), s);
  F large = one - like(x, 2.0) / (e + one);
  F z = a * a;
  F small = fma(z * a, poly(z, kTanhF32), a);
  return copysign_(select(a < like(x, 0.55), small, large), x);
}

// f64: e^(2|x|) - 1 over e^(2|x|) + 1, each as an unevaluated pair.
template <class F>
F tanh(F x) {
  if constexpr (!is_f64<F>) return tanh_f32(x);
  F a = at_most(abs_(x), like(x, 19.1));
  auto [r, exact, lo_r, n, t_n] = reduce_exp(a + a);
  F s = power_of_two(t_n, 0);
  F tail = exp_tail(r);
  Pair<F> p = fast_two_sum(r, tail);
  F ps = p.hi * s, lo = p.lo * s;
  Pair<F> num = fast_two_sum(s - like(x, 1.0), ps);
  Pair<F> den = fast_two_sum(s + like(x, 1.0), ps);
  F t = divide(Pair<F>{num.hi, num.lo + lo}, Pair<F>{den.hi, den.lo + lo});
  return copysign_(t, x);
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

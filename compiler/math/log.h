// log and log1p.
//
// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log x = e ln2 + log(1 + f), f = m - 1 exact. f32 takes
// a polynomial in f (27 bits, no division); f64 the series of atanh(s), s = f / (2 + f), in Kahan's
// form f - (f^2/2 - s (f^2/2 + R)), whose big terms are exact.
#pragma once

#include "compiler/math/basic.h"

namespace hlojit::math {

inline constexpr double kLogF32[] = {0x1.555554p-2, -0x1.000228p-2, 0x1.99a036p-3, -0x1.547218p-3,
                                     0x1.22d83ap-3, -0x1.0d871cp-3, 0x1.055ccp-3,  -0x1.389612p-4};
inline constexpr double kLogF64[] = {0x1.5555555555592p-1, 0x1.999999997ff07p-2, 0x1.24924941e3094p-2,
                                     0x1.c71c52127b864p-3, 0x1.74663d6182fd2p-3, 0x1.39a1db5b036d1p-3,
                                     0x1.2f04510c2cae8p-3};

// e ln2 + log(1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1].
template <class F>
F log_reduced(F e, F f) {
  F f2 = f * f;
  if constexpr (is_f64<F>) {
    F s = f / (f + like(f, 2.0));
    F z = s * s;
    F half = f2 * like(f, 0.5);
    F tail = s * fma(z, poly(z, kLogF64), half);
    F lo = fma(e, like(f, 0x1.ef35793c7673p-45), tail);
    return fma(e, like(f, 0x1.62e42fefa38p-1), f - (half - lo));
  } else {
    F r = fma(poly(f, kLogF32) * f2, f, e * like(f, -2.12194440e-4));  // ln2 = 0.693359375 - 2.12194440e-4
    r = fma(f2, like(f, -0.5), r) + f;
    return fma(e, like(f, 0.693359375), r);
  }
}

// Bits of sqrt(1/2): below it the exponent belongs to the next binade.
template <class F>
IntOf<F> sqrt_half_bits(IntOf<F> i) {
  return likei(i, is_f64<F> ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
}

template <class F>
F log(F x) {
  auto tiny = x < like(x, 0x1p-126, 0x1p-1022);
  F v = select(tiny, x * like(x, 0x1p23, 0x1p54), x);
  auto b = as_int(v);
  auto e = ashr(b - sqrt_half_bits<F>(b), mantissa_bits<F>);
  F f = as_float(b - shl(e, mantissa_bits<F>)) - like(x, 1.0);
  F ef = to_float(e) - select(tiny, like(x, 23.0, 54.0), like(x, 0.0));
  F r = log_reduced(ef, f);
  r = select(x < like(x, kInf), r, x);  // inf and NaN are their own logarithm
  r = select(x == like(x, 0.0), like(x, -kInf), r);
  return select(x < like(x, 0.0), like(x, kNan), r);
}

// The exponent e of 1 + x (rounded) reduces x itself: f = x 2^-e + (2^-e - 1) is one rounding, and
// exact for e = 0.
template <class F>
F log1p(F x) {
  F u = x + like(x, 1.0);
  auto b = as_int(u);
  auto e = ashr(b - sqrt_half_bits<F>(b), mantissa_bits<F>);
  auto far = e > likei(e, 100);  // there 1 does not count, and 2^-e might not be normal
  F scale = as_float(shl(likei(e, exponent_bias<F>) - select(far, likei(e, 100), e), mantissa_bits<F>));
  F xs = as_float(as_int(x) - shl(e, mantissa_bits<F>));
  F f = xs + (scale - like(x, 1.0));
  F r = log_reduced(to_float(e), f);
  r = select(x < like(x, kInf), r, x);
  r = select(abs_(x) < like(x, 0x1p-25, 0x1p-54), x, r);  // subnormals, -0
  r = select(x == like(x, -1.0), like(x, -kInf), r);
  return select(x < like(x, -1.0), like(x, kNan), r);
}

}  // namespace hlojit::math

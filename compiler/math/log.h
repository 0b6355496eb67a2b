// log and log1p.
//
// x = 2^e m with m in [3/4, 3/2); log x = e ln2 + log(1 + f), f = m - 1 exact. f32 takes
// a polynomial in f (27 bits, no division); f64 the series of atanh(s), s = f / (2 + f), in Kahan's
// form f - (f^2/2 - s (f^2/2 + R)), whose big terms are exact.
#pragma once

#include "compiler/math/basic.h"

namespace hlojit::math {

inline constexpr double kLogF32[] = {0x1.5555a4p-2, -0x1.00001ep-2, 0x1.9968ep-3,  -0x1.54f9fp-3,
                                     0x1.28a546p-3, -0x1.0d4174p-3, 0x1.a9c122p-4, -0x1.6c07b8p-5};
inline constexpr double kLogF64[] = {0x1.555555555554fp-1, 0x1.999999999c175p-2, 0x1.24924921e4c25p-2,
                                     0x1.c71c748f33c94p-3, 0x1.745c4b02910cep-3, 0x1.3b35bb3ccdff2p-3,
                                     0x1.0dcbfa9ad6434p-3, 0x1.1b7ec1f47e8c8p-3};

// e ln2 + log(1 + f), f in [-1/4, 1/2].
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

template <class F>
F log(F x) {
  auto [e, m] = binade(x);
  return log_edges(log_reduced(e, m - like(x, 1.0)), x, 0.0);
}

// The exponent e of 1 + x (rounded) reduces x itself: f = x 2^-e + (2^-e - 1) is one rounding, and
// exact for e = 0.
template <class F>
F log1p(F x) {
  F u = x + like(x, 1.0);
  auto b = as_int(u);
  auto e = ashr(b - as_int(like(x, 0.75)), mantissa_bits<F>);
  auto far = e > likei(e, 100);  // there 1 does not count, and 2^-e might not be normal
  F scale = as_float(shl(likei(e, exponent_bias<F>) - select(far, likei(e, 100), e), mantissa_bits<F>));
  F xs = as_float(as_int(x) - shl(e, mantissa_bits<F>));
  F f = xs + (scale - like(x, 1.0));
  F r = log_reduced(to_float(e), f);
  r = select(abs_(x) < like(x, 0x1p-25, 0x1p-54), x, r);  // subnormals, -0
  return log_edges(r, x, -1.0);
}

}  // namespace hlojit::math

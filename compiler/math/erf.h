// erf.
//
// Small |x|: x + x P(x^2). Beyond: 1 - erfc(|x|), which is below 0.21 there and forgives: in f32
// Q(|x|)^8, in f64 2^Q(|x|) with Q fitted to log2(erfc). Neither divides.
#pragma once

#include "compiler/math/basic.h"
#include "compiler/math/exp.h"

namespace hlojit::math {

inline constexpr double kErfSmallF32[] = {0x1.06eba8p-3, -0x1.812734p-2, 0x1.ce2aa6p-4, -0x1.b7cdep-6,
                                          0x1.52ac24p-8, -0x1.9a3dep-11, 0x1.2f80b2p-14};
inline constexpr double kErfLargeF32[] = {0x1.004732p+0, -0x1.2afff6p-3, -0x1.eb9048p-5, -0x1.99a886p-7,
                                          0x1.b7b8b6p-7, -0x1.527896p-9, 0x1.50378ap-13};
inline constexpr double kErfSmallF64[] = {0x1.06eba8214db69p-3,   -0x1.812746b0379fbp-2,  0x1.ce2f21a0433ecp-4,
                                          -0x1.b82ce3129d973p-6,  0x1.565bcd0fba75cp-8,   -0x1.c02db3efafe2ep-11,
                                          0x1.f9a31c107f15bp-14,  -0x1.f4d0c8745255bp-17, 0x1.b9c710703e011p-20,
                                          -0x1.5def4d88636adp-23, 0x1.e5ed127b969dap-27,  -0x1.dd95a5d100d37p-31};
inline constexpr double kErfLargeF64[] = {
    -0x1.b86a05569a286p-24, -0x1.a0be719419854p+0,  -0x1.d63f897b36b1dp-1, -0x1.2f9fb7de33551p-3,
    0x1.c3a2d76e698e4p-6,   0x1.680a492476ffep-12,  -0x1.4581a012665d3p-9, 0x1.c57ac2789056dp-11,
    -0x1.844d66ce403b3p-16, -0x1.04d3bbca2c7cdp-13, 0x1.3aa4936b81b38p-14, -0x1.caa68038241bep-16,
    0x1.e41fbdc75a9b3p-18,  -0x1.819d56764508p-20,  0x1.cf5ecddfdf64p-23,  -0x1.9940bc6170cb2p-26,
    0x1.f6a0d285604dep-30,  -0x1.7fc90b132ad0fp-34, 0x1.1270949880719p-39};

// f32: the ranges' polynomials have one length. Where selects are cheap each lane takes its own range's coefficients,
// else both are evaluated; the bits are the same.
template <class F>
F erf_f32(F x) {
  F a = at_most(abs_(x), like(x, 3.95)), z = a * a;
  auto is_small = a < like(x, 1.1);
  auto result = [&](F small, F large) {
    F q2 = large * large, q4 = q2 * q2;
    return copysign_(select(is_small, fma(a, small, a), fma(-q4, q4, like(x, 1.0))), x);
  };
  if (!has_masks(x)) return result(horner(z, kErfSmallF32), horner(a, kErfLargeF32));
  auto coefficient = [&](int i) { return select(is_small, like(x, kErfSmallF32[i]), like(x, kErfLargeF32[i])); };
  F v = select(is_small, z, a), q = coefficient(6);
  for (int i = 5; i >= 0; --i) q = fma(q, v, coefficient(i));
  return result(q, q);
}

template <class F>
F erf_f64(F x) {
  F a = at_most(abs_(x), like(x, 5.95));
  F small = fma(a, poly(a * a, kErfSmallF64), a);
  F q = exp_clamped(poly(a, kErfLargeF64) * like(x, 0x1.62e42fefa39efp-1));
  return copysign_(select(a < like(x, 0.9), small, like(x, 1.0) - q), x);
}

template <class F>
F erf(F x) {
  if constexpr (is_f64<F>) {
    return erf_f64(x);
  } else {
    return erf_f32(x);
  }
}

}  // namespace hlojit::math

// sin, cos, tan.
//
// x = n pi/2 + r, |r| <= pi/4, with pi/2 in three parts of full width: up to kTrigLimit the fma
// chain leaves r within an ulp however close x is to a multiple of pi/2. Larger arguments are rare
// lanes (cold).
#pragma once

#include "compiler/math/basic.h"

namespace hlojit::math {

inline constexpr double kSinF32[] = {-0x1.555546p-3, 0x1.11077cp-7, -0x1.9955b6p-13};
inline constexpr double kCosF32[] = {0x1.55554ap-5, -0x1.6c0c1ap-10, 0x1.99e0eep-16};
inline constexpr double kSinF64[] = {-0x1.5555555555549p-3, 0x1.111111110f8a2p-7,   -0x1.a01a019c154cep-13,
                                     0x1.71de357a3b399p-19, -0x1.ae5e67d2ae587p-26, 0x1.5d936278a6cf2p-33};
inline constexpr double kCosF64[] = {0x1.555555555554cp-5,   -0x1.6c16c16c1521cp-10, 0x1.a01a019cbee0bp-16,
                                     -0x1.27e4f81239604p-22, 0x1.1ee9f0ec08ff3p-29,  -0x1.8fb0f4232b21fp-37};

// Largest |x| that the vector reduction handles.
template <class F>
inline constexpr double kTrigLimit = is_f64<F> ? 0x1p30 : 0x1p17;

template <class F>
struct TrigReduced {
  Pair<F> r;   // |r| <= pi/4 (a little more is harmless)
  IntOf<F> q;  // quadrant in its low two bits
};

// What both reductions start with: x = n pi/2 + h, h exact, but for the low parts of pi/2.
template <class F>
struct TrigStart {
  F n, h, c2, c3;
  IntOf<F> q;
};

template <class F>
TrigStart<F> start_trig(F x) {
  F magic = round_magic(x);
  F t = fma(x, like(x, 0x1.45f306dc9c883p-1), magic);
  F n = t - magic;
  F h = fma(n, like(x, -0x1.921fb4p+0, -0x1.921fb54442d18p+0), x);  // exact
  F c2 = like(x, 0x1.4442dp-24, 0x1.1a62633145c06p-54);
  F c3 = like(x, 0x1.84698ap-48, 0x1.c1cd129024e09p-107);
  return {n, h, c2, c3, as_int(t)};
}

// r = h - n c2 - n c3 as a pair; h and n c2 may cancel, in either order of size, so the sums are
// the general ones.
template <class F>
TrigReduced<F> reduce_trig(F x) {
  auto [n, h, c2, c3, q] = start_trig(x);
  Pair<F> w = two_product(n, c2);
  Pair<F> r = two_sum(h, -w.hi);
  return {{r.hi, r.lo - fma(n, c3, w.lo)}, q};
}

template <class F>
F sin_of(Pair<F> r) {
  F z = r.hi * r.hi;
  return fma(z * r.hi, poly(z, kSinF32, kSinF64), r.lo) + r.hi;
}

// 1 - z/2 rounds; its error and the r.lo term go into the tail.
template <class F>
F cos_of(Pair<F> r) {
  F one = like(r.hi, 1.0);
  F z = r.hi * r.hi;
  F h = z * like(z, 0.5);
  F c = one - h;
  F lo = (one - c) - h;
  return c + fma(z * z, poly(z, kCosF32, kCosF64), fma(-r.hi, r.lo, lo));
}

// Negated in quadrants 2 and 3.
template <class F>
F quadrant_sign(F v, IntOf<F> q) {
  return as_float(as_int(v) ^ shl(q & likei(q, 2), is_f64<F> ? 62 : 30));
}

// sin in quadrant 0, cos in 1, -sin in 2, -cos in 3.
template <class F>
F sin_quadrant(Pair<F> r, IntOf<F> q) {
  return quadrant_sign(select(bit(q, 0), cos_of(r), sin_of(r)), q);
}

// sin(x + turn pi/2). f32 stays below 2 ulp without low parts.
template <class F>
F sin_turned(F x, int turn) {
  if constexpr (is_f64<F>) {
    auto [r, q] = reduce_trig(x);
    return sin_quadrant(r, q + likei(q, turn));
  } else {
    auto [n, h, c2, c3, q] = start_trig(x);
    F r = fma(n, -c3, fma(n, -c2, h));
    F z = r * r;
    F s = fma(z * r, poly(z, kSinF32), r);
    F c = fma(z * z, poly(z, kCosF32), fma(z, like(z, -0.5), like(z, 1.0)));
    q = q + likei(q, turn);
    return quadrant_sign(select(bit(q, 0), c, s), q);
  }
}

// -cot in odd quadrants. Numerator and denominator as pairs: two roundings less than the quotient
// of sin and cos.
template <class F>
F tan_quadrant(Pair<F> r, IntOf<F> q) {
  F one = like(r.hi, 1.0);
  F z = r.hi * r.hi;
  F z_lo = fma(r.hi, r.hi, -z);
  Pair<F> s = fast_two_sum(r.hi, fma(z * r.hi, poly(z, kSinF32, kSinF64), r.lo));
  F h = z * like(z, 0.5);
  F c0 = one - h;
  F lo = fma(z_lo, like(z, -0.5), (one - c0) - h);
  Pair<F> c = fast_two_sum(c0, fma(z * z, poly(z, kCosF32, kCosF64), fma(-r.hi, r.lo, lo)));
  auto odd = bit(q, 0);
  Pair<F> num = {select(odd, -c.hi, s.hi), select(odd, -c.lo, s.lo)};
  Pair<F> den = {select(odd, s.hi, c.hi), select(odd, s.lo, c.lo)};
  return divide(num, den);
}

template <class F>
F sin(F x) {
  F y = sin_turned(x, 0);
  y = select(x == like(x, 0.0), x, y);            // -0
  auto ok = !(abs_(x) > like(x, kTrigLimit<F>));  // NaN is no reason to be slow
  return cold(x, ok, y, kColdSin<typename Number<F>::Scalar>);
}

template <class F>
F cos(F x) {
  F y = sin_turned(x, 1);
  auto ok = !(abs_(x) > like(x, kTrigLimit<F>));  // NaN is no reason to be slow
  return cold(x, ok, y, kColdCos<typename Number<F>::Scalar>);
}

template <class F>
F tan(F x) {
  auto [r, q] = reduce_trig(x);
  F y = tan_quadrant(r, q);
  F a = abs_(x);
  y = select(a < like(x, 0x1p-13, 0x1p-27), x, y);  // subnormals, -0
  auto ok = !(a > like(x, kTrigLimit<F>));
  return cold(x, ok, y, kColdTan<typename Number<F>::Scalar>);
}

}  // namespace hlojit::math

// Shared pieces of the kernels (polynomials, constants, error-free sums) and the functions that
// need nothing else.
//
// Coefficients are written as doubles in arrays; like() rounds them to the type. Those fitted for
// f32 are exact in f32.
#pragma once

#include <limits>

#include "compiler/math/number.h"

namespace hlojit::math {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// c[0] + c[1] x + ... + c[n-1] x^(n-1) with fma, by Horner: fewest operations and roundings.
template <class F, int n>
F horner(F x, const double (&c)[n]) {
  F r = like(x, c[n - 1]);
  for (int i = n - 2; i >= 0; --i) r = fma(r, x, like(x, c[i]));
  return r;
}

// The same; if long, even and odd powers apart, which halves the chain of dependent steps (f64 erf
// took 30 % longer) for one more rounding.
template <class F, int n>
F poly(F x, const double (&c)[n]) {
  if constexpr (n < 8) {
    return horner(x, c);
  } else {
    F x2 = x * x, a = like(x, c[n - 1]), b = like(x, c[n - 2]);
    for (int i = n - 3; i >= 0; i -= 2) {
      a = fma(a, x2, like(x, c[i]));
      if (i > 0) b = fma(b, x2, like(x, c[i - 1]));
    }
    return n % 2 == 1 ? fma(b, x, a) : fma(a, x, b);  // c[0] is in a if n is odd
  }
}

// The polynomial of F's own width.
template <class F, int n32, int n64>
F poly(F x, const double (&c32)[n32], const double (&c64)[n64]) {
  if constexpr (is_f64<F>) {
    return poly(x, c64);
  } else {
    return poly(x, c32);
  }
}

// A constant that differs between the widths.
template <class F>
F like(F x, double c32, double c64) {
  return like(x, is_f64<F> ? c64 : c32);
}

template <class F>
inline constexpr int mantissa_bits = is_f64<F> ? 52 : 23;
template <class F>
inline constexpr int exponent_bias = is_f64<F> ? 1023 : 127;

// Adding this to a small x leaves round_even(x) in the low bits of the sum.
template <class F>
F round_magic(F x) {
  return like(x, 0x1.8p23, 0x1.8p52);
}

// 2^(i + more), within the normal range, for t = i + round_magic: all but the low bits of i fall out on the left.
template <class F>
F power_of_two(F t, int more) {
  auto bits = shl(as_int(t), mantissa_bits<F>);
  return as_float(bits + likei(bits, static_cast<int64_t>(exponent_bias<F> + more) << mantissa_bits<F>));
}

// min(x, c) and max(x, c) that keep a NaN x.
template <class F>
F at_most(F x, F c) {
  return select(x > c, c, x);
}
template <class F>
F at_least(F x, F c) {
  return select(x < c, c, x);
}

// hi + lo = the exact value, |lo| <= ulp(hi) / 2.
template <class F>
struct Pair {
  F hi, lo;
};

// a + b without error; |a| >= |b| or a = 0.
template <class F>
Pair<F> fast_two_sum(F a, F b) {
  F hi = a + b;
  return {hi, b - (hi - a)};
}

// a + b without error.
template <class F>
Pair<F> two_sum(F a, F b) {
  F hi = a + b;
  F b_part = hi - a;
  return {hi, (a - (hi - b_part)) + (b - b_part)};
}

// a * b without error (unless it underflows).
template <class F>
Pair<F> two_product(F a, F b) {
  F hi = a * b;
  return {hi, fma(a, b, -hi)};
}

// a / b to a little over half an ulp: one division, one correction.
template <class F>
F divide(Pair<F> a, Pair<F> b) {
  F r = like(b.hi, 1.0) / b.hi;
  F q = a.hi * r;
  F rest = fma(-q, b.hi, a.hi) + fma(-q, b.lo, a.lo);
  return fma(rest, r, q);
}

template <class F>
F sqrt(F x) {
  return sqrt_(x);
}

// Two correctly rounded steps: below 1.5 ulp; rsqrt(-0) = -inf.
template <class F>
F rsqrt(F x) {
  return like(x, 1.0) / sqrt_(x);
}

// -1, 1, or x itself for zeros and NaN.
template <class F>
F sign(F x) {
  return select(abs_(x) > like(x, 0.0), copysign_(like(x, 1.0), x), x);
}

// To nearest, ties away from zero. The addend is the number below 0.5, else 0.49999997 would
// become 1.
template <class F>
F round_afz(F x) {
  F half = like(x, 0x1.fffffep-2, 0x1.fffffffffffffp-2);
  return copysign_(trunc_(abs_(x) + half), x);
}

// NaN if either is NaN; -0 < +0.
template <class F>
F maximum(F x, F y) {
  auto xi = as_int(x), yi = as_int(y);
  F equal = as_float(xi & yi);  // +0 unless both are -0
  F r = select(x > y, x, select(x == y, equal, y));
  return select(x != x, x, r);
}
template <class F>
F minimum(F x, F y) {
  auto xi = as_int(x), yi = as_int(y);
  F equal = as_float(xi | yi);
  F r = select(x < y, x, select(x == y, equal, y));
  return select(x != x, x, r);
}

// C fmod: exact, with the sign of x. While the quotient is below 2^22 it is off by at most one and
// x - q*y is exact.
template <class F>
F remainder(F x, F y) {
  F ax = abs_(x), ay = abs_(y);
  F q = trunc_(ax / ay);
  auto ok = !(q >= like(x, 0x1p22, 0x1p51));
  F r = fma(-q, ay, ax);
  r = select(r < like(x, 0.0), r + ay, r);
  r = select(ax < ay, ax, r);
  r = copysign_(r, x);
  return cold(x, y, ok, r, kColdFmod<typename Number<F>::Scalar>);
}

// Newton on y = x^(-1/3), which needs no division, from a third of the exponent; one step on c =
// x*y*y with an exact residual rounds it. Subnormals are scaled by a power of eight.
template <class F>
F cbrt(F x) {
  F a = abs_(x);
  auto tiny = a < like(x, 0x1p-126, 0x1p-1022);
  F v = select(tiny, a * like(x, 0x1p24, 0x1p54), a);
  // Bits of v are about (log2 v + bias) * 2^m; those of y want -1/3 of the logarithm.
  F y = a;
  if constexpr (is_f64<F>) {
    auto hi = lshr(as_int(v), 32);
    F t = fma(to_float(hi), like(x, -1.0 / 3), like(x, 0x1.8p52 + 1430194685.0));
    y = as_float(shl(as_int(t), 32));
  } else {
    y = as_float(to_int(fma(to_float(as_int(v)), like(x, -1.0 / 3), like(x, 1419967116.0))));
  }
  F one = like(x, 1.0);
  for (int i = 0; i < 2; ++i) {
    F h = fma(-(v * y), y * y, one);
    y = fma(y * h, fma(h, like(x, 2.0 / 9), like(x, 1.0 / 3)), y);
  }
  F yy = y * y;
  F c = v * yy;
  Pair<F> cc = two_product(c, c);
  F rest = fma(cc.hi, c, -v) + cc.lo * c;
  c = fma(rest * yy, like(x, -1.0 / 3), c);
  c = select(tiny, c * like(x, 0x1p-8, 0x1p-18), c);
  c = select((a > like(x, 0.0)) & (a < like(x, kInf)), c, a);
  return copysign_(c, x);
}

}  // namespace hlojit::math

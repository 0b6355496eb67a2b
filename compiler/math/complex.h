// Functions of complex numbers over the number type: c64 and c128 in their own width (pow of c64 in
// f64, because y log x amplifies).
//
// Principal branches, signed zeros on the cuts. What can be lost is lost by cancellation or by
// squares leaving the range, so: |z|^2 - 1 is summed from exact products, 1 + e^w is split into two
// terms of one sign, tanh is Kahan's form, and moduli are scaled by a power of two. Multiplication
// is the plain formula, without C's recovery of infinities.
#pragma once

#include <array>

#include "compiler/math/functions.h"

namespace hlojit::math {

template <class F>
struct Cx {
  F re, im;
};

template <class F>
Cx<F> operator+(Cx<F> a, Cx<F> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class F>
Cx<F> operator-(Cx<F> a, Cx<F> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class F>
Cx<F> operator-(Cx<F> a) {
  return {-a.re, -a.im};
}
template <class F>
Cx<F> operator*(Cx<F> a, Cx<F> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class F>
Cx<F> select(MaskOf<F> m, Cx<F> a, Cx<F> b) {
  return {select(m, a.re, b.re), select(m, a.im, b.im)};
}
template <class F>
Cx<F> scale(Cx<F> a, F by) {
  return {a.re * by, a.im * by};
}

// Smith's quotient: by the larger part of b, so that its squares neither overflow nor vanish. Where it is NaN in both
// parts it may be infinite or zero (scalar.cc).
template <class F>
Cx<F> operator/(Cx<F> a, Cx<F> b) {
  using T = typename Number<F>::Scalar;
  auto swap = abs_(b.re) < abs_(b.im);
  F large = select(swap, b.im, b.re), small = select(swap, b.re, b.im);
  F p = select(swap, a.im, a.re), q = select(swap, a.re, a.im);
  F r = small / large, d = fma(small, r, large);
  std::array<F, 2> z = {fma(q, r, p) / d, fma(select(swap, p, -p), r, select(swap, -q, q)) / d};  // of zeros, +0
  z = cold(std::array<F, 4>{a.re, a.im, b.re, b.im}, (z[0] == z[0]) | (z[1] == z[1]), z, kColdQuotient<T>);
  return {z[0], z[1]};
}

// x, y scaled by 2^-e (e even if asked for) so that the larger part lies in [1, 4).
template <class F>
struct ScaledCx {
  F x, y;
  F e, up;  // e as a float, 2^e
};

template <class F>
ScaledCx<F> scale_cx(Cx<F> z) {
  constexpr int m = mantissa_bits<F>, bias = exponent_bias<F>;
  F ax = abs_(z.re), ay = abs_(z.im);
  F large = select(ax < ay, ay, ax);
  // Biased exponent made odd (e even), kept where 2^e and 2^-e are both normal.
  auto field = (lshr(as_int(large), m) - likei(as_int(large), 1)) | likei(as_int(large), 1);
  auto low = likei(field, 1), high = likei(field, 2 * bias - 1);
  field = select(field < low, low, select(field > high, high, field));
  F up = as_float(shl(field, m)), down = as_float(shl(likei(field, 2 * bias) - field, m));
  return {z.re * down, z.im * down, to_float(field - likei(field, bias)), up};
}

template <class F>
F abs(Cx<F> z) {
  ScaledCx<F> s = scale_cx(z);
  return sqrt_(fma(s.x, s.x, s.y * s.y)) * s.up;
}

template <class F>
Cx<F> sign(Cx<F> z) {
  ScaledCx<F> s = scale_cx(z);
  F r = sqrt_(fma(s.x, s.x, s.y * s.y));
  return select(r == like(r, 0.0), z, Cx<F>{s.x / r, s.y / r});
}

// log|z|. Within [1/2, 2) unscaled: |z|^2 - 1 from exact squares; outside it cannot cancel.
template <class F>
F log_abs(Cx<F> z) {
  F ax = abs_(z.re), ay = abs_(z.im), one = like(ax, 1.0);
  F large = select(ax < ay, ay, ax);
  ScaledCx<F> s = scale_cx(z);
  auto near = (large >= like(ax, 0.5)) & (large < like(ax, 2.0));
  F x = select(near, ax, abs_(s.x)), y = select(near, ay, abs_(s.y));
  F e = select(near, like(ax, 0.0), s.e);
  Pair<F> a = two_product(select(x < y, y, x), select(x < y, y, x));
  Pair<F> b = two_product(select(x < y, x, y), select(x < y, x, y));
  // The big terms leave exactly; what is left may be smaller than the low parts.
  Pair<F> c = two_sum((a.hi - one) + b.hi, a.lo);
  Pair<F> f = two_sum(c.hi, b.lo);
  F d = f.hi + (c.lo + f.lo);
  F r = log1p(d) * like(d, 0.5);
  F ln2_hi = like(d, 0.693359375, 0x1.62e42fefa38p-1);
  F ln2_lo = like(d, -2.12194440e-4, 0x1.ef35793c7673p-45);
  r = fma(e, ln2_hi, fma(e, ln2_lo, r));
  F inf = like(d, kInf);
  return select((ax == inf) | (ay == inf), inf, r);
}

template <class F>
Cx<F> log(Cx<F> z) {
  return {log_abs(z), atan2(z.im, z.re)};
}

// log|1 + z| = log1p(2x + x^2 + y^2) / 2 with the sum carried exactly, except near -1, where 1 + x
// is exact, and far out, where 1 + x loses nothing that counts.
template <class F>
Cx<F> log1p(Cx<F> z) {
  F one = like(z.re, 1.0), half = like(z.re, 0.5), far = like(z.re, 0x1p10);
  Cx<F> w = {one + z.re, z.im};
  Pair<F> xx = two_product(z.re, z.re), yy = two_product(z.im, z.im);
  Pair<F> s = two_sum(z.re + z.re, yy.hi);
  Pair<F> t = two_sum(s.hi, xx.hi);
  Pair<F> u = two_sum(xx.lo, yy.lo);
  Pair<F> v = two_sum(t.hi, s.lo + t.lo);
  Pair<F> d = two_sum(v.hi, u.hi);
  F sum = d.hi + (d.lo + (v.lo + u.lo));
  auto away = (abs_(w.re) >= half) | (abs_(w.im) >= half);
  auto summed = away & (abs_(z.re) < far) & (abs_(z.im) < far);
  return {select(summed, log1p(sum) * half, log_abs(w)), atan2(w.im, w.re)};
}

// e^x (c + i s) with c, s at most one. Where the exponential alone overflows it comes in up to
// three factors: a tiny s reaches back from 2^-1074.
template <class F>
Cx<F> exp_times(F x, F c, F s) {
  F cut = like(x, 64.0, 512.0), top = like(x, 88.0, 709.0);
  F one = like(x, 1.0), zero = like(x, 0.0);
  F step = like(x, 0x1.425982cf597cdp+92, 0x1.9476504ba852ep+738);  // e^cut
  auto big = x > top;
  F y = select(big, x - cut, x);
  auto huge = y > top;
  F e = exp(select(huge, y - cut, y));
  F first = select(big, step, one), second = select(huge, step, one);
  auto grow = [&](F v) { return select(v == zero, v, v * e * first * second); };  // 0 * inf is 0
  auto gone = (x == like(x, -kInf)) & (c == c);                                   // in a direction that is given
  return {select(gone, zero, grow(c)), select(gone, zero, grow(s))};
}

template <class F>
Cx<F> exp(Cx<F> z) {
  return exp_times(z.re, cos(z.im), sin(z.im));
}

// (e^x - 1) cos y - 2 sin^2(y/2) + i e^x sin y
template <class F>
Cx<F> expm1(Cx<F> z) {
  F h = sin(z.im * like(z.im, 0.5)), c = cos(z.im);
  F re = fma(expm1(z.re), c, like(h, -2.0) * h * h);
  Cx<F> e = exp_times(z.re, c, sin(z.im));
  // Where e^x cos y is below 1/2 or above all, nothing cancels.
  auto plain = (z.re < like(h, -0.7)) | (z.re > like(h, 30.0, 60.0));
  return {select(plain, e.re - like(h, 1.0), re), e.im};
}

// t = sqrt((|x| + |z|) / 2), |z| and 2^k of z scaled by 4^-k.
template <class F>
struct SqrtParts {
  F t, modulus, up;
};

template <class F>
SqrtParts<F> sqrt_parts(Cx<F> z) {
  ScaledCx<F> s = scale_cx(z);
  F m = sqrt_(fma(s.x, s.x, s.y * s.y));
  F t = sqrt_((abs_(s.x) + m) * like(m, 0.5));
  auto field = lshr(as_int(s.up), mantissa_bits<F>);  // odd, so half of field - bias is whole
  auto bias = likei(field, exponent_bias<F>);
  return {t, m, as_float(shl(ashr(field - bias, 1) + bias, mantissa_bits<F>))};
}

// t + i y/(2t), or y/(2t) + i t for x < 0.
template <class F>
Cx<F> sqrt(Cx<F> z) {
  SqrtParts<F> p = sqrt_parts(z);
  F t = p.t * p.up, inf = like(t, kInf), zero = like(t, 0.0);
  F u = select(t == zero, t, abs_(z.im) / (t + t));
  auto left = z.re < zero;
  F re = select(left, u, t), im = select(left, t, u);
  auto infinite = abs_(z.re) == inf;
  re = select(infinite, select(left, zero, inf), re);
  im = select(infinite, select(left, inf, zero), im);
  auto up = abs_(z.im) == inf;
  re = select(up, inf, re);
  im = select(up, inf, im);
  return {re, copysign_(im, z.im)};
}

// conj(sqrt z) / |z|
template <class F>
Cx<F> rsqrt(Cx<F> z) {
  SqrtParts<F> p = sqrt_parts(z);
  F zero = like(p.t, 0.0), inf = like(p.t, kInf);
  F t = p.t / p.modulus / p.up, u = abs_(z.im) / (p.t + p.t) / p.modulus / p.up / p.up / p.up;
  auto left = z.re < zero;
  Cx<F> r = {select(left, u, t), copysign_(select(left, t, u), -z.im)};
  auto infinite = (abs_(z.re) == inf) | (abs_(z.im) == inf);
  r = select(infinite, Cx<F>{zero, copysign_(zero, -z.im)}, r);
  auto at_zero = (z.re == zero) & (z.im == zero);
  return select(at_zero, Cx<F>{inf, like(t, kNan)}, r);
}

// Kahan: with t = tan y, b = 1 + t^2, s = sinh x: (b s sqrt(1 + s^2) + i t) / (1 + b s^2). Far out
// the imaginary part is 4 sin y cos y e^-2|x|. Without a y (nan, inf) there is a value at infinite x alone.
template <class F>
Cx<F> tanh(Cx<F> z) {
  F one = like(z.re, 1.0), ax = abs_(z.re), limit = like(z.re, 12.0, 22.0);
  F t = tan(z.im), s = sinh(at_most(ax, limit));
  F b = fma(t, t, one);
  F d = fma(b * s, s, one);
  F re = b * s * sqrt_(fma(s, s, one)) / d;
  F im = t / d;
  auto far = ax > limit;
  F e = exp(-ax);
  F small = like(t, 4.0) * sin(z.im) * cos(z.im) * e * e;
  auto infinite = ax == like(t, kInf);
  re = copysign_(select(far, select(infinite | (t == t), one, t), re), z.re);
  return {re, select(far, select(infinite, copysign_(like(t, 0.0), z.im), small), im)};
}

// tan z = -i tanh(i z)
template <class F>
Cx<F> tan(Cx<F> z) {
  Cx<F> w = tanh(Cx<F>{-z.im, z.re});
  return {w.im, -w.re};
}

// a cosh y + i b sinh y for |a|, |b| <= 1; far out both are e^|y| / 2.
template <class F>
Cx<F> hyperbolic(F a, F b, F y) {
  F half = like(y, 0.5);
  auto far = abs_(y) > like(y, 80.0, 700.0);
  Cx<F> e = exp_times(abs_(y), a * half, b * half);
  F sh = sinh(y), zero = like(y, 0.0);
  F flipped = select(signbit_(y), -b, b);  // b sinh y, if b is zero
  F im = select(far, select(signbit_(y), -e.im, e.im), b * sh);
  return {select(far, e.re, a * cosh(y)), select(b == zero, flipped, im)};
}

template <class F>
Cx<F> sin(Cx<F> z) {
  return hyperbolic(sin(z.re), cos(z.re), z.im);
}
template <class F>
Cx<F> cos(Cx<F> z) {
  return hyperbolic(cos(z.re), -sin(z.re), z.im);
}
// sinh z = -i sin(i z), cosh z = cos(i z)
template <class F>
Cx<F> sinh(Cx<F> z) {
  Cx<F> w = sin(Cx<F>{-z.im, z.re});
  return {w.im, -w.re};
}
template <class F>
Cx<F> cosh(Cx<F> z) {
  return cos(Cx<F>{-z.im, z.re});
}

// 1 / (1 + w) or w / (1 + w) with w = e^-z or e^z, the one of modulus a <= 1:
// 1 + w = (1 - a) + a (1 + cos y) + i a sin y, both real terms at least zero.
template <class F>
Cx<F> logistic(Cx<F> z) {
  F ax = abs_(z.re), one = like(ax, 1.0), zero = like(ax, 0.0);
  auto left = z.re < zero;
  F a = exp(-ax), h = z.im * like(ax, 0.5);
  F c = cos(h), s = sin(h);
  F two_ac = like(a, 2.0) * a * c;
  F im = select(left, two_ac * s, -(two_ac * s));
  Cx<F> den = {fma(two_ac, c, -expm1(-ax)), im};
  Cx<F> num = {select(left, a * cos(z.im), one), select(left, im, zero)};
  return num / den;
}

template <class F>
Cx<F> pow_wide(Cx<F> x, Cx<F> y) {
  return exp(y * log(x));
}

template <class F>
Cx<F> pow(Cx<F> x, Cx<F> y) {
  F zero = like(x.re, 0.0), one = like(x.re, 1.0);
  Cx<F> r = x;
  if constexpr (is_f64<F>) {
    r = pow_wide(x, y);
  } else {
    auto wide = [](Cx<F> z) {
      auto re = to_f64(z.re);
      return Cx<decltype(re)>{re, to_f64(z.im)};
    };
    auto w = pow_wide(wide(x), wide(y));
    r = {to_f32(w.re), to_f32(w.im)};
  }
  auto base0 = (x.re == zero) & (x.im == zero);
  auto exponent0 = (y.re == zero) & (y.im == zero);
  r = select(base0 & (y.re > zero), Cx<F>{zero, zero}, r);
  return select(exponent0, Cx<F>{one, zero}, r);
}

// What the inverse functions share: sqrt(1 - z), sqrt(1 + z), and the results for infinite z, whose
// angle and size are all that counts.
template <class F>
struct InverseParts {
  Cx<F> minus, plus;
  MaskOf<F> infinite;
};

template <class F>
InverseParts<F> inverse_parts(Cx<F> z) {
  F one = like(z.re, 1.0), inf = like(z.re, kInf);
  MaskOf<F> infinite = (abs_(z.re) == inf) | (abs_(z.im) == inf);
  return {sqrt(Cx<F>{one - z.re, -z.im}), sqrt(Cx<F>{one + z.re, z.im}), infinite};
}

// f in f64 whatever F is: what cancels near the branch points of c64 is exact there.
template <class F, class Function>
Cx<F> through_f64(Cx<F> z, Function f) {
  if constexpr (is_f64<F>) {
    return f(z);
  } else {
    auto re = to_f64(z.re);
    auto w = f(Cx<decltype(re)>{re, to_f64(z.im)});
    return {to_f32(w.re), to_f32(w.im)};
  }
}

// Kahan: asin z = atan(x / Re(m p)) + i asinh(Im(conj(m) p)), m = sqrt(1 - z), p = sqrt(1 + z).
template <class F>
Cx<F> asin(Cx<F> z) {
  return through_f64(z, [](auto w) {
    auto [m, p, infinite] = inverse_parts(w);
    auto re = atan2(w.re, m.re * p.re - m.im * p.im);
    auto im = asinh(m.re * p.im - m.im * p.re);
    return select(infinite, decltype(w){atan2(w.re, abs_(w.im)), copysign_(like(re, kInf), w.im)}, decltype(w){re, im});
  });
}

// acos z = 2 atan(Re m / Re p) + i asinh(Im(conj(p) m))
template <class F>
Cx<F> acos(Cx<F> z) {
  return through_f64(z, [](auto w) {
    auto [m, p, infinite] = inverse_parts(w);
    auto re = like(w.re, 2.0) * atan2(m.re, p.re);
    auto im = asinh(p.re * m.im - p.im * m.re);
    return select(infinite, decltype(w){atan2(abs_(w.im), w.re), copysign_(like(re, kInf), -w.im)},
                  decltype(w){re, im});
  });
}

// asinh z = i asin(-i z), acosh z = +-i acos z with the sign that makes the real part positive.
template <class F>
Cx<F> asinh(Cx<F> z) {
  Cx<F> w = asin(Cx<F>{z.im, -z.re});
  return {-w.im, w.re};
}
template <class F>
Cx<F> acosh(Cx<F> z) {
  Cx<F> w = acos(z);
  return {abs_(w.im), copysign_(w.re, z.im)};
}

// (log1p(4x / ((1-x)^2 + y^2)) / 4, atan2(2y, (1-x)(1+x) - y^2) / 2) for x >= 0; far out the real part is that
// of 1/z.
template <class F>
Cx<F> atanh(Cx<F> z) {
  return through_f64(z, [](auto w) {
    auto x = abs_(w.re), y = w.im, one = like(w.re, 1.0);
    auto ay = abs_(y);
    auto a = one - x;
    auto re = log1p(like(x, 4.0) * x / fma(a, a, y * y)) * like(x, 0.25);
    auto im = atan2(y + y, a * (one + x) - y * y) * like(x, 0.5);
    auto large = select(x < ay, ay, x), small = select(x < ay, x, ay);
    auto r = small / large;
    auto size = fma(r, r, one) * large;  // |z|^2 / large
    auto far_re = select(large == like(x, kInf), like(x, 0.0), select(x < ay, r, one) / size);
    auto far = large > like(x, 0x1p100);
    re = copysign_(select(far, far_re, re), w.re);
    im = select(far, copysign_(like(x, 1.5707963267948966), y), im);
    return decltype(w){re, im};
  });
}

// -i log((x + i y) / sqrt(x^2 + y^2))
template <class F>
Cx<F> atan2(Cx<F> y, Cx<F> x) {
  Cx<F> iy = {-y.im, y.re};
  Cx<F> w = log((x + iy) / sqrt(x * x + y * y));
  return {w.im, -w.re};
}

}  // namespace hlojit::math

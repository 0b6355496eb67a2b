// The number type that every function of compiler/math is a template over, and its scalar instance.
//
// One source serves three users: the emitter (a type that records vector IR of any lane count), the
// evaluator and constant folder (float, double), and run-time kernels (a SIMD batch). So a function
// may use only what is listed here, it never branches on data (select, or cold for rare lanes), and
// every instance gives the same bits.
//
// A number type comes as a triple of one lane count and one width w (32 or 64):
//   F  floating point of w bits      I  signed integer of w bits, wraps      B  mask
// and a specialisation of Number<F>. F32 and F64 are distinct types, so is_f64<F> is known at
// compile time. Found by argument-dependent lookup (x, y, z: F; i, j: I; a, b: B; n: int constant):
//
//   like(x, double c) -> F        constant of x's type, c rounded to nearest
//   likei(i, int64_t c) -> I
//   x + y   x - y   x * y   x / y   -x           correctly rounded, never contracted
//   fma(x, y, z) -> F             one rounding
//   sqrt_(x) -> F                 correctly rounded
//   x < y   x <= y   x > y   x >= y   x == y   x != y  -> B     false on NaN, except !=
//   a & b   a | b   !a -> B
//   select(a, x, y) -> F          select(a, i, j) -> I
//   abs_(x)   copysign_(x, sign of y)   signbit_(x) -> B        the sign bit, also of NaN
//   floor_(x)   trunc_(x)   round_even_(x) -> F                 keep the sign of zero
//   ldexp2(x, i) -> F             x * 2^i, one rounding; 0.5 <= |x| < 4, |i| < 2^8 (f64: 2^11)
//   one_of_eight(c, t) -> F32     c[the low three bits of t]
//   one_plus_ldexp2(x, y, t, n) -> F             (1 + x) 2^(y + n), as s + s x for s = 2^(y - floor(y)), rounded before
//                                 and after the power, whose exponent is below 2^8 (f64: 2^11) in size; 1/2 <= 1 + x <
//                                 2, or NaN. y is in eighths, t = y + 1.5 * 2^20; f64: y is whole, t = y + 1.5 * 2^52
//   one_plus_ldexp2_or_zero(a, x, y, t, falls) -> F  the same, n = 0; zero where a, which is where all of it rounds to
//                                 zero (and y may be anything if has_masks); falls, a bool: y is not above 2^5
//   has_masks(x) -> bool          a select is as cheap as a sum: it takes a register of masks
//   log_edges(r, x, double p) -> F   r, but -inf where x = p, NaN below, and x where that is infinite or NaN; p = 0, -1
//   binade(x) -> Binade<F>        x = 2^e m with 3/4 <= m < 3/2, e whole; x > 0 and finite (else anything)
//   as_int(x) -> I   as_float(i) -> F            same bits
//   to_float(i) -> F              nearest; 64 bits: |i| < 2^51 only (one add, one subtract where
//                                 the CPU lacks it)
//   to_small_int(x) -> I          towards zero; |x| < 2^31 (as to_float, without a CPU's help)
//   to_unsigned(x) -> I           the same to an unsigned integer of as many bits, x >= 0
//   to_int(x) -> I                towards zero; x must fit I (anything else gives any value, no trap)
//   i + j   i - j   -i   i & j   i | j   i ^ j -> I
//   i == j   i != j   i < j   i > j -> B                        signed
//   shl(i, n)   lshr(i, n)   ashr(i, n) -> I     bit(i, n) -> B: bit n is set
//   to_f64(F32) -> F64            to_f32(F64) -> F32, to nearest     (lane count kept)
//   cold(x, ok, fast, fn) -> F    lanes of fast where ok, else fn of that lane's x: rare lanes
//   cold(x, y, ok, fast, fn) -> F
//                                 fn: ScalarFunction1<T> or 2<T> of scalar.h, T = Number<F>::Scalar
//   cold(a, ok, fast, fn) -> std::array<F, 2>    the same of two parts, a: std::array<F, 4> (no batch has it)
//
// Masks of different widths never mix. Not an operation: what a compare, a select and the above
// say.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "compiler/math/scalar.h"

namespace hlojit::math {

// Specialise for each F: `bits`, `Scalar` (float or double), `Int` (its I), `Mask` (its B).
template <class F>
struct Number;

// The I of the scalar instance: an integer that wraps, as the others do.
template <class T>
struct Wrapping {
  T v;
};

template <>
struct Number<float> {
  static constexpr int bits = 32;
  using Scalar = float;
  using Int = Wrapping<int32_t>;
  using Mask = bool;
};

template <>
struct Number<double> {
  static constexpr int bits = 64;
  using Scalar = double;
  using Int = Wrapping<int64_t>;
  using Mask = bool;
};

template <class F>
inline constexpr bool is_f64 = Number<F>::bits == 64;

template <class F>
using IntOf = typename Number<F>::Int;

template <class F>
using MaskOf = typename Number<F>::Mask;

// The scalar instance: float, double, Wrapping<int32_t>, Wrapping<int64_t>, bool.

template <class T>
constexpr Wrapping<T> operator+(Wrapping<T> i, Wrapping<T> j) {
  using U = std::make_unsigned_t<T>;
  return {static_cast<T>(static_cast<U>(i.v) + static_cast<U>(j.v))};
}
template <class T>
constexpr Wrapping<T> operator-(Wrapping<T> i, Wrapping<T> j) {
  using U = std::make_unsigned_t<T>;
  return {static_cast<T>(static_cast<U>(i.v) - static_cast<U>(j.v))};
}
template <class T>
constexpr Wrapping<T> operator-(Wrapping<T> i) {
  return Wrapping<T>{0} - i;
}
template <class T>
constexpr Wrapping<T> operator&(Wrapping<T> i, Wrapping<T> j) {
  return {static_cast<T>(i.v & j.v)};
}
template <class T>
constexpr Wrapping<T> operator|(Wrapping<T> i, Wrapping<T> j) {
  return {static_cast<T>(i.v | j.v)};
}
template <class T>
constexpr Wrapping<T> operator^(Wrapping<T> i, Wrapping<T> j) {
  return {static_cast<T>(i.v ^ j.v)};
}
template <class T>
[[gnu::const]] constexpr bool operator==(Wrapping<T> i, Wrapping<T> j) {
  return i.v == j.v;
}
template <class T>
[[gnu::const]] constexpr bool operator!=(Wrapping<T> i, Wrapping<T> j) {
  return i.v != j.v;
}
template <class T>
[[gnu::const]] constexpr bool operator<(Wrapping<T> i, Wrapping<T> j) {
  return i.v < j.v;
}
template <class T>
[[gnu::const]] constexpr bool operator>(Wrapping<T> i, Wrapping<T> j) {
  return i.v > j.v;
}
template <class T>
constexpr Wrapping<T> ashr(Wrapping<T> i, int n) {
  return {static_cast<T>(i.v >> n)};
}
template <class T>
constexpr Wrapping<T> lshr(Wrapping<T> i, int n) {
  return {static_cast<T>(static_cast<std::make_unsigned_t<T>>(i.v) >> n)};
}
template <class T>
constexpr Wrapping<T> shl(Wrapping<T> i, int n) {
  return {static_cast<T>(static_cast<std::make_unsigned_t<T>>(i.v) << n)};
}
template <class T>
[[gnu::const]] constexpr bool bit(Wrapping<T> i, int n) {
  return (i.v >> n) & 1;
}
template <class T>
[[gnu::const]] constexpr Wrapping<T> likei(Wrapping<T>, int64_t c) {
  return {static_cast<T>(c)};
}
template <class T>
constexpr Wrapping<T> select(bool a, Wrapping<T> i, Wrapping<T> j) {
  return a ? i : j;
}

[[gnu::const]] inline float like(float, double c) { return static_cast<float>(c); }
[[gnu::const]] inline double like(double, double c) { return c; }
[[gnu::const]] inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
[[gnu::const]] inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float sqrt_(float x) { return __builtin_sqrtf(x); }
inline double sqrt_(double x) { return __builtin_sqrt(x); }
[[gnu::const]] inline float select(bool a, float x, float y) { return a ? x : y; }
[[gnu::const]] inline double select(bool a, double x, double y) { return a ? x : y; }

inline Wrapping<int32_t> as_int(float x) { return {std::bit_cast<int32_t>(x)}; }
inline Wrapping<int64_t> as_int(double x) { return {std::bit_cast<int64_t>(x)}; }
inline float as_float(Wrapping<int32_t> i) { return std::bit_cast<float>(i.v); }
inline double as_float(Wrapping<int64_t> i) { return std::bit_cast<double>(i.v); }

[[gnu::const]] inline float abs_(float x) { return __builtin_fabsf(x); }
[[gnu::const]] inline double abs_(double x) { return __builtin_fabs(x); }
[[gnu::const]] inline float copysign_(float x, float y) { return __builtin_copysignf(x, y); }
[[gnu::const]] inline double copysign_(double x, double y) { return __builtin_copysign(x, y); }
inline bool signbit_(float x) { return as_int(x).v < 0; }
inline bool signbit_(double x) { return as_int(x).v < 0; }
inline float floor_(float x) { return __builtin_floorf(x); }
inline double floor_(double x) { return __builtin_floor(x); }
inline float trunc_(float x) { return __builtin_truncf(x); }
inline double trunc_(double x) { return __builtin_trunc(x); }
inline float round_even_(float x) { return __builtin_roundevenf(x); }
inline double round_even_(double x) { return __builtin_roundeven(x); }

inline float to_float(Wrapping<int32_t> i) { return static_cast<float>(i.v); }
inline double to_float(Wrapping<int64_t> i) { return static_cast<double>(i.v); }
// The guards keep C++ defined where the contract says "any value".
inline Wrapping<int32_t> to_int(float x) {
  return {x >= -0x1p31f && x < 0x1p31f ? static_cast<int32_t>(x) : INT32_MIN};
}
inline Wrapping<int64_t> to_int(double x) { return {x >= -0x1p63 && x < 0x1p63 ? static_cast<int64_t>(x) : INT64_MIN}; }

// The upper half is converted less 2^(w-1), whose bit is then set.
template <class F>
auto to_unsigned_in_halves(F x) {
  constexpr int width = Number<F>::bits;
  F half = like(x, __builtin_ldexp(1.0, width - 1));
  auto upper = x >= half;
  auto i = to_int(select(upper, x - half, x));
  return select(upper, i ^ likei(i, INT64_MIN >> (64 - width)), i);
}
inline Wrapping<int32_t> to_unsigned(float x) { return to_unsigned_in_halves(x); }
inline Wrapping<int64_t> to_unsigned(double x) { return to_unsigned_in_halves(x); }

inline Wrapping<int32_t> to_small_int(float x) { return to_int(x); }
inline Wrapping<int64_t> to_small_int(double x) { return to_int(x); }

inline double to_f64(float x) { return x; }
inline float to_f32(double x) { return static_cast<float>(x); }

// Scaling by two exact halves rounds once, like the scale instruction of AVX-512.
template <class F>
  requires std::is_floating_point_v<F>
inline F ldexp2(F x, typename Number<F>::Int i) {
  constexpr int m = sizeof(F) == 4 ? 23 : 52;
  auto bias = likei(i, sizeof(F) == 4 ? 127 : 1023), h = ashr(i, 1);
  return x * as_float(shl(h + bias, m)) * as_float(shl(i - h + bias, m));
}

/// Rounded to floats where they are read.
using Eight = std::array<double, 8>;
inline float one_of_eight(const Eight& c, float t) {
  return static_cast<float>(c[static_cast<size_t>(as_int(t).v & 7)]);
}

// 2^(k/8).
inline constexpr Eight kEighths = {0x1p+0,
                                   0x1.172b83c7d517bp+0,
                                   0x1.306fe0a31b715p+0,
                                   0x1.4bfdad5362a27p+0,
                                   0x1.6a09e667f3bcdp+0,
                                   0x1.8ace5422aa0dbp+0,
                                   0x1.ae89f995ad3adp+0,
                                   0x1.d5818dcfba487p+0};

// Floats whose bits are those of 2^(up + k/8) less k where the three low bits of t come to lie once its whole part is
// an exponent: of the sum no bit need be cleared.
constexpr Eight eighths_less_index(int up) {
  Eight less{};
  for (size_t k = 0; k < less.size(); ++k) {
    const auto bits = std::bit_cast<int32_t>(static_cast<float>(kEighths[k]));
    less[k] = std::bit_cast<float>(bits - (static_cast<int32_t>(k) << 20) + (up << 23));
  }
  return less;
}

// The bits of 2^(y + up), where t says y: f64 that are whole, or f32 in eighths.
template <int up, class F>
auto bits_of_power(F t) {
  if constexpr (is_f64<F>) {
    return shl(as_int(t), 52) + likei(as_int(t), static_cast<int64_t>(1023 + up) << 52);
  } else {
    static constexpr Eight kLess = eighths_less_index(up);
    return shl(as_int(t), 20) + as_int(one_of_eight(kLess, t));
  }
}

// What might leave the range of exponents is moved towards the middle, and back by a product that rounds where the
// result is subnormal.
template <class F>
F one_plus_ldexp2_in_parts(F x, F y, F t, int n) {
  constexpr int m = is_f64<F> ? 52 : 23, up = is_f64<F> ? 128 : 64, down = 8;
  auto bits = bits_of_power<0>(t);
  auto more = [&](int e) { return likei(bits, static_cast<int64_t>(n + e) * (int64_t{1} << m)); };
  auto small = signbit_(y);
  F scaled = as_float(bits + select(small, more(up), more(-down)));
  return fma(x, scaled, scaled) * select(small, like(x, 1 / __builtin_ldexp(1.0, up)), like(x, 1 << down));
}
// The same bits where y is not above 2^5 and n zero: everything is moved up.
template <class F>
F one_plus_ldexp2_falling(F x, F t) {
  constexpr int up = is_f64<F> ? 128 : 64;
  F scaled = as_float(bits_of_power<up>(t));
  return fma(x, scaled, scaled) * like(x, 1 / __builtin_ldexp(1.0, up));
}
inline float one_plus_ldexp2(float x, float y, float t, int n) { return one_plus_ldexp2_in_parts(x, y, t, n); }
inline double one_plus_ldexp2(double x, double y, double t, int n) { return one_plus_ldexp2_in_parts(x, y, t, n); }

template <class F>
struct Binade {
  F e, m;
};

// The bits of 3/4 part the binades. A subnormal x is scaled first.
template <class F>
Binade<F> binade_by_bits(F x) {
  constexpr int width = is_f64<F> ? 52 : 23;
  auto tiny = x < like(x, is_f64<F> ? 0x1p-1022 : 0x1p-126);
  F up = like(x, is_f64<F> ? 54 : 23);
  auto bits = as_int(select(tiny, x * like(x, is_f64<F> ? 0x1p54 : 0x1p23), x));
  auto e = ashr(bits - as_int(like(x, 0.75)), width);
  return {to_float(e) - select(tiny, up, like(x, 0.0)), as_float(bits - shl(e, width))};
}
// (The NaN is the one that processors make.)
template <class F>
F log_edges_by_selects(F r, F x, double pole) {
  r = select(x < like(x, __builtin_inf()), r, x);
  r = select(x == like(x, pole), like(x, -__builtin_inf()), r);
  return select(x < like(x, pole), like(x, -__builtin_nan("")), r);
}
inline float log_edges(float r, float x, double pole) { return log_edges_by_selects(r, x, pole); }
inline double log_edges(double r, double x, double pole) { return log_edges_by_selects(r, x, pole); }

inline Binade<float> binade(float x) { return binade_by_bits(x); }
inline Binade<double> binade(double x) { return binade_by_bits(x); }

template <class F>
F one_plus_ldexp2_or_zero(typename Number<F>::Mask, F x, F y, F t, bool falls) {
  return falls ? one_plus_ldexp2_falling(x, t) : one_plus_ldexp2_in_parts(x, y, t, 0);
}
template <class F>
bool has_masks(F) {
  return false;
}

template <class T>
  requires std::is_floating_point_v<T>
inline T cold(T x, bool ok, T fast, const ScalarFunction1<T>& fn) {
  return ok ? fast : fn.call(x);
}
template <class T>
  requires std::is_floating_point_v<T>
inline T cold(T x, T y, bool ok, T fast, const ScalarFunction2<T>& fn) {
  return ok ? fast : fn.call(x, y);
}

template <class T>
  requires std::is_floating_point_v<T>
inline std::array<T, 2> cold(std::array<T, 4> x, bool ok, std::array<T, 2> fast, const LaneFunction<T>& fn) {
  if (ok) return fast;
  fn.call(&x[0], &x[1], &x[2], &x[3], 1);
  return {x[0], x[1]};
}

}  // namespace hlojit::math

// Payne-Hanek reduction in integers: x = m 2^e, and of 2/pi only the bits that decide x * 2/pi
// modulo 4 are multiplied. 192 of them leave 64 good bits even at the worst cancellation of an f64
// (62 bits).
#include "compiler/math/scalar.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "compiler/math/trig.h"

namespace hlojit::math {
namespace {

using Wide = unsigned __int128;

// 64 zeros, then the binary digits of 2/pi.
constexpr std::array<uint64_t, 22> kTwoOverPi = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    0xf0cfbc209af4361d, 0xa9e391615ee61b08};

// 64 digits of the table from digit `at` on.
uint64_t digits(int at) {
  auto word = static_cast<size_t>(at / 64);
  int shift = at % 64;
  return shift == 0 ? kTwoOverPi[word] : kTwoOverPi[word] << shift | kTwoOverPi[word + 1] >> (64 - shift);
}

// Any finite |x| >= 2^-10: below one digit before the point is enough for every double.
TrigReduced<double> reduce_huge(double x) {
  int e = 0;
  auto m = static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(x), &e), 53));
  e -= 53;
  // Digit i of 2/pi weighs 2^-i, so m times it counts modulo 4 only for i >= e - 1; the table
  // starts at i = -63.
  int at = e - 1 + 63;
  uint64_t w2 = digits(at), w1 = digits(at + 64), w0 = digits(at + 128);
  // m * w modulo 2^192: two bits before the point, 190 behind.
  Wide p0 = static_cast<Wide>(m) * w0;
  Wide p1 = static_cast<Wide>(m) * w1 + static_cast<uint64_t>(p0 >> 64);
  uint64_t f2 = m * w2 + static_cast<uint64_t>(p1 >> 64);
  auto f1 = static_cast<uint64_t>(p1), f0 = static_cast<uint64_t>(p0);
  int64_t q = static_cast<int64_t>(f2 >> 62);
  // Drop the quadrant; a fraction of a half or more belongs to the next one, negative.
  f2 = f2 << 2 | f1 >> 62;
  f1 = f1 << 2 | f0 >> 62;
  f0 <<= 2;
  bool negative = f2 >> 63;
  if (negative) {
    q += 1;
    f0 = ~f0, f1 = ~f1, f2 = ~f2;
  }
  int zeros = f2 != 0 ? std::countl_zero(f2) : 64 + std::countl_zero(f1 | 1);
  int shift = zeros % 64;
  if (zeros >= 64) f2 = f1, f1 = f0, f0 = 0;
  if (shift != 0) {
    f2 = f2 << shift | f1 >> (64 - shift);
    f1 = f1 << shift | f0 >> (64 - shift);
  }
  double hi = std::ldexp(static_cast<double>(f2 & ~uint64_t{0x7ff}), -64 - zeros);
  double lo = std::ldexp(static_cast<double>(f2 & 0x7ff) + std::ldexp(static_cast<double>(f1), -64), -64 - zeros);
  constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
  Pair<double> r = two_product(hi, kHalfPi);
  r.lo += hi * kHalfPiLow + lo * kHalfPi;
  r = fast_two_sum(r.hi, r.lo);
  if (negative != std::signbit(x)) r = {-r.hi, -r.lo};
  return {r, {std::signbit(x) ? -q : q}};
}

// sin (turn 0) or cos (turn 1); tan below.
double sin_any(double x, int64_t turn) {
  if (!std::isfinite(x)) return kNan;
  auto [r, q] = std::fabs(x) <= kTrigLimit<double> ? reduce_trig(x) : reduce_huge(x);
  return sin_quadrant(r, q + likei(q, turn));
}

double tan_any(double x) {
  if (!std::isfinite(x)) return kNan;
  if (std::fabs(x) < 0x1p-27) return x;
  auto [r, q] = std::fabs(x) <= kTrigLimit<double> ? reduce_trig(x) : reduce_huge(x);
  return tan_quadrant(r, q);
}

// libm's fmod is exact; the domain errors are kept from it, for it sets errno.
template <class T>
T fmod_any(T x, T y) {
  if (!std::isfinite(x) || std::isnan(y) || y == 0) return std::numeric_limits<T>::quiet_NaN();
  return std::fmod(x, y);
}

// 1 in the direction of an infinity, else 0.
template <class T>
std::complex<T> directions(std::complex<T> z) {
  auto of = [](T x) { return std::copysign(std::isinf(x) ? T(1) : T(0), x); };
  return {of(z.real()), of(z.imag())};
}

// What C99 (Annex G) has where a quotient's formula is NaN in both parts: beside 0 it is infinite by the sign of b's
// real part; what is infinite by what is finite is infinite, what is finite by what is infinite is zero, an infinity
// with a NaN beside it being one. (1 / (1 + e^-z), a sigmoid, needs it where e^-z is beyond the largest number.)
template <class T>
std::complex<T> quotient_without_number(std::complex<T> a, std::complex<T> b) {
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  auto finite = [](std::complex<T> z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); };
  auto infinite = [](std::complex<T> z) { return std::isinf(z.real()) || std::isinf(z.imag()); };
  // a times the conjugate of b, times `size`
  auto product = [](T size, std::complex<T> x, std::complex<T> y) -> std::complex<T> {
    return {size * (x.real() * y.real() + x.imag() * y.imag()), size * (x.imag() * y.real() - x.real() * y.imag())};
  };
  if (b.real() == 0 && b.imag() == 0) {
    const T by = std::copysign(inf, b.real());
    return {a.real() * by, a.imag() * by};
  }
  if (infinite(a) && finite(b)) return product(inf, directions(a), b);
  if (infinite(b) && finite(a)) return product(T(0), a, directions(b));
  return {nan, nan};
}

template <class T>
void quotient_lanes(T* re, T* im, const T* b_re, const T* b_im, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    const std::complex<T> z = quotient_without_number<T>({re[k], im[k]}, {b_re[k], b_im[k]});
    re[k] = z.real(), im[k] = z.imag();
  }
}

// A vector's lanes in place. Where a double's own reduction will do, as for f32 far from the largest, with neither
// branch nor call, so that the compiler makes vectors of it: sines of 0 to 10^6 took 28 ns each one by one.
template <class T, int turn>
void sin_lanes(T* x, int64_t n) {
  const bool near = std::all_of(x, x + n, [](T lane) { return std::fabs(lane) <= kTrigLimit<double>; });
  if (near) {
    for (int64_t k = 0; k < n; ++k) x[k] = static_cast<T>(sin_turned(static_cast<double>(x[k]), turn));
  } else {
    for (int64_t k = 0; k < n; ++k) x[k] = static_cast<T>(sin_any(x[k], turn));
  }
}
template <class T>
void tan_lanes(T* x, int64_t n) {
  for (int64_t k = 0; k < n; ++k) x[k] = static_cast<T>(tan_any(x[k]));
}
template <class T>
void fmod_lanes(T* x, const T* y, int64_t n) {
  for (int64_t k = 0; k < n; ++k) x[k] = fmod_any(x[k], y[k]);
}

// The same bits by instructions that not every machine has; without them std::fma is a call.
template <class T, void (*lanes)(T*, int64_t)>
[[gnu::target("avx2,fma"), gnu::flatten]] void by_fma(T* x, int64_t n) {
  lanes(x, n);
}
template <class T, void (*lanes)(T*, int64_t)>
void* fastest() {
  static const bool has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return reinterpret_cast<void*>(has_fma ? &by_fma<T, lanes> : lanes);
}

}  // namespace

std::span<const ScalarSymbol> scalar_functions() {
  static const std::array<ScalarSymbol, 18> table = {{
      {"hlojit_sinf", reinterpret_cast<void*>(&hlojit_sinf)},
      {"hlojit_cosf", reinterpret_cast<void*>(&hlojit_cosf)},
      {"hlojit_tanf", reinterpret_cast<void*>(&hlojit_tanf)},
      {"hlojit_sin", reinterpret_cast<void*>(&hlojit_sin)},
      {"hlojit_cos", reinterpret_cast<void*>(&hlojit_cos)},
      {"hlojit_tan", reinterpret_cast<void*>(&hlojit_tan)},
      {"hlojit_fmodf", reinterpret_cast<void*>(&hlojit_fmodf)},
      {"hlojit_fmod", reinterpret_cast<void*>(&hlojit_fmod)},
      {"hlojit_sinf_lanes", fastest<float, sin_lanes<float, 0>>()},
      {"hlojit_cosf_lanes", fastest<float, sin_lanes<float, 1>>()},
      {"hlojit_tanf_lanes", fastest<float, tan_lanes<float>>()},
      {"hlojit_sin_lanes", fastest<double, sin_lanes<double, 0>>()},
      {"hlojit_cos_lanes", fastest<double, sin_lanes<double, 1>>()},
      {"hlojit_tan_lanes", fastest<double, tan_lanes<double>>()},
      {"hlojit_fmodf_lanes", reinterpret_cast<void*>(&fmod_lanes<float>)},
      {"hlojit_fmod_lanes", reinterpret_cast<void*>(&fmod_lanes<double>)},
      {"hlojit_quotientf_lanes", reinterpret_cast<void*>(&hlojit_quotientf_lanes)},
      {"hlojit_quotient_lanes", reinterpret_cast<void*>(&hlojit_quotient_lanes)},
  }};
  return table;
}

}  // namespace hlojit::math

extern "C" {
void hlojit_quotientf_lanes(float* re, float* im, const float* b_re, const float* b_im, int64_t n) noexcept {
  hlojit::math::quotient_lanes(re, im, b_re, b_im, n);
}
void hlojit_quotient_lanes(double* re, double* im, const double* b_re, const double* b_im, int64_t n) noexcept {
  hlojit::math::quotient_lanes(re, im, b_re, b_im, n);
}
float hlojit_sinf(float x) noexcept { return static_cast<float>(hlojit::math::sin_any(x, 0)); }
float hlojit_cosf(float x) noexcept { return static_cast<float>(hlojit::math::sin_any(x, 1)); }
float hlojit_tanf(float x) noexcept { return static_cast<float>(hlojit::math::tan_any(x)); }
double hlojit_sin(double x) noexcept { return hlojit::math::sin_any(x, 0); }
double hlojit_cos(double x) noexcept { return hlojit::math::sin_any(x, 1); }
double hlojit_tan(double x) noexcept { return hlojit::math::tan_any(x); }
float hlojit_fmodf(float x, float y) noexcept { return hlojit::math::fmod_any(x, y); }
double hlojit_fmod(double x, double y) noexcept { return hlojit::math::fmod_any(x, y); }
}

// Scalar routines that answer for the lanes a vector kernel cannot: huge arguments of sin, cos, tan and remainder,
// complex quotients without a number.
//
// Kernels reach them through cold() of number.h with one of the constants below. Code generation declares `name` in its
// IR and registers every row of scalar_functions() with the JIT, so no process symbol is looked up. Of each there is
// one more, `name`_lanes, for all lanes of a vector at once: (T* x, int64_t n), or (T* x, const T* y, int64_t n),
// results in x. The routines set no errno, raise nothing and never throw; they are right to the same bound as their
// kernels.
#pragma once

#include <cstdint>
#include <span>

extern "C" {
float hlojit_sinf(float x) noexcept;
float hlojit_cosf(float x) noexcept;
float hlojit_tanf(float x) noexcept;
double hlojit_sin(double x) noexcept;
double hlojit_cos(double x) noexcept;
double hlojit_tan(double x) noexcept;
// C fmod: exact for any magnitudes.
float hlojit_fmodf(float x, float y) noexcept;
double hlojit_fmod(double x, double y) noexcept;
// Complex quotients a / b by their parts, for what gives NaN in both; results in a.
void hlojit_quotientf_lanes(float* re, float* im, const float* b_re, const float* b_im, int64_t n) noexcept;
void hlojit_quotient_lanes(double* re, double* im, const double* b_re, const double* b_im, int64_t n) noexcept;
}

namespace hlojit::math {

template <class T>
struct ScalarFunction1 {
  const char* name;
  T (*call)(T) noexcept;
};

template <class T>
struct ScalarFunction2 {
  const char* name;
  T (*call)(T, T) noexcept;
};

// (x, y, z, w, n), n of each: results in place of x and y.
template <class T>
struct LaneFunction {
  const char* name;
  void (*call)(T*, T*, const T*, const T*, int64_t) noexcept;
};

// The row of each width, T = float or double.
template <class T>
inline constexpr ScalarFunction1<T> kColdSin;
template <class T>
inline constexpr ScalarFunction1<T> kColdCos;
template <class T>
inline constexpr ScalarFunction1<T> kColdTan;
template <class T>
inline constexpr ScalarFunction2<T> kColdFmod;
template <class T>
inline constexpr LaneFunction<T> kColdQuotient;

template <>
inline constexpr ScalarFunction1<float> kColdSin<float>{"hlojit_sinf", &hlojit_sinf};
template <>
inline constexpr ScalarFunction1<float> kColdCos<float>{"hlojit_cosf", &hlojit_cosf};
template <>
inline constexpr ScalarFunction1<float> kColdTan<float>{"hlojit_tanf", &hlojit_tanf};
template <>
inline constexpr ScalarFunction2<float> kColdFmod<float>{"hlojit_fmodf", &hlojit_fmodf};
template <>
inline constexpr ScalarFunction1<double> kColdSin<double>{"hlojit_sin", &hlojit_sin};
template <>
inline constexpr ScalarFunction1<double> kColdCos<double>{"hlojit_cos", &hlojit_cos};
template <>
inline constexpr ScalarFunction1<double> kColdTan<double>{"hlojit_tan", &hlojit_tan};
template <>
inline constexpr ScalarFunction2<double> kColdFmod<double>{"hlojit_fmod", &hlojit_fmod};
template <>
inline constexpr LaneFunction<float> kColdQuotient<float>{"hlojit_quotientf_lanes", &hlojit_quotientf_lanes};
template <>
inline constexpr LaneFunction<double> kColdQuotient<double>{"hlojit_quotient_lanes", &hlojit_quotient_lanes};

// For the JIT's symbol table: every routine above.
struct ScalarSymbol {
  const char* name;
  void* address;
};
std::span<const ScalarSymbol> scalar_functions();

}  // namespace hlojit::math

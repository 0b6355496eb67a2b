// Scalar routines that answer for the lanes a vector kernel cannot: huge arguments of sin, cos, tan and remainder.
//
// Kernels reach them through cold() of number.h with one of the constants below. Code generation declares `name` in its
// IR and registers every row of scalar_functions() with the JIT, so no process symbol is looked up.
// The routines set no errno, raise nothing and never throw; they are right to the same bound as their kernels.
#pragma once

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

inline constexpr ScalarFunction1<float> kSinF32{"hlojit_sinf", &hlojit_sinf};
inline constexpr ScalarFunction1<float> kCosF32{"hlojit_cosf", &hlojit_cosf};
inline constexpr ScalarFunction1<float> kTanF32{"hlojit_tanf", &hlojit_tanf};
inline constexpr ScalarFunction1<double> kSinF64{"hlojit_sin", &hlojit_sin};
inline constexpr ScalarFunction1<double> kCosF64{"hlojit_cos", &hlojit_cos};
inline constexpr ScalarFunction1<double> kTanF64{"hlojit_tan", &hlojit_tan};
inline constexpr ScalarFunction2<float> kFmodF32{"hlojit_fmodf", &hlojit_fmodf};
inline constexpr ScalarFunction2<double> kFmodF64{"hlojit_fmod", &hlojit_fmod};

// For the JIT's symbol table: every routine above.
struct ScalarSymbol {
  const char* name;
  void* address;
};
std::span<const ScalarSymbol> scalar_functions();

}  // namespace hlojit::math

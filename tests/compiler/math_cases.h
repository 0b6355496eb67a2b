// The real functions of compiler/math as a table: name, kernel, reference, range, allowed ulp. The
// unit test runs a strided sample of it; the generator of compiler/math/README.md a denser one.
#pragma once

#include <mpfr.h>

#include <cstdint>
#include <span>

namespace hlojit::math::test {

using Mpfr1 = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);
using Mpfr2 = int (*)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

struct Case1 {
  const char* name;
  float (*f32)(float);
  double (*f64)(double);
  double (*reference)(double);  // f64 libm: exact enough for f32
  Mpfr1 mpfr;
  double lo, hi;  // where f64 is sampled uniformly, besides random bits
  double allowed32, allowed64;
};

struct Case2 {
  const char* name;
  float (*f32)(float, float);
  double (*f64)(double, double);
  double (*reference)(double, double);
  Mpfr2 mpfr;
  double x_lo, x_hi, y_lo, y_hi;
  double allowed32, allowed64;
};

std::span<const Case1> unary_cases();
std::span<const Case2> binary_cases();

// The worst error over a sample, in ulp of the exact result's binade (subnormals: of the smallest
// subnormal). NaN must meet NaN and an exact zero its sign: a breach is an infinite error.
struct Worst {
  double ulp = 0, x = 0, y = 0;
};

Worst worst_f32(const Case1& c, uint32_t stride);  // bits 0, stride, 2 stride, ... of all 2^32
Worst worst_f64(const Case1& c, int count);        // half random bits, half uniform in [lo, hi]
Worst worst_f32(const Case2& c, int count);
Worst worst_f64(const Case2& c, int count);

}  // namespace hlojit::math::test

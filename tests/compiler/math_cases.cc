#include "tests/compiler/math_cases.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/math/functions.h"

namespace hlojit::math::test {
namespace {

// References that libm or MPFR lacks, or whose zeros differ.
double ref_logistic(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double ref_rsqrt(double x) { return 1 / std::sqrt(x); }
double ref_sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
double ref_sqrt(double x) { return std::sqrt(x); }

int mpfr_logistic(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd) {
  mpfr_t e;
  mpfr_init2(e, 200);
  mpfr_neg(e, x, rnd);
  mpfr_exp(e, e, rnd);
  mpfr_add_ui(e, e, 1, rnd);
  int t = mpfr_ui_div(r, 1, e, rnd);
  mpfr_clear(e);
  return t;
}
int mpfr_rsqrt(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd) {
  int t = mpfr_sqrt(r, x, rnd);  // mpfr_rec_sqrt(-0) is +inf
  return t | mpfr_ui_div(r, 1, r, rnd);
}
int mpfr_sign(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd) {
  if (mpfr_nan_p(x) || mpfr_zero_p(x)) return mpfr_set(r, x, rnd);
  return mpfr_set_si(r, mpfr_sgn(x), rnd);
}
int mpfr_round_afz(mpfr_t r, const mpfr_t x, mpfr_rnd_t) { return mpfr_round(r, x); }

#define HLOJIT_KERNEL1(f) #f, [](float x) { return math::f(x); }, [](double x) { return math::f(x); }
#define HLOJIT_KERNEL2(f) \
  #f, [](float x, float y) { return math::f(x, y); }, [](double x, double y) { return math::f(x, y); }
#define HLOJIT_LIBM1(f) [](double x) { return std::f(x); }
#define HLOJIT_LIBM2(f) [](double x, double y) { return std::f(x, y); }

constexpr std::array kUnary = {
    Case1{HLOJIT_KERNEL1(exp), HLOJIT_LIBM1(exp), mpfr_exp, -746, 710, 2, 2},
    Case1{HLOJIT_KERNEL1(expm1), HLOJIT_LIBM1(expm1), mpfr_expm1, -2, 2, 2, 2},
    Case1{HLOJIT_KERNEL1(log), HLOJIT_LIBM1(log), mpfr_log, 0.5, 2, 2, 2},
    Case1{HLOJIT_KERNEL1(log1p), HLOJIT_LIBM1(log1p), mpfr_log1p, -1, 3, 2, 2},
    Case1{HLOJIT_KERNEL1(logistic), ref_logistic, mpfr_logistic, -40, 40, 2, 2},
    Case1{HLOJIT_KERNEL1(tanh), HLOJIT_LIBM1(tanh), mpfr_tanh, -3, 3, 2, 2},
    Case1{HLOJIT_KERNEL1(sinh), HLOJIT_LIBM1(sinh), mpfr_sinh, -3, 3, 2, 2},
    Case1{HLOJIT_KERNEL1(cosh), HLOJIT_LIBM1(cosh), mpfr_cosh, -3, 3, 2, 2},
    Case1{HLOJIT_KERNEL1(erf), HLOJIT_LIBM1(erf), mpfr_erf, -4, 4, 2, 2},
    Case1{HLOJIT_KERNEL1(sin), HLOJIT_LIBM1(sin), mpfr_sin, -10, 10, 2, 2},
    Case1{HLOJIT_KERNEL1(cos), HLOJIT_LIBM1(cos), mpfr_cos, -10, 10, 2, 2},
    Case1{HLOJIT_KERNEL1(tan), HLOJIT_LIBM1(tan), mpfr_tan, -10, 10, 2, 2},
    Case1{HLOJIT_KERNEL1(atan), HLOJIT_LIBM1(atan), mpfr_atan, -3, 3, 2, 2},
    Case1{HLOJIT_KERNEL1(asin), HLOJIT_LIBM1(asin), mpfr_asin, -1, 1, 2, 2},
    Case1{HLOJIT_KERNEL1(acos), HLOJIT_LIBM1(acos), mpfr_acos, -1, 1, 2, 2},
    Case1{HLOJIT_KERNEL1(asinh), HLOJIT_LIBM1(asinh), mpfr_asinh, -3, 3, 2, 2},
    Case1{HLOJIT_KERNEL1(acosh), HLOJIT_LIBM1(acosh), mpfr_acosh, 1, 3, 2, 2},
    Case1{HLOJIT_KERNEL1(atanh), HLOJIT_LIBM1(atanh), mpfr_atanh, -1, 1, 2, 2},
    Case1{HLOJIT_KERNEL1(sqrt), ref_sqrt, mpfr_sqrt, 0, 4, 0.5, 0.5},
    Case1{HLOJIT_KERNEL1(rsqrt), ref_rsqrt, mpfr_rsqrt, 0, 4, 2, 2},
    Case1{HLOJIT_KERNEL1(cbrt), HLOJIT_LIBM1(cbrt), mpfr_cbrt, -8, 8, 2, 2},
    Case1{HLOJIT_KERNEL1(sign), ref_sign, mpfr_sign, -2, 2, 0, 0},
    Case1{HLOJIT_KERNEL1(round_afz), HLOJIT_LIBM1(round), mpfr_round_afz, -10, 10, 0, 0},
};

constexpr std::array kBinary = {
    Case2{HLOJIT_KERNEL2(pow), HLOJIT_LIBM2(pow), mpfr_pow, 0, 3, -30, 30, 1, 1},
    Case2{HLOJIT_KERNEL2(atan2), HLOJIT_LIBM2(atan2), mpfr_atan2, -3, 3, -3, 3, 2, 2},
    Case2{HLOJIT_KERNEL2(remainder), HLOJIT_LIBM2(fmod), mpfr_fmod, -100, 100, -3, 3, 0, 0},
};

constexpr double kBreach = std::numeric_limits<double>::infinity();

// |got - exact| in ulp of T at the exact value; `exact` carries at least the precision of double.
template <class T>
double ulp_error(T got, double exact) {
  constexpr int digits = std::numeric_limits<T>::digits, min_exp = std::numeric_limits<T>::min_exponent;
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kBreach;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(exact) ? 0 : kBreach;
  if (got == static_cast<T>(exact)) {
    if (std::isinf(got)) return 0;
  } else if (std::isinf(got) || std::isinf(exact)) {
    constexpr int top = std::numeric_limits<T>::max_exponent;
    double limit = std::ldexp(1.0, top - 1);
    auto half = [&](double v) { return std::isinf(v) ? std::copysign(limit, v) : v / 2; };
    return std::fabs(half(got) - half(exact)) / std::ldexp(1.0, top - digits - 1);
  }
  int e = 0;
  std::frexp(exact, &e);
  return std::ldexp(std::fabs(static_cast<double>(got) - exact), digits - std::max(e, min_exp));
}

double ulp_error(double got, mpfr_t exact, mpfr_t scratch) {
  if (mpfr_nan_p(exact) || mpfr_inf_p(exact) || mpfr_zero_p(exact) || std::isnan(got) || std::isinf(got)) {
    return ulp_error(got, mpfr_get_d(exact, MPFR_RNDN));
  }
  mpfr_sub_d(scratch, exact, got, MPFR_RNDN);
  long e = std::max<long>(mpfr_get_exp(exact), -1021) - 53;
  mpfr_mul_2si(scratch, scratch, -e, MPFR_RNDN);
  return std::fabs(mpfr_get_d(scratch, MPFR_RNDN));
}

class Exact {
 public:
  Exact() { mpfr_inits2(160, x_, y_, r_, s_, nullptr); }
  ~Exact() { mpfr_clears(x_, y_, r_, s_, nullptr); }
  Exact(const Exact&) = delete;
  double error(Mpfr1 f, double x, double got) {
    mpfr_set_d(x_, x, MPFR_RNDN);
    f(r_, x_, MPFR_RNDN);
    return ulp_error(got, r_, s_);
  }
  double error(Mpfr2 f, double x, double y, double got) {
    mpfr_set_d(x_, x, MPFR_RNDN);
    mpfr_set_d(y_, y, MPFR_RNDN);
    f(r_, x_, y_, MPFR_RNDN);
    return ulp_error(got, r_, s_);
  }

 private:
  mpfr_t x_, y_, r_, s_;
};

void keep(Worst& worst, double ulp, double x, double y = 0) {
  if (ulp > worst.ulp) worst = {ulp, x, y};
}

// Half the sample has random bits, half is uniform in [lo, hi].
template <class T>
T draw(std::mt19937_64& random, int i, double lo, double hi) {
  if (i % 2 == 0) {
    if constexpr (sizeof(T) == 4) {
      return std::bit_cast<float>(static_cast<uint32_t>(random()));
    } else {
      return std::bit_cast<double>(random());
    }
  }
  return static_cast<T>(std::uniform_real_distribution<double>(lo, hi)(random));
}

}  // namespace

std::span<const Case1> unary_cases() { return kUnary; }
std::span<const Case2> binary_cases() { return kBinary; }

Worst worst_f32(const Case1& c, uint32_t stride) {
  Worst worst;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride) {
    auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    keep(worst, ulp_error(c.f32(x), c.reference(static_cast<double>(x))), x);
  }
  return worst;
}

Worst worst_f64(const Case1& c, int count) {
  Worst worst;
  Exact exact;
  std::mt19937_64 random(1);
  for (int i = 0; i < count; ++i) {
    auto x = draw<double>(random, i, c.lo, c.hi);
    keep(worst, exact.error(c.mpfr, x, c.f64(x)), x);
  }
  return worst;
}

// A pair of a draw: bits with bits, uniform with uniform, and one of each.
template <class T, class Error>
Worst worst_pair(const Case2& c, int count, Error error) {
  Worst worst;
  std::mt19937_64 random(1);
  for (int i = 0; i < count; ++i) {
    T x = draw<T>(random, i, c.x_lo, c.x_hi), y = draw<T>(random, i / 2 % 2 + i, c.y_lo, c.y_hi);
    keep(worst, error(x, y), x, y);
  }
  return worst;
}

Worst worst_f32(const Case2& c, int count) {
  return worst_pair<float>(c, count, [&](float x, float y) {
    return ulp_error(c.f32(x, y), c.reference(static_cast<double>(x), static_cast<double>(y)));
  });
}

Worst worst_f64(const Case2& c, int count) {
  Exact exact;
  return worst_pair<double>(c, count, [&](double x, double y) { return exact.error(c.mpfr, x, y, c.f64(x, y)); });
}

}  // namespace hlojit::math::test

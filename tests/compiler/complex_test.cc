// Complex functions against long double: error of the whole value in ulp of its modulus, over
// points near zero, near the unit circle, and all over the exponent range; and the branch cuts.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <random>

#include "compiler/math/complex.h"

using namespace hlojit;
using math::Cx;

namespace {

using Exact = std::complex<long double>;

template <class T>
long double ulp_of(long double v) {
  int e = 0;
  std::frexp(v, &e);
  return std::ldexp(1.0L, std::max(e, std::numeric_limits<T>::min_exponent) - std::numeric_limits<T>::digits);
}

template <class T>
Cx<T> draw(std::mt19937_64& random, int kind) {
  auto uniform = [&](double r) { return std::uniform_real_distribution<double>(-r, r)(random); };
  auto any = [&](int range) {
    return static_cast<T>(std::ldexp(uniform(1), static_cast<int>(random() % range) - range / 2));
  };
  switch (kind % 4) {
    case 0: return {static_cast<T>(uniform(20)), static_cast<T>(uniform(20))};
    case 1: {
      double angle = uniform(3.2);
      return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
    }
    case 2: return {any(60), any(60)};
    default: {
      constexpr int range = sizeof(T) == 4 ? 240 : 2000;
      T x = any(range);
      return {x, any(range)};
    }
  }
}

// Finite results only: overflow is compared by its parts being infinite or huge.
template <class T, class F>
void check(const char* name, F f, const std::function<Exact(Exact)>& exact, double allowed) {
  std::mt19937_64 random(7);
  long double worst = 0;
  Cx<T> at{};
  for (int i = 0; i < 20000; ++i) {
    Cx<T> z = draw<T>(random, i), w = f(z);
    Exact r = exact(Exact(z.re, z.im));
    long double huge = std::numeric_limits<T>::max() / 4.0L;
    if (std::fabs(r.real()) > huge || std::fabs(r.imag()) > huge || std::isnan(std::abs(r))) continue;
    long double e = std::hypot(w.re - r.real(), w.im - r.imag()) / ulp_of<T>(std::abs(r));
    if (!(e <= worst)) worst = std::isnan(e) ? INFINITY : e, at = z;
  }
  CHECK_MESSAGE(worst <= allowed,
                fmt::format("{} c{}: {} ulp at ({:a}, {:a})", name, sizeof(T) * 16, worst, at.re, at.im));
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

}  // namespace

#define CHECK_COMPLEX(name, ours, theirs, allowed)                                                   \
  check<float>(name, [](auto z) { return ours; }, [](Exact z) -> Exact { return theirs; }, allowed); \
  check<double>(name, [](auto z) { return ours; }, [](Exact z) -> Exact { return theirs; }, allowed)

TEST_CASE("complex: functions are right to a few ulp of the modulus") {
  CHECK_COMPLEX("abs", (Cx<decltype(z.re)>{math::abs(z), 0}), std::hypot(z.real(), z.imag()), 2);
  CHECK_COMPLEX("sign", math::sign(z), z / std::hypot(z.real(), z.imag()), 3);
  CHECK_COMPLEX("log", math::log(z), std::log(z), 4);
  CHECK_COMPLEX("exp", math::exp(z), std::exp(z), 4);
  CHECK_COMPLEX("sqrt", math::sqrt(z), std::sqrt(z), 3);
  CHECK_COMPLEX("rsqrt", math::rsqrt(z), 1.0L / std::sqrt(z), 4);
  CHECK_COMPLEX("tanh", math::tanh(z), std::tanh(z), 5);
  CHECK_COMPLEX("tan", math::tan(z), std::tan(z), 5);
  CHECK_COMPLEX("sin", math::sin(z), std::sin(z), 4);
  CHECK_COMPLEX("cos", math::cos(z), std::cos(z), 4);
  CHECK_COMPLEX("sinh", math::sinh(z), std::sinh(z), 4);
  CHECK_COMPLEX("cosh", math::cosh(z), std::cosh(z), 4);
  CHECK_COMPLEX("logistic", math::logistic(z),
                z.real() < 0 ? std::exp(z) / (1.0L + std::exp(z)) : 1.0L / (1.0L + std::exp(-z)), 7);
  CHECK_COMPLEX("divide", (Cx<decltype(z.re)>{1.5, -0.25} / z), Exact(1.5, -0.25) / z, 3);
  CHECK_COMPLEX("expm1", math::expm1(z),
                Exact(expm1l(z.real()) * cosl(z.imag()) - 2 * powl(sinl(z.imag() / 2), 2), std::exp(z).imag()), 4);
  CHECK_COMPLEX("log1p", math::log1p(z),
                std::abs(z) < 0.5L
                    ? Exact(log1pl(z.real() * (2 + z.real()) + z.imag() * z.imag()) / 2, atan2l(z.imag(), 1 + z.real()))
                    : std::log(1.0L + z),
                4);
  // pow of c128 loses |y log x| ulp, of c64 nothing: it is computed in f64.
  check<float>(
      "pow", [](auto z) { return math::pow(z, Cx<float>{2.5, 0.75}); },
      [](Exact z) { return std::pow(z, Exact(2.5, 0.75)); }, 1);
  check<double>(
      "pow", [](auto z) { return math::pow(z, Cx<double>{2.5, 0.75}); },
      [](Exact z) { return std::pow(z, Exact(2.5, 0.75)); }, 2500);
}

TEST_CASE("complex: principal branches and signed zeros on the cuts") {
  const double pi = 3.141592653589793;
  auto is = [](Cx<double> z, double re, double im) {
    CAPTURE(z.re);
    CAPTURE(z.im);
    CHECK((same(z.re, re) && same(z.im, im)));
  };
  is(math::log(Cx<double>{-1, 0.0}), 0, pi);
  is(math::log(Cx<double>{-1, -0.0}), 0, -pi);
  is(math::log(Cx<double>{0, 0}), -INFINITY, 0);
  is(math::sqrt(Cx<double>{-1, 0.0}), 0, 1);
  is(math::sqrt(Cx<double>{-1, -0.0}), 0, -1);
  is(math::sqrt(Cx<double>{-4, 0.0}), 0, 2);
  is(math::sqrt(Cx<double>{0, 0}), 0, 0);
  is(math::sqrt(Cx<double>{INFINITY, 1}), INFINITY, 0);
  is(math::sqrt(Cx<double>{-INFINITY, 1}), 0, INFINITY);
  is(math::rsqrt(Cx<double>{4, 0}), 0.5, -0.0);
  is(math::sign(Cx<double>{0, 0}), 0, 0);
  is(math::sign(Cx<double>{3, 4}), 0.6, 0.8);
  is(math::exp(Cx<double>{INFINITY, 0}), INFINITY, 0);
  is(math::exp(Cx<double>{-INFINITY, 1}), 0, 0);
  is(math::exp(Cx<double>{0, 0}), 1, 0);
  is(math::tanh(Cx<double>{1000, 1}), 1, 0);
  is(math::tanh(Cx<double>{-1000, 1}), -1, 0);
  is(math::logistic(Cx<double>{1000, 1}), 1, 0);
  is(math::logistic(Cx<double>{0, 0}), 0.5, 0);
  is(math::pow(Cx<double>{0, 0}, Cx<double>{0, 0}), 1, 0);
  is(math::pow(Cx<double>{0, 0}, Cx<double>{2, 1}), 0, 0);
  is(Cx<double>{1, 0} / Cx<double>{0, 0}, INFINITY, NAN);
  CHECK(math::abs(Cx<float>{3e38f, 3e38f}) == INFINITY);
  CHECK(math::abs(Cx<float>{3, 4}) == 5);
  CHECK(std::isnan(math::abs(Cx<float>{INFINITY, NAN})));
  // Where |z| is nearly one the logarithm must not be that of a rounded modulus.
  Cx<float> near = math::log(Cx<float>{0.8f, 0.6f});
  CHECK(std::fabs(near.re - std::log(std::hypot(static_cast<double>(0.8f), static_cast<double>(0.6f)))) < 1e-14);
  Cx<double> w = math::atan2(Cx<double>{1, 0}, Cx<double>{1, 0});
  CHECK(std::fabs(w.re - pi / 4) < 1e-15);
}

// compiler/math on batches: the same bits as one number at a time, for every function and any bits.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <type_traits>

#include "compiler/math/batch.h"
#include "compiler/math/functions.h"

using namespace hlojit;

namespace {

/// Any bits, or, every other time, numbers that the functions have values of their own for.
template <class T>
T draw(std::mt19937_64& random) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const uint64_t r = random();
  if (random() & 1) return std::bit_cast<T>(static_cast<Bits>(r));
  return static_cast<T>(static_cast<double>(static_cast<int64_t>(r)) / (random() & 1 ? 1e18 : 1e17));
}

template <class T, class A, size_t n, class F>
void check_lanes(std::mt19937_64& random, F f) {
  using Lanes = math::Batch<T, A>;
  std::array<std::array<T, Lanes::lanes>, n> x;
  for (auto& operand : x) {
    for (T& lane : operand) lane = draw<T>(random);
  }
  std::array<T, Lanes::lanes> y, single;
  auto at = [&](size_t k) { return math::load_lanes<Lanes>(x[k].data()); };
  if constexpr (n == 1) {
    math::store_lanes(y.data(), f(at(0)));
  } else {
    math::store_lanes(y.data(), f(at(0), at(1)));
  }
  for (size_t k = 0; k < y.size(); ++k) {
    if constexpr (n == 1) {
      single[k] = f(x[0][k]);
    } else {
      single[k] = f(x[0][k], x[1][k]);
    }
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const bool same = std::bit_cast<Bits>(y[k]) == std::bit_cast<Bits>(single[k]);
    const bool nan = std::isnan(y[k]) && std::isnan(single[k]);
    CAPTURE(x[0][k]);
    CAPTURE(x[n - 1][k]);
    REQUIRE_MESSAGE((same || nan), y[k], " for ", single[k]);
  }
}

template <size_t n, class F>
void check(const char* name, F f) {
  INFO(name);
  std::mt19937_64 random(1);
  for (int k = 0; k < 2000; ++k) {
    check_lanes<float, xsimd::fma3<xsimd::avx2>, n>(random, f);
    check_lanes<double, xsimd::fma3<xsimd::avx2>, n>(random, f);
    check_lanes<float, xsimd::sse2, n>(random, f);
    check_lanes<double, xsimd::sse2, n>(random, f);
  }
}

#define CHECK_OF_ONE(f) check<1>(#f, [](auto x) { return math::f(x); })
#define CHECK_OF_TWO(f) check<2>(#f, [](auto x, auto y) { return math::f(x, y); })

}  // namespace

TEST_CASE("math: a batch has the bits of its lanes") {
  CHECK_OF_ONE(exp);
  CHECK_OF_ONE(expm1);
  CHECK_OF_ONE(log);
  CHECK_OF_ONE(log1p);
  CHECK_OF_ONE(logistic);
  CHECK_OF_ONE(tanh);
  CHECK_OF_ONE(sinh);
  CHECK_OF_ONE(cosh);
  CHECK_OF_ONE(erf);
  CHECK_OF_ONE(sin);
  CHECK_OF_ONE(cos);
  CHECK_OF_ONE(tan);
  CHECK_OF_ONE(atan);
  CHECK_OF_ONE(asin);
  CHECK_OF_ONE(acos);
  CHECK_OF_ONE(asinh);
  CHECK_OF_ONE(acosh);
  CHECK_OF_ONE(atanh);
  CHECK_OF_ONE(sqrt_);
  CHECK_OF_ONE(rsqrt);
  CHECK_OF_ONE(cbrt);
  CHECK_OF_ONE(sign);
  CHECK_OF_ONE(round_afz);
  CHECK_OF_TWO(pow);
  CHECK_OF_TWO(atan2);
  CHECK_OF_TWO(remainder);
}

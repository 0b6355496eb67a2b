// Our functions for small matrices beside the library's: the same results within rounding, for every option.
#include "runtime/kernels/small_matrices.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/kernels/lapack.h"

namespace hlojit {
namespace {

template <class T>
constexpr DType kType = DType::kF32;
template <>
constexpr DType kType<double> = DType::kF64;
template <>
constexpr DType kType<std::complex<float>> = DType::kC64;
template <>
constexpr DType kType<std::complex<double>> = DType::kC128;

template <class T>
std::vector<T> drawn(int count, std::mt19937& random) {
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<T> x(static_cast<size_t>(count));
  for (T& v : x) {
    v = T(number(random));
    if constexpr (!std::is_floating_point_v<T>) v += T(0, number(random));
  }
  return x;
}

/// `n` times the identity more, so that nothing is divided by little.
template <class T>
std::vector<T> strong(int n, std::mt19937& random) {
  std::vector<T> a = drawn<T>(n * n, random);
  for (int i = 0; i < n; ++i) a[static_cast<size_t>(i * n + i)] = T(static_cast<float>(n + i + 1));
  return a;
}

template <class T>
bool near(const std::vector<T>& a, const std::vector<T>& b) {
  double worst = 0;
  for (size_t k = 0; k < a.size(); ++k) worst = std::max(worst, static_cast<double>(std::abs(a[k] - b[k])));
  return worst < 1e-5;
}

TEST_CASE_TEMPLATE("getrf", T, float, double, std::complex<float>, std::complex<double>) {
  using F = void(const int*, const int*, T*, const int*, int*, int*);
  auto* library = lapack<F>("getrf", kType<T>);
  std::mt19937 random(1);
  for (int m = 1; m <= 5; ++m) {
    for (int n = 1; n <= 5; ++n) {
      std::vector<T> a = drawn<T>(m * n, random), b = a;
      std::vector<int> p(5), q(5);
      int info = -1, expected = -1;
      small_getrf(&m, &n, a.data(), &m, p.data(), &info);
      library(&m, &n, b.data(), &m, q.data(), &expected);
      CHECK(near(a, b));
      CHECK(p == q);
      CHECK(info == expected);
    }
  }
}

TEST_CASE("getrf of a singular matrix goes on, and says which pivot is missing") {
  const int n = 3;
  float a[9] = {1, 2, 4, 2, 4, 8, 0, 1, 5};  // the second column is twice the first
  int pivots[3], info = 0;
  small_getrf(&n, &n, a, &n, pivots, &info);
  CHECK(info == 2);
  CHECK(pivots[0] == 3);
  CHECK(a[8] == doctest::Approx(-1.25));
}

TEST_CASE_TEMPLATE("potrf", T, float, double, std::complex<float>, std::complex<double>) {
  using F = void(const char*, const int*, T*, const int*, int*);
  auto* library = lapack<F>("potrf", kType<T>);
  std::mt19937 random(2);
  for (int n = 1; n <= 6; ++n) {
    for (const char uplo : {'L', 'U'}) {
      std::vector<T> a = strong<T>(n, random), b = a;
      int info = -1, expected = -1;
      small_potrf(&uplo, &n, a.data(), &n, &info);
      library(&uplo, &n, b.data(), &n, &expected);
      CHECK(near(a, b));
      CHECK(info == 0);
      a[0] = T(-1.0F);
      small_potrf(&uplo, &n, a.data(), &n, &info);
      CHECK(info == 1);
    }
  }
}

TEST_CASE_TEMPLATE("geqrf and orgqr", T, float, double, std::complex<float>, std::complex<double>) {
  using Factor = void(const int*, const int*, T*, const int*, T*, T*, const int*, int*);
  using Product = void(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);
  constexpr bool kReal = std::is_floating_point_v<T>;
  auto* factor = lapack<Factor>("geqrf", kType<T>);
  auto* product = lapack<Product>(kReal ? "orgqr" : "ungqr", kType<T>);
  std::mt19937 random(4);
  const int room = 64;
  std::vector<T> work(room);
  for (int m = 1; m <= 6; ++m) {
    for (int n = 1; n <= 6; ++n) {
      for (const float scale : {1.0F, 0.0F, 1e-30F, 1e30F}) {
        std::vector<T> a = drawn<T>(m * m + m * n, random);  // with room for a whole q
        for (T& x : a) x *= scale;
        std::vector<T> b = a, tau(6), expected(6);
        int info = -1;
        small_geqrf(m, n, a.data(), tau.data());
        factor(&m, &n, b.data(), &m, expected.data(), work.data(), &room, &info);
        CHECK(near(tau, expected));
        for (size_t k = 0; k < a.size() && scale > 0; ++k)
          CHECK(std::abs(a[k] - b[k]) <= 1e-5F * std::max(1.0F, scale));
        for (const int columns : {std::min(m, n), m}) {
          std::vector<T> q = a, library = a;
          const int reflectors = std::min(m, n);
          small_orgqr(m, columns, reflectors, q.data(), tau.data());
          product(&m, &columns, &reflectors, library.data(), &m, tau.data(), work.data(), &room, &info);
          q.resize(static_cast<size_t>(m * columns)), library.resize(q.size());
          CHECK(near(q, library));
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("trsm", T, float, double, std::complex<float>, std::complex<double>) {
  using F = void(const char*, const char*, const char*, const char*, const int*, const int*, const T*, const T*,
                 const int*, T*, const int*);
  auto* library = lapack<F>("trsm", kType<T>);
  std::mt19937 random(3);
  const T alpha(0.5F);
  for (int options = 0; options < 24; ++options) {
    const char side = "LR"[options % 2], uplo = "LU"[options / 2 % 2], unit = "NU"[options / 4 % 2];
    const char op = "NTC"[options / 8];
    for (int m = 1; m <= 4; ++m) {
      for (int n = 1; n <= 4; ++n) {
        const int order = side == 'L' ? m : n, ld = m + 1;
        std::vector<T> a = strong<T>(order, random), x = drawn<T>(ld * n, random), y = x;
        small_trsm(&side, &uplo, &op, &unit, &m, &n, &alpha, a.data(), &order, x.data(), &ld);
        library(&side, &uplo, &op, &unit, &m, &n, &alpha, a.data(), &order, y.data(), &ld);
        CHECK(near(x, y));
      }
    }
  }
}

}  // namespace
}  // namespace hlojit

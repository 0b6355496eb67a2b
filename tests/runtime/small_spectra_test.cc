// Eigenvalues and singular values of small matrices: what they are factors of, and that each lane is alone.
#include "runtime/kernels/small_spectra.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace hlojit {
namespace {

constexpr int64_t kCount = 21;  // a vector and a part, of f32 with AVX-512

template <class T>
struct Matrices {
  Matrices(int rows, int columns) : m(rows), n(columns), x(static_cast<size_t>(rows * columns * kCount)) {}
  T& at(int64_t k, int i, int j) { return x[static_cast<size_t>((k * n + j) * m + i)]; }
  int m, n;
  std::vector<T> x;
};

/// Random ones; the first are zero, the identity, of rank 1, and with elements of very different sizes.
template <class T>
Matrices<T> drawn(int m, int n, std::mt19937& random) {
  std::uniform_real_distribution<T> number(-1, 1);
  Matrices<T> a(m, n);
  for (int64_t k = 0; k < kCount; ++k) {
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        const T x = number(random);
        const T special[] = {0, T(i == j), T((i + 1) * (j + 1)), x * std::pow(T(1e-4), T(i + j)), x * T(1e30)};
        a.at(k, i, j) = k < 5 ? special[k] : x;
      }
    }
  }
  return a;
}

template <class T>
T largest(Matrices<T>& a, int64_t k) {
  T most = 0;
  for (int i = 0; i < a.m; ++i) {
    for (int j = 0; j < a.n; ++j) most = std::max(most, std::abs(a.at(k, i, j)));
  }
  return most;
}

/// The columns of matrix k (the rows, if so) are orthogonal and of length 1.
template <class T>
bool orthogonal(Matrices<T>& a, int64_t k, bool rows) {
  const int count = rows ? a.m : a.n, length = rows ? a.n : a.m;
  for (int p = 0; p < count; ++p) {
    for (int q = 0; q < count; ++q) {
      T sum = 0;
      for (int i = 0; i < length; ++i) sum += rows ? a.at(k, p, i) * a.at(k, q, i) : a.at(k, i, p) * a.at(k, i, q);
      if (std::abs(sum - T(p == q)) > 50 * std::numeric_limits<T>::epsilon()) return false;
    }
  }
  return true;
}

TEST_CASE_TEMPLATE("symmetric matrices are rebuilt of their eigenvectors", T, float, double) {
  std::mt19937 random(1);
  for (int n = 1; n <= kSmallSpectrum; ++n) {
    for (const char uplo : {'L', 'U'}) {
      Matrices<T> a = drawn<T>(n, n, random), v = a;
      std::vector<T> w(static_cast<size_t>(n * kCount)), alone = w;
      std::vector<int> info(kCount, -9);
      small_spectra<T>().symmetric(true, uplo, n, v.x.data(), w.data(), info.data(), 1, kCount);
      Matrices<T> again = a;
      small_spectra<T>().symmetric(false, uplo, n, again.x.data(), alone.data(), info.data(), 1, kCount);
      CHECK(w == alone);
      for (int64_t k = 0; k < kCount; ++k) {
        CHECK(info[static_cast<size_t>(k)] == 0);
        const T* values = w.data() + k * n;
        CHECK(std::is_sorted(values, values + n));
        CHECK(orthogonal(v, k, false));
        const T near = 50 * std::numeric_limits<T>::epsilon() * largest(a, k);
        for (int i = 0; i < n; ++i) {
          for (int j = 0; j <= i; ++j) {
            T sum = 0;
            for (int c = 0; c < n; ++c) sum += v.at(k, i, c) * values[c] * v.at(k, j, c);
            CHECK(std::abs(sum - (uplo == 'L' ? a.at(k, i, j) : a.at(k, j, i))) <= near);
          }
        }
        // By itself it has the same bits as beside the others.
        std::vector<T> one(a.x.begin() + k * n * n, a.x.begin() + (k + 1) * n * n), of_one(static_cast<size_t>(n));
        small_spectra<T>().symmetric(true, uplo, n, one.data(), of_one.data(), info.data(), 1, 1);
        CHECK(std::equal(of_one.begin(), of_one.end(), values));
      }
    }
  }
}

TEST_CASE_TEMPLATE("matrices are rebuilt of their singular vectors", T, float, double) {
  std::mt19937 random(2);
  for (int m = 1; m <= kSmallSpectrum; m += 1 + m / 4) {
    for (int n = 1; n <= kSmallSpectrum; n += 1 + n / 4) {
      Matrices<T> a = drawn<T>(m, n, random);
      const int few = std::min(m, n);
      for (const char job : {'A', 'S', 'N'}) {
        Matrices<T> u(m, job == 'A' ? m : few), vt(job == 'A' ? n : few, n);
        std::vector<T> s(static_cast<size_t>(few * kCount));
        std::vector<int> info(kCount, -9);
        small_spectra<T>().singular(job, m, n, a.x.data(), s.data(), u.x.data(), vt.x.data(), info.data(), -4, kCount);
        for (int64_t k = 0; k < kCount; ++k) {
          CHECK(info[static_cast<size_t>(k)] == 0);
          const T* values = s.data() + k * few;
          CHECK(std::is_sorted(values, values + few, std::greater<>()));
          CHECK(values[few - 1] >= 0);
          if (job == 'N') continue;
          CHECK(orthogonal(u, k, false));
          CHECK(orthogonal(vt, k, true));
          const T near = 50 * std::numeric_limits<T>::epsilon() * largest(a, k);
          for (int i = 0; i < m; ++i) {
            for (int j = 0; j < n; ++j) {
              T sum = 0;
              for (int c = 0; c < few; ++c) sum += u.at(k, i, c) * values[c] * vt.at(k, c, j);
              CHECK(std::abs(sum - a.at(k, i, j)) <= near);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("elements that are not finite are told, and disturb no other matrix") {
  std::mt19937 random(3);
  const int n = 3;
  Matrices<float> a = drawn<float>(n, n, random), v = a, hurt = a;
  hurt.at(7, 2, 1) = std::numeric_limits<float>::infinity();
  hurt.at(9, 1, 1) = std::numeric_limits<float>::quiet_NaN();
  hurt.at(6, 0, 2) = std::numeric_limits<float>::quiet_NaN();  // in the triangle that is not read
  std::vector<float> w(n * kCount), hurt_w = w;
  std::vector<int> info(kCount), none(kCount);
  small_spectra<float>().symmetric(true, 'L', n, v.x.data(), w.data(), none.data(), 1, kCount);
  small_spectra<float>().symmetric(true, 'L', n, hurt.x.data(), hurt_w.data(), info.data(), 1, kCount);
  for (int64_t k = 0; k < kCount; ++k) {
    const auto at = static_cast<size_t>(k);
    CHECK(info[at] == (k == 7 || k == 9 ? 1 : 0));
    if (info[at] == 0) CHECK(std::equal(w.begin() + k * n, w.begin() + (k + 1) * n, hurt_w.begin() + k * n));
  }
}

}  // namespace
}  // namespace hlojit

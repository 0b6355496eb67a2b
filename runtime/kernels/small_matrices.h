// LAPACK's and BLAS's functions for matrices of a few rows, as programs have thousands of (rotations, covariances,
// inertia): called for one of 3x3, the library takes ten times as long as the arithmetic. Signatures and results are
// those of Fortran (lapack.h); loops are plain.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

namespace hlojit {

/// Up to these orders the functions here are faster than the library's.
inline constexpr int kSmallFactor = 16, kSmallSystem = 6;

inline float conjugate(float x) { return x; }
inline double conjugate(double x) { return x; }
template <class R>
std::complex<R> conjugate(const std::complex<R>& x) {
  return std::conj(x);
}

/// P L U = A in place, `pivots` from 1. info: the first column without a pivot, from 1, or 0.
template <class T>
void small_getrf(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info) {
  const int rows = *m, columns = *n, ld = *lda;
  // What LAPACK compares pivots by.
  auto size = [](const T& x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); };
  *info = 0;
  for (int j = 0; j < std::min(rows, columns); ++j) {
    T* column = a + j * ld;
    int pivot = j;
    for (int i = j + 1; i < rows; ++i) pivot = size(column[i]) > size(column[pivot]) ? i : pivot;
    pivots[j] = pivot + 1;
    if (column[pivot] == T{}) {
      if (*info == 0) *info = j + 1;
      continue;
    }
    for (int k = 0; k < columns; ++k) std::swap(a[j + k * ld], a[pivot + k * ld]);
    const T inverse = T(1) / column[j];
    for (int i = j + 1; i < rows; ++i) column[i] *= inverse;
    for (int k = j + 1; k < columns; ++k) {
      const T upper = a[j + k * ld];
      for (int i = j + 1; i < rows; ++i) a[i + k * ld] -= column[i] * upper;
    }
  }
}

/// A = L L^H or U^H U, of which one triangle is read and written. info: the first row of a minor that is not positive.
template <class T>
void small_potrf(const char* uplo, const int* n, T* a, const int* lda, int* info) {
  const int ld = *lda;
  // The upper triangle is the lower one's transpose: conjugated elements at exchanged places.
  const int row = *uplo == 'L' ? 1 : ld, column = *uplo == 'L' ? ld : 1;
  *info = 0;
  for (int j = 0; j < *n; ++j) {
    auto diagonal = std::real(a[j * (row + column)]);
    for (int k = 0; k < j; ++k) diagonal -= std::norm(a[j * row + k * column]);
    if (!(diagonal > 0)) {
      *info = j + 1;
      return;
    }
    const auto root = std::sqrt(diagonal);
    a[j * (row + column)] = T(root);
    for (int i = j + 1; i < *n; ++i) {
      T sum = a[i * row + j * column];
      for (int k = 0; k < j; ++k) sum -= a[i * row + k * column] * conjugate(a[j * row + k * column]);
      a[i * row + j * column] = sum / root;
    }
  }
}

/// The length of a vector of n numbers, which may be too large or too small to be squared.
template <class T>
auto vector_length(const T* x, int n) {
  using R = decltype(std::abs(T()));
  auto squares = [&](R unit) {
    R sum = 0;
    for (int i = 0; i < n; ++i) sum += std::norm(x[i] / unit);
    return sum;
  };
  const R sum = squares(1);
  if (sum > std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon() && sum < std::numeric_limits<R>::max())
    return std::sqrt(sum);
  R largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max({largest, std::abs(std::real(x[i])), std::abs(std::imag(x[i]))});
  return largest > 0 ? largest * std::sqrt(squares(largest)) : sum;
}

/// One column c becomes c - v (factor v^H c), v = (1, the rest of `reflector`); each of `rows`.
template <class T>
void reflect(const T* reflector, T factor, T* c, int rows) {
  T along = c[0];
  for (int i = 1; i < rows; ++i) along += conjugate(reflector[i]) * c[i];
  along *= factor;
  c[0] -= along;
  for (int i = 1; i < rows; ++i) c[i] -= reflector[i] * along;
}

/// Q R = A in place: R, and below it the reflectors that Q is the product of, each with its factor in tau.
template <class T>
void small_geqrf(int m, int n, T* a, T* tau) {
  for (int j = 0; j < std::min(m, n); ++j) {
    T* column = a + j * m + j;
    const int rows = m - j;
    const T head = column[0];
    tau[j] = T{};
    if (vector_length(column + 1, rows - 1) == 0 && std::imag(head) == 0) continue;
    const T result = -std::copysign(vector_length(column, rows), std::real(head));
    tau[j] = (result - head) / result;
    for (int i = 1; i < rows; ++i) column[i] /= head - result;
    column[0] = result;
    for (int k = j + 1; k < n; ++k) reflect(column, conjugate(tau[j]), a + k * m + j, rows);
  }
}

/// The first n columns of the product of k reflectors, in their place.
template <class T>
void small_orgqr(int m, int n, int k, T* a, const T* tau) {
  for (int j = k; j < n; ++j) {
    std::fill(a + j * m, a + (j + 1) * m, T{});
    a[j * m + j] = T(1);
  }
  for (int j = k - 1; j >= 0; --j) {
    T* column = a + j * m;
    for (int c = j + 1; c < n; ++c) reflect(column + j, tau[j], a + c * m + j, m - j);
    std::fill(column, column + j, T{});
    column[j] = T(1) - tau[j];
    for (int i = j + 1; i < m; ++i) column[i] *= -tau[j];
  }
}

/// op(A) X = alpha B (side L) or X op(A) = alpha B, X in the place of B of m rows and n columns.
template <class T>
void small_trsm(const char* side, const char* uplo, const char* op, const char* unit, const int* m, const int* n,
                const T* alpha, const T* a, const int* lda, T* b, const int* ldb) {
  const bool left = *side == 'L', plain = *op == 'N', lower = (*uplo == 'L') == (plain == left);
  const int order = left ? *m : *n, systems = left ? *n : *m;
  // Of the matrix that a vector of unknowns stands behind, and of these vectors.
  const int row = plain == left ? 1 : *lda, column = plain == left ? *lda : 1;
  const int unknown = left ? 1 : *ldb, system = left ? *ldb : 1;
  auto element = [&](int i, int j) {
    return *op == 'C' ? conjugate(a[i * row + j * column]) : a[i * row + j * column];
  };
  for (int step = 0; step < order; ++step) {
    const int i = lower ? step : order - 1 - step;
    for (int s = 0; s < systems; ++s) b[i * unknown + s * system] *= *alpha;
    for (int before = 0; before < step; ++before) {
      const int j = lower ? before : order - 1 - before;
      const T factor = element(i, j);
      for (int s = 0; s < systems; ++s) b[i * unknown + s * system] -= factor * b[j * unknown + s * system];
    }
    if (*unit == 'U') continue;
    const T inverse = T(1) / element(i, i);
    for (int s = 0; s < systems; ++s) b[i * unknown + s * system] *= inverse;
  }
}

}  // namespace hlojit

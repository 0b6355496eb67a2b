// The functions of small_spectra.h for the instruction set A. Included by the file of each set, which is compiled for
// it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <xsimd/xsimd.hpp>

#include "runtime/kernels/small_spectra.h"

namespace hlojit {
namespace {  // its own in each file: code for other instructions must not take its place

constexpr int kOrder = kSmallSpectrum;

template <class V>
using Columns = V[kOrder][kOrder];  // [column][row]

/// A matrix a lane.
template <class V>
class Rotated {
 public:
  using T = typename V::value_type;

  /// By a power of two a lane, kept, that brings the largest element near 1: squares neither overflow nor vanish.
  Rotated(const T (&from)[kOrder][kOrder][V::size], int rows, int columns, bool vectors)
      : rows_(rows), columns_(columns), vectors_(vectors) {
    for (size_t l = 0; l < V::size; ++l) {
      T largest = std::numeric_limits<T>::min();
      for (int j = 0; j < columns; ++j) {
        for (int i = 0; i < rows; ++i) largest = std::max(largest, std::abs(from[j][i][l]));
      }
      scale[l] = std::ldexp(T(1), -std::min(std::ilogb(largest), std::numeric_limits<T>::max_exponent - 3));
    }
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < columns; ++i) v[j][i] = V(T(i == j));
      for (int i = 0; i < rows; ++i) m[j][i] = V::load_aligned(from[j][i]) * V::load_aligned(scale);
    }
  }

  /// Of symmetric matrices: m becomes diagonal, v its eigenvectors.
  void make_diagonal() {
    sweep([&](int p, int q) { return clear(p, q); });
  }
  /// The columns of m become orthogonal, v the same rotations of the identity.
  void make_orthogonal() {
    sweep([&](int p, int q) { return part(p, q); });
  }

  Columns<V> m, v;
  alignas(64) T scale[V::size];

 private:
  // Each sweep squares what is left: six are enough for f64.
  static constexpr int kMostSweeps = 30;
  static constexpr T kEpsilon = std::numeric_limits<T>::epsilon();

  struct Rotation {
    V tangent, cosine, sine;
  };

  template <class Turn>
  void sweep(const Turn& turn) {
    bool turned = true;
    for (int k = 0; k < kMostSweeps && turned; ++k) {
      turned = false;
      for (int p = 0; p < columns_; ++p) {
        for (int q = p + 1; q < columns_; ++q) turned |= turn(p, q);
      }
    }
  }

  /// By the smaller of the two angles whose cotangent of the double this is; where `wanted`.
  static Rotation rotation(V cotangent, typename V::batch_bool_type wanted) {
    const V size = V(T(1)) / (xsimd::abs(cotangent) + xsimd::sqrt(cotangent * cotangent + V(T(1))));
    const V tangent = xsimd::select(wanted, xsimd::copysign(size, cotangent), V(T(0)));
    const V cosine = V(T(1)) / xsimd::sqrt(tangent * tangent + V(T(1)));
    return {tangent, cosine, tangent * cosine};
  }

  static void turn(V (&x)[kOrder], V (&y)[kOrder], const Rotation& r, int n) {
    for (int i = 0; i < n; ++i) {
      const V a = x[i], b = y[i];
      x[i] = r.cosine * a - r.sine * b;
      y[i] = r.sine * a + r.cosine * b;
    }
  }

  /// m[p][q] becomes zero. Returns whether it was not in some lane.
  bool clear(int p, int q) {
    const V beside = m[p][q], x = m[p][p], y = m[q][q];
    const auto wanted = xsimd::abs(beside) > V(kEpsilon / 4);
    if (xsimd::none(wanted)) return false;
    const Rotation r = rotation((y - x) / (beside + beside), wanted);
    turn(m[p], m[q], r, columns_);
    for (int k = 0; k < columns_; ++k) m[k][p] = m[p][k], m[k][q] = m[q][k];
    m[p][p] = x - r.tangent * beside;
    m[q][q] = y + r.tangent * beside;
    m[p][q] = m[q][p] = xsimd::select(wanted, V(T(0)), beside);
    if (vectors_) turn(v[p], v[q], r, columns_);
    return true;
  }

  V product(const V (&x)[kOrder], const V (&y)[kOrder]) const {
    V sum = x[0] * y[0];
    for (int i = 1; i < rows_; ++i) sum = sum + x[i] * y[i];
    return sum;
  }

  /// Columns p and q of m become orthogonal. Returns whether they were not in some lane.
  bool part(int p, int q) {
    const V x = product(m[p], m[p]), y = product(m[q], m[q]), both = product(m[p], m[q]);
    const auto wanted = xsimd::abs(both) > V(kEpsilon) * (xsimd::sqrt(x) * xsimd::sqrt(y));
    if (xsimd::none(wanted)) return false;
    const Rotation r = rotation((y - x) / (both + both), wanted);
    turn(m[p], m[q], r, rows_);
    if (vectors_) turn(v[p], v[q], r, columns_);
    return true;
  }

  const int rows_, columns_;
  const bool vectors_;
};

/// One lane of so many rows and columns, as numbers.
template <class T>
struct Lane {
  template <class V>
  Lane(const Columns<V>& of, size_t lane, int rows, int columns) {
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < rows; ++i) x[j][i] = reinterpret_cast<const T*>(&of[j][i])[lane];
    }
  }
  Lane() {}
  Columns<T> x;
};

/// Places in the order of `before`, of equal ones the first first.
template <class Before>
void put_in_order(int (&order)[kOrder], int n, const Before& before) {
  for (int k = 0; k < n; ++k) {
    int at = k;
    for (; at > 0 && before(k, order[at - 1]); --at) order[at] = order[at - 1];
    order[at] = k;
  }
}

/// Column j becomes orthogonal to those before: of the axes the one that these say least about, without their part.
template <class T>
void complete(Columns<T>& left, int j, int rows) {
  int axis = 0;
  T least = std::numeric_limits<T>::max();
  for (int i = 0; i < rows; ++i) {
    T said = 0;
    for (int k = 0; k < j; ++k) said += left[k][i] * left[k][i];
    if (said < least) least = said, axis = i;
  }
  for (int i = 0; i < rows; ++i) left[j][i] = T(i == axis);
  auto product = [&](int a, int b) { return std::inner_product(left[a], left[a] + rows, left[b], T(0)); };
  for (int twice = 0; twice < 2; ++twice) {  // once leaves an error as large as what is left is small
    for (int k = 0; k < j; ++k) {
      const T along = product(k, j);
      for (int i = 0; i < rows; ++i) left[j][i] -= along * left[k][i];
    }
  }
  const T norm = std::sqrt(product(j, j));
  for (int i = 0; i < rows; ++i) left[j][i] /= norm;
}

template <class T, class A>
struct Spectra {
  using V = xsimd::batch<T, A>;
  using Lanes = T[kOrder][kOrder][V::size];
  static constexpr int64_t kLanes = V::size;
  // Scaled columns that are shorter have lost bits of their squares, and with them their direction.
  static constexpr T kKnown = sizeof(T) == 4 ? T(1e-15) : T(1e-145);

  /// Matrices of `size` elements each, `some` of them, a lane each: row i of column j is element place(i, j). Zeros in
  /// lanes that are left, and for a matrix with elements that are not finite: its info is `failed`.
  template <class Place>
  static void fill(Lanes& lanes, int rows, int columns, const T* from, int64_t size, int64_t some, int* info,
                   int failed, const Place& place) {
    for (int j = 0; j < columns; ++j) std::fill_n(&lanes[j][0][0], rows * kLanes, T(0));
    for (int64_t l = 0; l < some; ++l, from += size) {
      T sum = 0;  // of zeros, if all are finite
      for (int j = 0; j < columns; ++j) {
        for (int i = 0; i < rows; ++i) {
          const T x = from[place(i, j)];
          lanes[j][i][l] = x;
          sum += x * 0;
        }
      }
      info[l] = sum == 0 ? 0 : failed;
      for (int j = 0; j < columns && info[l] != 0; ++j) {
        for (int i = 0; i < rows; ++i) lanes[j][i][l] = 0;
      }
    }
  }

  static void symmetric(bool vectors, char uplo, int n, T* a, T* values, int* info, int failed, int64_t count) {
    for (int64_t first = 0; first < count; first += kLanes) {
      const int64_t some = std::min(kLanes, count - first);
      alignas(64) Lanes lanes;
      fill(lanes, n, n, a + first * n * n, n * n, some, info + first, failed, [&](int i, int j) {
        const int near = std::min(i, j), far = std::max(i, j);
        return uplo == 'L' ? far + near * n : near + far * n;
      });
      Rotated<V> found(lanes, n, n, vectors);
      found.make_diagonal();
      for (int64_t l = 0; l < some; ++l) {
        if (info[first + l] != 0) continue;
        const Lane<T> m(found.m, l, n, n), v(found.v, l, n, n);
        int order[kOrder];
        put_in_order(order, n, [&](int x, int y) { return m.x[x][x] < m.x[y][y]; });
        for (int j = 0; j < n; ++j) {
          values[(first + l) * n + j] = m.x[order[j]][order[j]] / found.scale[l];
          if (vectors) std::copy_n(v.x[order[j]], n, a + ((first + l) * n + j) * n);
        }
      }
    }
  }

  static void singular(char job, int m, int n, const T* a, T* values, T* u, T* vt, int* info, int failed,
                       int64_t count) {
    // Of a wide matrix the transpose, whose u and v change places.
    const bool wide = m < n;
    const int rows = std::max(m, n), columns = std::min(m, n), all = job == 'A' ? rows : columns;
    const int u_columns = wide ? columns : all, v_columns = wide ? all : columns;
    for (int64_t first = 0; first < count; first += kLanes) {
      const int64_t some = std::min(kLanes, count - first);
      alignas(64) Lanes lanes;
      fill(lanes, rows, columns, a + first * m * n, m * n, some, info + first, failed,
           [&](int i, int j) { return wide ? j + i * m : i + j * m; });
      Rotated<V> found(lanes, rows, columns, job != 'N');
      found.make_orthogonal();
      for (int64_t l = 0; l < some; ++l) {
        if (info[first + l] != 0) continue;
        const Lane<T> b(found.m, l, rows, columns), v(found.v, l, columns, columns);
        T norms[kOrder];
        for (int j = 0; j < columns; ++j) norms[j] = std::sqrt(std::inner_product(b.x[j], b.x[j] + rows, b.x[j], T(0)));
        int order[kOrder];
        put_in_order(order, columns, [&](int x, int y) { return norms[x] > norms[y]; });
        for (int j = 0; j < columns; ++j) values[(first + l) * columns + j] = norms[order[j]] / found.scale[l];
        if (job == 'N') continue;
        Lane<T> left, right;
        for (int j = 0; j < all; ++j) {
          const bool known = j < columns && norms[order[j]] > kKnown;
          if (j < columns) std::copy_n(v.x[order[j]], columns, right.x[j]);
          for (int i = 0; i < rows && known; ++i) left.x[j][i] = b.x[order[j]][i] / norms[order[j]];
          if (!known) complete(left.x, j, rows);
        }
        const Lane<T>&of_u = wide ? right : left, &of_v = wide ? left : right;
        T *to_u = u + (first + l) * m * u_columns, *to_v = vt + (first + l) * v_columns * n;
        for (int j = 0; j < u_columns; ++j) std::copy_n(of_u.x[j], m, to_u + j * m);
        for (int j = 0; j < v_columns; ++j) {
          for (int i = 0; i < n; ++i) to_v[j + i * v_columns] = of_v.x[j][i];
        }
      }
    }
  }
};

template <class A, class T>
constexpr SmallSpectra<T> spectra_for() {
  return {&Spectra<T, A>::symmetric, &Spectra<T, A>::singular};
}

}  // namespace
}  // namespace hlojit

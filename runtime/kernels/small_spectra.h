// Eigenvalues and singular values of real matrices of a few rows, as programs have thousands of (covariances, inertia,
// rotations to be found): a matrix a lane. By Jacobi's rotations, of which each makes one element zero, or two columns
// orthogonal, until all are; lanes that are done turn no further, so a matrix has the same results beside any others.
#pragma once

#include <cstdint>

namespace hlojit {

/// Up to this order the functions here are faster than the library's, of so many matrices.
inline constexpr int kSmallSpectrum = 12, kFewestSpectra = 4;

/// On `count` matrices one behind the other, column-major and without gaps. info: 0, or `failed` for a matrix with
/// elements that are not finite, which has no other results.
template <class T>
struct SmallSpectra {
  /// Of the triangle `uplo` of a: its eigenvalues, ascending, and if they are wanted its eigenvectors in the place of
  /// a.
  void (*symmetric)(bool vectors, char uplo, int n, T* a, T* values, int* info, int failed, int64_t count);
  /// a = u diag(values) vt, values descending. job N: no vectors; S: min(m, n) of them; A: all.
  void (*singular)(char job, int m, int n, const T* a, T* values, T* u, T* vt, int* info, int failed, int64_t count);
};

/// For this machine's vectors.
template <class T>
const SmallSpectra<T>& small_spectra();

}  // namespace hlojit

// Factorisations and systems of equations.
#include <cmath>

#include "runtime/kernels/lapack_site.h"
#include "runtime/kernels/small_matrices.h"

namespace hlojit {
namespace {

template <class T>
LapackCall potrf(const LapackSite& s) {
  using F = void(const char*, const int*, T*, const int*, int*);
  auto* f = s.dim(0, 0) <= kSmallFactor ? &small_potrf<T> : s.function<F>("potrf");
  return [f, n = s.dim(0, 0), uplo = s.letter("uplo", 'L'), bytes = s.stride(0)](void* const* p) {
    take(p[1], p[0], bytes);
    f(&uplo, &n, as<T>(p[1]), &n, as<int>(p[2]));
  };
}

template <class T>
LapackCall getrf(const LapackSite& s) {
  using F = void(const int*, const int*, T*, const int*, int*, int*);
  auto* f = std::max(s.dim(0, 0), s.dim(0, 1)) <= kSmallFactor ? &small_getrf<T> : s.function<F>("getrf");
  return [f, m = s.dim(0, 0), n = s.dim(0, 1), bytes = s.stride(0)](void* const* p) {
    take(p[1], p[0], bytes);
    f(&m, &n, as<T>(p[1]), &m, as<int>(p[2]), as<int>(p[3]));
  };
}

template <class T>
LapackCall geqrf(const LapackSite& s) {
  using F = void(const int*, const int*, T*, const int*, T*, T*, const int*, int*);
  const int m = s.dim(0, 0), n = s.dim(0, 1);
  const size_t bytes = s.stride(0);
  if (std::max(m, n) <= kSmallFactor) {
    return [=](void* const* p) {
      take(p[1], p[0], bytes);
      small_geqrf(m, n, as<T>(p[1]), as<T>(p[2]));
    };
  }
  auto* f = s.function<F>("geqrf");
  return [=](void* const* p) {
    take(p[1], p[0], bytes);
    int info = 0;
    with_room<T>([&](T* work, const int* length) { f(&m, &n, as<T>(p[1]), &m, as<T>(p[2]), work, length, &info); });
  };
}

/// (a, pivots) -> (a overwritten, pivots, tau); a pivot given as 0 may be chosen.
template <class T>
LapackCall geqp3(const LapackSite& s) {
  using R = typename Real<T>::type;
  using F =
      std::conditional_t<kComplex<T>, void(const int*, const int*, T*, const int*, int*, T*, T*, const int*, R*, int*),
                         void(const int*, const int*, T*, const int*, int*, T*, T*, const int*, int*)>;
  auto* f = s.function<F>("geqp3");
  const std::vector<size_t> bytes = {s.stride(0), s.stride(1)};
  return [=, m = s.dim(0, 0), n = s.dim(0, 1)](void* const* p) {
    take(p[2], p[0], bytes[0]);
    take(p[3], p[1], bytes[1]);
    int info = 0;
    std::vector<R> real(kComplex<T> ? static_cast<size_t>(2 * n) : 0);
    with_room<T>([&](T* work, const int* length) {
      if constexpr (kComplex<T>) {
        f(&m, &n, as<T>(p[2]), &m, as<int>(p[3]), as<T>(p[4]), work, length, real.data(), &info);
      } else {
        f(&m, &n, as<T>(p[2]), &m, as<int>(p[3]), as<T>(p[4]), work, length, &info);
      }
    });
  };
}

/// (a, tau) -> q
template <class T>
LapackCall orgqr(const LapackSite& s) {
  using F = void(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);
  const int m = s.dim(0, 0), n = s.dim(0, 1), k = s.dim(1, 0);
  const size_t bytes = s.stride(0);
  if (m <= kSmallFactor) {
    return [=](void* const* p) {
      take(p[2], p[0], bytes);
      small_orgqr(m, n, k, as<T>(p[2]), as<T>(p[1]));
    };
  }
  auto* f = s.function<F>(kComplex<T> ? "ungqr" : "orgqr");
  return [=](void* const* p) {
    take(p[2], p[0], bytes);
    int info = 0;
    with_room<T>([&](T* work, const int* length) { f(&m, &n, &k, as<T>(p[2]), &m, as<T>(p[1]), work, length, &info); });
  };
}

/// (a, tau, c) -> q c or c q
template <class T>
LapackCall ormqr(const LapackSite& s) {
  using F = void(const char*, const char*, const int*, const int*, const int*, T*, const int*, const T*, T*, const int*,
                 T*, const int*, int*);
  auto* f = s.function<F>(kComplex<T> ? "unmqr" : "ormqr");
  const char side = s.number("left", 1) ? 'L' : 'R', op = !s.number("transpose", 0) ? 'N' : kComplex<T> ? 'C' : 'T';
  return
      [=, m = s.dim(2, 0), n = s.dim(2, 1), k = s.dim(1, 0), rows = s.dim(0, 0), bytes = s.stride(2)](void* const* p) {
        take(p[3], p[2], bytes);
        int info = 0;
        with_room<T>([&](T* work, const int* length) {
          f(&side, &op, &m, &n, &k, as<T>(p[0]), &rows, as<T>(p[1]), as<T>(p[3]), &m, work, length, &info);
        });
      };
}

template <class T>
LapackCall gehrd(const LapackSite& s) {
  using F = void(const int*, const int*, const int*, T*, const int*, T*, T*, const int*, int*);
  auto* f = s.function<F>("gehrd");
  const int n = s.dim(0, 0), low = s.number("low", 1), high = s.number("high", n);
  return [=, bytes = s.stride(0)](void* const* p) {
    take(p[1], p[0], bytes);
    with_room<T>([&](T* work, const int* length) {
      f(&n, &low, &high, as<T>(p[1]), &n, as<T>(p[2]), work, length, as<int>(p[3]));
    });
  };
}

template <class T>
LapackCall trsm(const LapackSite& s) {
  using F = void(const char*, const char*, const char*, const char*, const int*, const int*, const T*, const T*,
                 const int*, T*, const int*);
  auto* f = std::max(s.dim(1, 0), s.dim(1, 1)) <= kSmallSystem ? &small_trsm<T> : s.function<F>("trsm");
  const char side = s.letter("side", 'L'), uplo = s.letter("uplo", 'L'), op = s.letter("trans_x", 'N');
  return [=, unit = s.letter("diag", 'N'), m = s.dim(1, 0), n = s.dim(1, 1), k = s.dim(0, 0),
          bytes = s.stride(1)](void* const* p) {
    take(p[2], p[1], bytes);
    const T one(1);
    f(&side, &uplo, &op, &unit, &m, &n, &one, as<T>(p[0]), &k, as<T>(p[2]), &m);
  };
}

/// (lower, diagonal, upper, b) -> the same overwritten, info. The first of `lower` and the last of
/// `upper` mean nothing; LAPACK has no place for the former.
template <class T>
LapackCall gtsv(const LapackSite& s) {
  using F = void(const int*, const int*, T*, T*, T*, T*, const int*, int*);
  auto* f = s.function<F>("gtsv");
  const std::vector<size_t> bytes = {s.stride(0), s.stride(1), s.stride(2), s.stride(3)};
  return [=, n = s.dim(3, 0), columns = s.dim(3, 1)](void* const* p) {
    for (size_t k = 0; k < 4; ++k) take(p[4 + k], p[k], bytes[k]);
    f(&n, &columns, as<T>(p[4]) + 1, as<T>(p[5]), as<T>(p[6]), as<T>(p[7]), &n, as<int>(p[8]));
  };
}

constexpr LapackRow kFactors[] = {
    {"gehrd", 1, 3, 20, HLOJIT_LAPACK(gehrd)}, {"geqp3", 2, 3, 12, HLOJIT_LAPACK(geqp3)},
    {"geqrf", 1, 2, 8, HLOJIT_LAPACK(geqrf)},  {"getrf", 1, 3, 4, HLOJIT_LAPACK(getrf)},
    {"gtsv", 4, 5, 4, HLOJIT_LAPACK(gtsv)},    {"orgqr", 2, 1, 6, HLOJIT_LAPACK(orgqr)},
    {"ormqr", 3, 1, 6, HLOJIT_LAPACK(ormqr)},  {"potrf", 1, 2, 0.3, HLOJIT_LAPACK(potrf)},
    {"trsm", 2, 1, 0.3, HLOJIT_LAPACK(trsm)},  {"ungqr", 2, 1, 6, HLOJIT_LAPACK(orgqr)},
    {"unmqr", 3, 1, 6, HLOJIT_LAPACK(ormqr)},
};
static_assert(fit(kFactors));

}  // namespace

std::span<const LapackRow> lapack_factors() { return kFactors; }

}  // namespace hlojit

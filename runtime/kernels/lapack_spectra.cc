// Eigenvalues and singular values.
#include <cmath>

#include "runtime/kernels/lapack_site.h"
#include "runtime/kernels/small_spectra.h"

namespace hlojit {
namespace {

template <class T>
bool all_finite(const T* x, size_t n) {
  return std::all_of(x, x + n, [](const T& v) { return std::isfinite(std::real(v)) && std::isfinite(std::imag(v)); });
}

/// Of the triangle that is read of a column-major matrix of order n.
template <class T>
bool triangle_finite(const T* x, int n, char uplo) {
  const auto order = static_cast<size_t>(n);
  for (size_t column = 0; column < order; ++column) {
    const size_t first = uplo == 'L' ? column : 0, last = uplo == 'L' ? order : column + 1;
    if (!all_finite(x + column * order + first, last - first)) return false;
  }
  return true;
}

// LapackCall of which each has a lane, a vector of f32 or two.
constexpr int64_t kTogether = 16;
bool are_small(const LapackSite& s) {
  return std::max(s.dim(0, 0), s.dim(0, 1)) <= kSmallSpectrum && s.batch() >= kFewestSpectra;
}

/// a -> (vectors, values, info)
template <class T>
LapackCall syevd(const LapackSite& s) {
  using R = typename Real<T>::type;
  const char job = s.letter("mode", 'V'), uplo = s.letter("uplo", 'L');
  const int n = s.dim(0, 0);
  const size_t bytes = s.stride(0);
  // What is not finite does not converge, which LAPACK need not notice: of {{nan, 1}, {1, 2}} it gave finite values.
  auto fail = [](void* const* p) { *as<int>(p[3]) = 1; };
  if constexpr (kComplex<T>) {
    using F = void(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*, const int*, int*,
                   const int*, int*);
    auto* f = s.function<F>("heevd");
    return [=](void* const* p) {
      take(p[1], p[0], bytes);
      if (!triangle_finite(as<T>(p[1]), n, uplo)) return fail(p);
      int length = -1, real_length = -1, int_length = -1, ints = 0;
      T best{};
      R real_best{};
      auto run = [&](T* work, R* real, int* integers) {
        f(&job, &uplo, &n, as<T>(p[1]), &n, as<R>(p[2]), work, &length, real, &real_length, integers, &int_length,
          as<int>(p[3]));
      };
      run(&best, &real_best, &ints);
      std::vector<T> work(static_cast<size_t>(length = asked(best)));
      std::vector<R> real(static_cast<size_t>(real_length = asked(real_best)));
      std::vector<int> integers(static_cast<size_t>(int_length = std::max(1, ints)));
      run(work.data(), real.data(), integers.data());
    };
  } else {
    using F = void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, const int*, int*);
    if (are_small(s)) {
      return {kTogether, [=, f = small_spectra<T>().symmetric](void* const* p, int64_t count) {
                take(p[1], p[0], bytes * static_cast<size_t>(count));
                f(job == 'V', uplo, n, as<T>(p[1]), as<T>(p[2]), as<int>(p[3]), 1, count);
              }};
    }
    auto* f = s.function<F>("syevd");
    return [=](void* const* p) {
      take(p[1], p[0], bytes);
      if (!triangle_finite(as<T>(p[1]), n, uplo)) return fail(p);
      int length = -1, int_length = -1, ints = 0;
      T best{};
      auto run = [&](T* work, int* integers) {
        f(&job, &uplo, &n, as<T>(p[1]), &n, as<T>(p[2]), work, &length, integers, &int_length, as<int>(p[3]));
      };
      run(&best, &ints);
      std::vector<T> work(static_cast<size_t>(length = asked(best)));
      std::vector<int> integers(static_cast<size_t>(int_length = std::max(1, ints)));
      run(work.data(), integers.data());
    };
  }
}

/// a -> (a overwritten, diagonal, beside it, tau, info)
template <class T>
LapackCall sytrd(const LapackSite& s) {
  using R = typename Real<T>::type;
  using F = void(const char*, const int*, T*, const int*, R*, R*, T*, T*, const int*, int*);
  auto* f = s.function<F>(kComplex<T> ? "hetrd" : "sytrd");
  return [f, n = s.dim(0, 0), uplo = s.letter("uplo", 'L'), bytes = s.stride(0)](void* const* p) {
    take(p[1], p[0], bytes);
    with_room<T>([&](T* work, const int* length) {
      f(&uplo, &n, as<T>(p[1]), &n, as<R>(p[2]), as<R>(p[3]), as<T>(p[4]), work, length, as<int>(p[5]));
    });
  };
}

/// Of real matrices of a few rows and columns.
template <class T>
LapackCall small_svd(const LapackSite& s) {
  return {kTogether, [m = s.dim(0, 0), n = s.dim(0, 1), job = s.letter("mode", 'A'), bytes = s.stride(0),
                      f = small_spectra<T>().singular](void* const* p, int64_t count) {
            take(p[1], p[0], bytes * static_cast<size_t>(count));
            f(job, m, n, as<T>(p[1]), as<T>(p[2]), as<T>(p[3]), as<T>(p[4]), as<int>(p[5]), -4, count);
          }};
}

/// a -> (a overwritten, singular values, u, v transposed, info), by QR iterations
template <class T>
LapackCall gesvd(const LapackSite& s) {
  using R = typename Real<T>::type;
  if constexpr (!kComplex<T>) {
    if (are_small(s)) return small_svd<T>(s);
  }
  using F = std::conditional_t<kComplex<T>,
                               void(const char*, const char*, const int*, const int*, T*, const int*, R*, T*,
                                    const int*, T*, const int*, T*, const int*, R*, int*),
                               void(const char*, const char*, const int*, const int*, T*, const int*, R*, T*,
                                    const int*, T*, const int*, T*, const int*, int*)>;
  auto* f = s.function<F>("gesvd");
  const char job = s.letter("mode", 'A');
  const int m = s.dim(0, 0), n = s.dim(0, 1), small = std::min(m, n);
  const int rows = job == 'S' ? small : n;  // of v transposed
  return [=, count = s.stride(0) / sizeof(T), bytes = s.stride(0)](void* const* p) {
    auto* info = as<int>(p[5]);
    take(p[1], p[0], bytes);
    if (!all_finite(as<T>(p[1]), count)) {
      *info = -4;
      return;
    }
    std::vector<R> real(kComplex<T> ? static_cast<size_t>(5 * small) : 0);
    with_room<T>([&](T* work, const int* length) {
      if constexpr (kComplex<T>) {
        f(&job, &job, &m, &n, as<T>(p[1]), &m, as<R>(p[2]), as<T>(p[3]), &m, as<T>(p[4]), &rows, work, length,
          real.data(), info);
      } else {
        f(&job, &job, &m, &n, as<T>(p[1]), &m, as<R>(p[2]), as<T>(p[3]), &m, as<T>(p[4]), &rows, work, length, info);
      }
    });
  };
}

/// a -> (a overwritten, singular values, u, v transposed, info), divide and conquer
template <class T>
LapackCall gesdd(const LapackSite& s) {
  using R = typename Real<T>::type;
  if constexpr (!kComplex<T>) {
    if (are_small(s)) return small_svd<T>(s);
  }
  using F = std::conditional_t<kComplex<T>,
                               void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                                    const int*, T*, const int*, R*, int*, int*),
                               void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                                    const int*, T*, const int*, int*, int*)>;
  auto* f = s.function<F>("gesdd");
  const char job = s.letter("mode", 'A');
  const int m = s.dim(0, 0), n = s.dim(0, 1), small = std::min(m, n), large = std::max(m, n);
  const int rows = job == 'S' ? small : n;  // of v transposed
  const int64_t reals = job == 'N'
                            ? int64_t{7} * small
                            : small * std::max<int64_t>(int64_t{5} * small + 7, int64_t{2} * large + 2 * small + 1);
  return [=, count = s.stride(0) / sizeof(T), bytes = s.stride(0)](void* const* p) {
    auto* info = as<int>(p[5]);
    take(p[1], p[0], bytes);
    if (!all_finite(as<T>(p[1]), count)) {
      *info = -4;
      return;
    }
    std::vector<R> real(kComplex<T> ? static_cast<size_t>(std::max<int64_t>(1, reals)) : 0);
    std::vector<int> integers(static_cast<size_t>(8 * small));
    with_room<T>([&](T* work, const int* length) {
      if constexpr (kComplex<T>) {
        f(&job, &m, &n, as<T>(p[1]), &m, as<R>(p[2]), as<T>(p[3]), &m, as<T>(p[4]), &rows, work, length, real.data(),
          integers.data(), info);
      } else {
        f(&job, &m, &n, as<T>(p[1]), &m, as<R>(p[2]), as<T>(p[3]), &m, as<T>(p[4]), &rows, work, length,
          integers.data(), info);
      }
    });
  };
}

/// Eigenvectors as LAPACK packs them for a real matrix: a pair of conjugates as its real and
/// imaginary columns.
template <class R>
void unpack_vectors(const R* packed, const R* imaginary, int n, std::complex<R>* out) {
  for (int j = 0; j < n; ++j) {
    const R* re = packed + static_cast<size_t>(j) * n;
    bool pair = imaginary[j] != 0 && j + 1 < n;
    for (int i = 0; i < n; ++i) {
      out[static_cast<size_t>(j) * n + i] = {re[i], pair ? re[n + i] : R{}};
      if (pair) out[static_cast<size_t>(j + 1) * n + i] = {re[i], -re[n + i]};
    }
    if (pair) ++j;
  }
}

/// a -> (values, left vectors, right vectors, info); values of a real matrix as two arrays.
template <class T>
LapackCall geev(const LapackSite& s) {
  using R = typename Real<T>::type;
  const char left = s.letter("compute_left", 'N'), right = s.letter("compute_right", 'V');
  const int n = s.dim(0, 0);
  const size_t count = s.stride(0) / sizeof(T);
  if constexpr (kComplex<T>) {
    using F = void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,
                   const int*, R*, int*);
    auto* f = s.function<F>("geev");
    return [=](void* const* p) {
      std::vector<T> a(as<T>(p[0]), as<T>(p[0]) + count);
      auto* info = as<int>(p[4]);
      if (!all_finite(a.data(), count)) {
        *info = -4;
        return;
      }
      std::vector<R> real(static_cast<size_t>(2 * n));
      with_room<T>([&](T* work, const int* length) {
        f(&left, &right, &n, a.data(), &n, as<T>(p[1]), as<T>(p[2]), &n, as<T>(p[3]), &n, work, length, real.data(),
          info);
      });
    };
  } else {
    using F = void(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*, const int*, T*,
                   const int*, int*);
    auto* f = s.function<F>("geev");
    return [=](void* const* p) {
      std::vector<T> a(as<T>(p[0]), as<T>(p[0]) + count), vl(count), vr(count);
      auto* info = as<int>(p[5]);
      if (!all_finite(a.data(), count)) {
        *info = -4;
        return;
      }
      with_room<T>([&](T* work, const int* length) {
        f(&left, &right, &n, a.data(), &n, as<T>(p[1]), as<T>(p[2]), vl.data(), &n, vr.data(), &n, work, length, info);
      });
      const T* imaginary = as<T>(p[2]);
      if (left == 'V') unpack_vectors(vl.data(), imaginary, n, as<std::complex<T>>(p[3]));
      if (right == 'V') unpack_vectors(vr.data(), imaginary, n, as<std::complex<T>>(p[4]));
    };
  }
}

/// a -> (t, vectors, values, selected, info); values of a real matrix as two arrays.
template <class T>
LapackCall gees(const LapackSite& s) {
  using R = typename Real<T>::type;
  if (s.letter("sort", 'N') != 'N') s.refuse("sorted Schur forms are not served");
  const char job = s.letter("mode", 'V'), sort = 'N';
  const int n = s.dim(0, 0);
  const size_t bytes = s.stride(0);
  using F = std::conditional_t<kComplex<T>,
                               void(const char*, const char*, void*, const int*, T*, const int*, int*, T*, T*,
                                    const int*, T*, const int*, R*, int*, int*),
                               void(const char*, const char*, void*, const int*, T*, const int*, int*, T*, T*, T*,
                                    const int*, T*, const int*, int*, int*)>;
  auto* f = s.function<F>("gees");
  return [=](void* const* p) {
    take(p[1], p[0], bytes);
    std::vector<R> real(static_cast<size_t>(n));
    std::vector<int> flags(static_cast<size_t>(n));
    with_room<T>([&](T* work, const int* length) {
      if constexpr (kComplex<T>) {
        f(&job, &sort, nullptr, &n, as<T>(p[1]), &n, as<int>(p[4]), as<T>(p[3]), as<T>(p[2]), &n, work, length,
          real.data(), flags.data(), as<int>(p[5]));
      } else {
        f(&job, &sort, nullptr, &n, as<T>(p[1]), &n, as<int>(p[5]), as<T>(p[3]), as<T>(p[4]), as<T>(p[2]), &n, work,
          length, flags.data(), as<int>(p[6]));
      }
    });
  };
}

constexpr LapackRow kSpectra[] = {
    {"gees", 1, 6, 150, HLOJIT_LAPACK(gees)},  {"geev", 1, 5, 150, HLOJIT_LAPACK(geev)},
    {"gesdd", 1, 5, 90, HLOJIT_LAPACK(gesdd)}, {"gesvd", 1, 5, 90, HLOJIT_LAPACK(gesvd)},
    {"heevd", 1, 3, 50, HLOJIT_LAPACK(syevd)}, {"hetrd", 1, 5, 15, HLOJIT_LAPACK(sytrd)},
    {"syevd", 1, 3, 50, HLOJIT_LAPACK(syevd)}, {"sytrd", 1, 5, 15, HLOJIT_LAPACK(sytrd)},
};
static_assert(fit(kSpectra));

}  // namespace

std::span<const LapackRow> lapack_spectra() { return kSpectra; }

}  // namespace hlojit

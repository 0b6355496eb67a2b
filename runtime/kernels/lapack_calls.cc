// Each call is a function of one matrix's pointers, operands then results; a batch runs it in
// parallel. What a function overwrites is copied from the operand first (it may be there already:
// output_to_operand_aliasing).
#include "runtime/kernels/lapack_calls.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "compiler/ir/lapack_call.h"
#include "layout/divide.h"
#include "layout/index.h"
#include "runtime/kernels/lapack.h"
#include "runtime/kernels/small_matrices.h"
#include "runtime/kernels/small_spectra.h"

namespace hlojit {
namespace {

/// A call on one matrix of each leaf; or on several at once that follow each other, fewer at the end of a batch.
struct Matrices {
  std::function<void(void* const* p, int64_t count)> call;
  int64_t together = 1;

  template <class One>
  Matrices(One one) : call([one](void* const* p, int64_t) { one(p); }) {}
  template <class Several>
  Matrices(int64_t together, Several several) : call(std::move(several)), together(together) {}
};

template <class T>
struct Real {
  using type = T;
};
template <class T>
struct Real<std::complex<T>> {
  using type = T;
};
template <class T>
constexpr bool kComplex = !std::is_same_v<T, typename Real<T>::type>;

/// What a call is: its leaves' shapes, its attributes, the length of its batch.
class Site {
 public:
  explicit Site(const Instruction& call) : call_(call) {
    for (const Instruction* o : call.operands()) shapes_.push_back(o->shape);
    for (const Shape* leaf : leaves(call.shape)) shapes_.push_back(*leaf);
    if (shapes_.empty()) refuse("it has neither operands nor results");
    const Shape& first = shapes_[0];
    // num_batch_dims is a frontend attribute; the ranks say the same: a matrix comes first, or a
    // vector (gtsv).
    matrix_rank_ = call.attrs.custom_call_target.find("gtsv") != std::string::npos ? 1 : 2;
    batch_dims_ = static_cast<size_t>(std::max<int64_t>(0, first.rank() - matrix_rank_));
    for (size_t d = 0; d < batch_dims_; ++d) batch_ *= first.dims[d];
  }

  int64_t batch() const { return batch_; }
  size_t leaves_count() const { return shapes_.size(); }
  DType type() const { return shapes_[0].type; }
  /// Dimension `d` of one matrix of leaf `leaf`.
  int dim(size_t leaf, size_t d) const {
    int64_t n = shapes_.at(leaf).dims.at(batch_dims_ + d);
    if (n > std::numeric_limits<int>::max()) refuse("a dimension is larger than 2^31 - 1");
    return static_cast<int>(n);
  }
  bool empty() const { return shapes_[0].element_count() == 0; }
  /// Bytes from one matrix to the next.
  size_t stride(size_t leaf) const {
    const Shape& s = shapes_[leaf];
    int64_t n = 1;
    for (size_t d = batch_dims_; d < s.dims.size(); ++d) n *= s.dims[d];
    return static_cast<size_t>(n * dtype_bytes(s.type));
  }

  /// An attribute's number, `missing` if it is not there.
  int number(std::string_view name, int missing) const { return lapack_option(call_, name, missing); }
  char letter(std::string_view name, char missing) const { return static_cast<char>(number(name, missing)); }

  template <class F>
  F* function(std::string_view name) const {
    try {
      return lapack<F>(name, type());
    } catch (const Error& e) {
      refuse(e.diagnostics()[0].message);
    }
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::kUnsupported, call_.location,
                "custom call \"" + call_.attrs.custom_call_target + "\": " + why);
  }

  /// Column-major matrices (row-major vectors), batches behind.
  void check_layouts() const {
    for (const Shape& s : shapes_) {
      Ints order;
      auto rank = static_cast<int64_t>(s.dims.size()), batch = static_cast<int64_t>(batch_dims_);
      for (int64_t d = batch; d < rank; ++d) order.push_back(d);
      for (int64_t d = batch - 1; d >= 0; --d) order.push_back(d);
      if (s.layout.minor_to_major != order || s.layout.tiled()) {
        refuse("its arrays must be column-major with the batch outside, not " + s.to_string());
      }
    }
  }

 private:
  const Instruction& call_;
  std::vector<Shape> shapes_;
  size_t batch_dims_ = 0;
  int64_t matrix_rank_ = 2, batch_ = 1;
};

template <class T>
T* as(void* p) {
  return static_cast<T*>(p);
}

void take(void* to, const void* from, size_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

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

/// The room a first call with length -1 asks for.
template <class T>
int asked(const T& work) {
  return std::max(1, static_cast<int>(std::real(work)));
}

/// Calls f(work, length) to be told how much room it works best in, then with that room.
template <class T, class F>
void with_room(F f) {
  T best{};
  int length = -1;
  f(&best, &length);
  std::vector<T> work(static_cast<size_t>(length = asked(best)));
  f(work.data(), &length);
}

// ---- factorisations
// ------------------------------------------------------------------------------------

template <class T>
Matrices potrf(const Site& s) {
  using F = void(const char*, const int*, T*, const int*, int*);
  auto* f = s.dim(0, 0) <= kSmallFactor ? &small_potrf<T> : s.function<F>("potrf");
  return [f, n = s.dim(0, 0), uplo = s.letter("uplo", 'L'), bytes = s.stride(0)](void* const* p) {
    take(p[1], p[0], bytes);
    f(&uplo, &n, as<T>(p[1]), &n, as<int>(p[2]));
  };
}

template <class T>
Matrices getrf(const Site& s) {
  using F = void(const int*, const int*, T*, const int*, int*, int*);
  auto* f = std::max(s.dim(0, 0), s.dim(0, 1)) <= kSmallFactor ? &small_getrf<T> : s.function<F>("getrf");
  return [f, m = s.dim(0, 0), n = s.dim(0, 1), bytes = s.stride(0)](void* const* p) {
    take(p[1], p[0], bytes);
    f(&m, &n, as<T>(p[1]), &m, as<int>(p[2]), as<int>(p[3]));
  };
}

template <class T>
Matrices geqrf(const Site& s) {
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
Matrices geqp3(const Site& s) {
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
Matrices orgqr(const Site& s) {
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
Matrices ormqr(const Site& s) {
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
Matrices gehrd(const Site& s) {
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

// ---- systems
// -------------------------------------------------------------------------------------------

template <class T>
Matrices trsm(const Site& s) {
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
Matrices gtsv(const Site& s) {
  using F = void(const int*, const int*, T*, T*, T*, T*, const int*, int*);
  auto* f = s.function<F>("gtsv");
  const std::vector<size_t> bytes = {s.stride(0), s.stride(1), s.stride(2), s.stride(3)};
  return [=, n = s.dim(3, 0), columns = s.dim(3, 1)](void* const* p) {
    for (size_t k = 0; k < 4; ++k) take(p[4 + k], p[k], bytes[k]);
    f(&n, &columns, as<T>(p[4]) + 1, as<T>(p[5]), as<T>(p[6]), as<T>(p[7]), &n, as<int>(p[8]));
  };
}

// ---- spectra
// -------------------------------------------------------------------------------------------

// Matrices of which each has a lane, a vector of f32 or two.
constexpr int64_t kTogether = 16;
bool are_small(const Site& s) {
  return std::max(s.dim(0, 0), s.dim(0, 1)) <= kSmallSpectrum && s.batch() >= kFewestSpectra;
}

/// a -> (vectors, values, info)
template <class T>
Matrices syevd(const Site& s) {
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
Matrices sytrd(const Site& s) {
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
Matrices small_svd(const Site& s) {
  return {kTogether, [m = s.dim(0, 0), n = s.dim(0, 1), job = s.letter("mode", 'A'), bytes = s.stride(0),
                      f = small_spectra<T>().singular](void* const* p, int64_t count) {
            take(p[1], p[0], bytes * static_cast<size_t>(count));
            f(job, m, n, as<T>(p[1]), as<T>(p[2]), as<T>(p[3]), as<T>(p[4]), as<int>(p[5]), -4, count);
          }};
}

/// a -> (a overwritten, singular values, u, v transposed, info), by QR iterations
template <class T>
Matrices gesvd(const Site& s) {
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
Matrices gesdd(const Site& s) {
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
Matrices geev(const Site& s) {
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
Matrices gees(const Site& s) {
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

// ---- names
// ---------------------------------------------------------------------------------------------

struct Row {
  std::string_view name;
  size_t operands, results;  // leaves; results of a complex matrix may be one fewer
  // Nanoseconds for four bytes of the operands, as measured of 4x4 to 64x64: work grows as the square of the order
  // there. (Called ten for all of them, solving 77 systems of eight was handed out: 70 us with two threads, 28 with
  // one.)
  double word_ns;
  Matrices (*make[4])(const Site&);
};

#define HLOJIT_LAPACK(f) {&f<float>, &f<double>, &f<std::complex<float>>, &f<std::complex<double>>}
constexpr size_t kMostLeaves = 9;
constexpr Row kRows[] = {
    {"gees", 1, 6, 150, HLOJIT_LAPACK(gees)},  {"geev", 1, 5, 150, HLOJIT_LAPACK(geev)},
    {"gehrd", 1, 3, 20, HLOJIT_LAPACK(gehrd)}, {"geqp3", 2, 3, 12, HLOJIT_LAPACK(geqp3)},
    {"geqrf", 1, 2, 8, HLOJIT_LAPACK(geqrf)},  {"gesdd", 1, 5, 90, HLOJIT_LAPACK(gesdd)},
    {"gesvd", 1, 5, 90, HLOJIT_LAPACK(gesvd)}, {"getrf", 1, 3, 4, HLOJIT_LAPACK(getrf)},
    {"gtsv", 4, 5, 4, HLOJIT_LAPACK(gtsv)},    {"heevd", 1, 3, 50, HLOJIT_LAPACK(syevd)},
    {"hetrd", 1, 5, 15, HLOJIT_LAPACK(sytrd)}, {"orgqr", 2, 1, 6, HLOJIT_LAPACK(orgqr)},
    {"ormqr", 3, 1, 6, HLOJIT_LAPACK(ormqr)},  {"potrf", 1, 2, 0.3, HLOJIT_LAPACK(potrf)},
    {"syevd", 1, 3, 50, HLOJIT_LAPACK(syevd)}, {"sytrd", 1, 5, 15, HLOJIT_LAPACK(sytrd)},
    {"trsm", 2, 1, 0.3, HLOJIT_LAPACK(trsm)},  {"ungqr", 2, 1, 6, HLOJIT_LAPACK(orgqr)},
    {"unmqr", 3, 1, 6, HLOJIT_LAPACK(ormqr)},
};
#undef HLOJIT_LAPACK
static_assert(std::ranges::all_of(kRows, [](const Row& r) { return r.operands + r.results <= kMostLeaves; }));

/// nullptr for a function that is not served.
const Row* row_of(const Instruction& call) {
  const Row* row = std::ranges::find(kRows, lapack_function(call), &Row::name);
  return row == std::end(kRows) ? nullptr : row;
}

double cost_ns(const Row& row, const Site& site) {
  constexpr double kCallNs = 20;
  size_t bytes = 0;
  for (size_t leaf = 0; leaf < row.operands; ++leaf) bytes += site.stride(leaf);
  const double each = kCallNs + row.word_ns * static_cast<double>(bytes) / 4;
  return static_cast<double>(site.batch()) * each;
}

}  // namespace

double lapack_call_ns(const Instruction& call) {
  const Row* row = row_of(call);
  return row && call.operand_count() >= row->operands ? cost_ns(*row, Site(call)) : 0;
}

StepFunction lapack_call_step(const Instruction& call) {
  Site site(call);
  site.check_layouts();
  const size_t letter = std::string_view("sdcz").find(lapack_type(call));
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};
  const Row* row = row_of(call);
  if (!row || letter == std::string_view::npos) site.refuse("no such function is served");
  const bool split_values = row->name == "gees" || row->name == "geev";
  size_t expected = row->operands + row->results - (split_values && letter >= 2 ? 1 : 0);
  if (site.type() != kTypes[letter] || site.leaves_count() != expected) site.refuse("unexpected operands or results");
  std::vector<size_t> strides;
  for (size_t k = 0; k < site.leaves_count(); ++k) strides.push_back(site.stride(k));
  const int64_t batch = site.batch();
  if (site.empty()) {
    return [=](const StepCall& run) {  // results of nothing: zeros
      for (size_t k = row->operands; k < strides.size(); ++k) {
        std::memset(run.buffers[k], 0, strides[k] * static_cast<size_t>(batch));
      }
    };
  }
  Matrices matrices = row->make[letter](site);
  const double cost = cost_ns(*row, site);
  return [=, operands = row->operands](const StepCall& run) {
    for (size_t leaf = operands; leaf < strides.size(); ++leaf) {
      void* const* here = run.buffers + leaf;
      if (std::find(run.buffers, here, *here) == here)
        std::memset(*here, 0, strides[leaf] * static_cast<size_t>(batch));
    }
    const int64_t together = matrices.together;
    run_lapack(run.pool, ceil_div(batch, together), cost, [&](int64_t k) {
      void* p[kMostLeaves];
      for (size_t leaf = 0; leaf < strides.size(); ++leaf)
        p[leaf] = static_cast<char*>(run.buffers[leaf]) + strides[leaf] * static_cast<size_t>(k * together);
      matrices.call(p, std::min(together, batch - k * together));
    });
  };
}

}  // namespace hlojit

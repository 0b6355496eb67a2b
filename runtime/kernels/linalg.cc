// A row-major matrix is the transpose of the column-major one in the same memory, so a lower
// triangle of ours is an upper one of LAPACK's. With A = conj(A^T), factoring A^T = U^H U gives A =
// U^T conj(U): the memory of U, read by rows, is L. A system op(A) X = B becomes X^T op(A)^T = B^T:
// the other side, the other triangle, the same op.
#include "runtime/kernels/linalg.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>

#include "runtime/kernels/lapack.h"
#include "runtime/kernels/small_matrices.h"

namespace hlojit {
namespace {

// Right-hand sides are cut into pieces of this many: fixed, so that bits do not depend on the
// threads.
constexpr int64_t kSolvePiece = 128;

int to_int(int64_t n, const Instruction& i) {
  if (n > std::numeric_limits<int>::max()) {
    throw Error(ErrorKind::kUnsupported, i.location, "matrices of more than 2^31 - 1 rows");
  }
  return static_cast<int>(n);
}

/// Calls f(T{}) for the element type.
template <class F>
StepFunction with_matrix_type(const Instruction& i, DType type, F&& f) {
  switch (type) {
    case DType::kF32: return f(float{});
    case DType::kF64: return f(double{});
    case DType::kC64: return f(std::complex<float>{});
    case DType::kC128: return f(std::complex<double>{});
    default:
      throw Error(ErrorKind::kUnsupported, i.location,
                  std::string(op_name(i.opcode)) + " of " + std::string(dtype_name(type)) + " is not compiled yet");
  }
}

/// LAPACK's refusals get the instruction's location.
template <class F>
F* lapack_for(const Instruction& i, std::string_view name, DType type) {
  try {
    return lapack<F>(name, type);
  } catch (const Error& e) {
    throw Error(e.kind(), i.location, e.diagnostics()[0].message);
  }
}

/// The triangle that is not the result's becomes 0.
template <class T>
void clear_other_triangle(T* a, int64_t n, bool lower) {
  for (int64_t i = 0; i < n; ++i) {
    if (lower) {
      std::fill(a + i * n + i + 1, a + (i + 1) * n, T{});
    } else {
      std::fill(a + i * n, a + i * n + i, T{});
    }
  }
}

template <class T>
StepFunction cholesky_of(const Instruction& i) {
  using Factor = void(const char* uplo, const int* n, T* a, const int* lda, int* info);
  const int n = to_int(i.shape.dims.back(), i);
  auto* factor = n <= kSmallFactor ? &small_potrf<T> : lapack_for<Factor>(i, "potrf", i.shape.type);
  const int64_t size = int64_t{n} * n, count = size == 0 ? 0 : i.shape.element_count() / size;
  const bool lower = i.attrs.lower;
  const double cost = cholesky_ns(i);
  return [=](const StepCall& call) {
    const T* in = static_cast<const T*>(call.buffers[0]);
    T* out = static_cast<T*>(call.buffers[1]);
    run_lapack(call.pool, count, cost, [&](int64_t k) {
      T* a = out + k * size;
      std::memcpy(a, in + k * size, static_cast<size_t>(size) * sizeof(T));
      int info = 0;
      factor(lower ? "U" : "L", &n, a, &n, &info);
      if (info != 0) {
        std::fill(a, a + size, T(std::numeric_limits<double>::quiet_NaN()));
      } else {
        clear_other_triangle(a, n, lower);
      }
    });
  };
}

template <class T>
StepFunction solve_of(const Instruction& i) {
  using Solve = void(const char* side, const char* uplo, const char* op, const char* unit, const int* m, const int* n,
                     const T* alpha, const T* a, const int* lda, T* b, const int* ldb);
  const Attributes& attrs = i.attrs;
  const int order = to_int(i.operand(0)->shape.dims.back(), i);
  const int rows = to_int(i.shape.dims[i.shape.dims.size() - 2], i), columns = to_int(i.shape.dims.back(), i);
  auto* solve = std::max(rows, columns) <= kSmallSystem ? &small_trsm<T> : lapack_for<Solve>(i, "trsm", i.shape.type);
  const bool left = attrs.left_side;
  const char* uplo = attrs.lower ? "U" : "L";
  const char* unit = attrs.unit_diagonal ? "U" : "N";
  const char* op = attrs.transpose_a == TransposeA::kNone        ? "N"
                   : attrs.transpose_a == TransposeA::kTranspose ? "T"
                                                                 : "C";
  const int64_t size = int64_t{rows} * columns, count = size == 0 ? 0 : i.shape.element_count() / size;
  const int64_t sides = left ? columns : rows, pieces = (sides + kSolvePiece - 1) / kSolvePiece;
  const double cost = triangular_solve_ns(i);
  return [=](const StepCall& call) {
    const T* a = static_cast<const T*>(call.buffers[0]);
    const char* b = static_cast<const char*>(call.buffers[1]);
    T* x = static_cast<T*>(call.buffers[2]);
    std::memcpy(x, b, static_cast<size_t>(count * size) * sizeof(T));
    run_lapack(call.pool, count * pieces, cost, [&](int64_t c) {
      const int64_t matrix = c / pieces, begin = c % pieces * kSolvePiece;
      const int width = static_cast<int>(std::min(kSolvePiece, sides - begin));
      T* part = x + matrix * size + begin * (left ? 1 : columns);
      const int m = left ? width : columns, n = left ? rows : width;
      const T one(1);
      solve(left ? "R" : "L", uplo, op, unit, &m, &n, &one, a + matrix * order * order, &order, part, &columns);
    });
  };
}

}  // namespace

double cholesky_ns(const Instruction& i) {
  // As measured of 4 to 64 rows: 20 ns to 0.6 us.
  const double n = static_cast<double>(i.shape.dims.back()), elements = static_cast<double>(i.shape.element_count());
  return elements == 0 ? 0 : elements / (n * n) * (20 + n * n * n / 200);
}

double triangular_solve_ns(const Instruction& i) {
  constexpr double kProductsInNs = 8;
  return static_cast<double>(i.shape.element_count()) * static_cast<double>(i.operand(0)->shape.dims.back()) /
         kProductsInNs;
}

StepFunction cholesky_step(const Instruction& i) {
  return with_matrix_type(i, i.shape.type, [&](auto t) { return cholesky_of<decltype(t)>(i); });
}

StepFunction triangular_solve_step(const Instruction& i) {
  return with_matrix_type(i, i.shape.type, [&](auto t) { return solve_of<decltype(t)>(i); });
}

}  // namespace hlojit

// cholesky and triangular-solve, row by row, in f64 or complex f64.
#include <cmath>
#include <complex>
#include <limits>

#include "compiler/eval/ops.h"
#include "compiler/eval/stop.h"

namespace hlojit::eval {
namespace {

double conjugate(double x) { return x; }
std::complex<double> conjugate(std::complex<double> x) { return std::conj(x); }
double real_part(double x) { return x; }
double real_part(std::complex<double> x) { return x.real(); }

template <class T>
DType wide_type() {
  return std::is_same_v<T, double> ? DType::kF64 : DType::kC128;
}

template <class T>
std::vector<T> widened(const Literal& literal) {
  std::vector<T> values(literal.shape().element_count());
  convert(literal.shape().type, wide_type<T>(), literal.shape().element_count(), literal.bytes().data(), values.data());
  return values;
}

template <class T>
Literal rounded(const Shape& shape, const std::vector<T>& values) {
  Literal result(shape);
  convert(wide_type<T>(), shape.type, shape.element_count(), values.data(), result.bytes().data());
  return result;
}

// One matrix in place: only the named triangle is read; the other one of the result is 0. A matrix
// that is not positive definite becomes NaN as a whole.
template <class T>
void factor(T* a, int64_t n, bool lower) {
  std::vector<T> l(n * n);
  for (int64_t i = 0; i < n; ++i) {
    check_stop();
    for (int64_t j = 0; j <= i; ++j) {
      T sum = lower ? a[i * n + j] : conjugate(a[j * n + i]);
      if (i == j) sum = real_part(sum);
      for (int64_t k = 0; k < j; ++k) sum -= l[i * n + k] * conjugate(l[j * n + k]);
      if (i != j) {
        l[i * n + j] = sum / l[j * n + j];
        continue;
      }
      if (!(real_part(sum) > 0)) {
        for (int64_t e = 0; e < n * n; ++e) a[e] = std::numeric_limits<double>::quiet_NaN();
        return;
      }
      l[i * n + i] = std::sqrt(real_part(sum));
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      a[i * n + j] = lower ? l[i * n + j] : conjugate(l[j * n + i]);
    }
  }
}

template <class T>
Literal cholesky_in(const Instruction& op, Operands in) {
  std::vector<T> values = widened<T>(*in[0]);
  const int64_t n = op.shape.dims.back();
  for (size_t at = 0; at < values.size(); at += n * n) factor(values.data() + at, n, op.attrs.lower);
  return rounded(op.shape, values);
}

template <class T>
Literal solve_in(const Instruction& op, Operands in) {
  const std::vector<T> a = widened<T>(*in[0]);
  std::vector<T> b = widened<T>(*in[1]);
  const Attributes& attrs = op.attrs;
  const int64_t m = in[0]->shape().dims.back();
  const int64_t rows = op.shape.dims[op.shape.rank() - 2], columns = op.shape.dims.back();
  const int64_t others = attrs.left_side ? columns : rows;
  // op(a)[i][j] of the matrix at `base`. x . op(a) = b is solved as op(a)^T x^T = b^T.
  const bool flip = (attrs.transpose_a != TransposeA::kNone) == attrs.left_side;
  const bool lower = attrs.lower != flip;
  auto coefficient = [&](int64_t base, int64_t i, int64_t j) {
    const T value = a[base + (flip ? j * m + i : i * m + j)];
    return attrs.transpose_a == TransposeA::kAdjoint ? conjugate(value) : value;
  };
  const int64_t step = attrs.left_side ? columns : 1, across = attrs.left_side ? 1 : columns;
  for (int64_t base_a = 0, base_b = 0; base_b < static_cast<int64_t>(b.size());
       base_a += m * m, base_b += rows * columns) {
    for (int64_t other = 0; other < others; ++other) {
      check_stop();
      T* x = b.data() + base_b + other * across;
      for (int64_t done = 0; done < m; ++done) {
        const int64_t i = lower ? done : m - 1 - done;
        T sum = x[i * step];
        for (int64_t before = 0; before < done; ++before) {
          const int64_t j = lower ? before : m - 1 - before;
          sum -= coefficient(base_a, i, j) * x[j * step];
        }
        x[i * step] = attrs.unit_diagonal ? sum : sum / coefficient(base_a, i, i);
      }
    }
  }
  return rounded(op.shape, b);
}

Literal cholesky(const Instruction& op, Operands in) {
  if (op.shape.element_count() == 0) return Literal(op.shape);
  return is_complex(op.shape.type) ? cholesky_in<std::complex<double>>(op, in) : cholesky_in<double>(op, in);
}

Literal triangular_solve(const Instruction& op, Operands in) {
  if (op.shape.element_count() == 0) return Literal(op.shape);
  return is_complex(op.shape.type) ? solve_in<std::complex<double>>(op, in) : solve_in<double>(op, in);
}

constexpr Row kOps[] = {
    {Opcode::kCholesky, [](const Call& c) { return cholesky(c.op, c.in); }},
    {Opcode::kTriangularSolve, [](const Call& c) { return triangular_solve(c.op, c.in); }},
};

}  // namespace

std::span<const Row> linalg_ops() { return kOps; }

}  // namespace hlojit::eval

// Custom calls of linear algebra, LAPACK's and XLA's own, by the textbook: a matrix at a time, in complex f64 whatever
// the type is. Signs and pivots are LAPACK's, so that results can be compared element by element; eigenvectors are
// theirs but for a factor of size one.
#include "compiler/eval/factors.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "compiler/eval/ops.h"
#include "compiler/eval/stop.h"
#include "compiler/eval/strided.h"
#include "compiler/ir/lapack_call.h"

namespace hlojit::eval {
namespace {

using Z = std::complex<double>;

// A leaf's part of one call of a batch: a matrix, a vector as one column, or a number.
class Matrix {
 public:
  Matrix() = default;
  Matrix(int64_t rows, int64_t columns) : rows_(rows), columns_(columns), values_(rows * columns) {}
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  /// Calls are not verified: an element that is not there is the module's failure.
  Z& operator()(int64_t i, int64_t j = 0) { return values_[at(i, j)]; }
  const Z& operator()(int64_t i, int64_t j = 0) const { return values_[at(i, j)]; }
  void swap_rows(int64_t i, int64_t k) {
    for (int64_t j = 0; i != k && j < columns_; ++j) std::swap((*this)(i, j), (*this)(k, j));
  }

 private:
  int64_t at(int64_t i, int64_t j) const {
    if (i >= rows_ || j >= columns_) throw Error(ErrorKind::kInput, "the arrays of a custom call do not fit together");
    return i * columns_ + j;
  }
  int64_t rows_ = 0, columns_ = 0;
  std::vector<Z> values_;
};

using In = std::span<const Matrix>;
using Out = std::span<Matrix>;

Matrix identity(int64_t n) {
  Matrix one(n, n);
  for (int64_t i = 0; i < n; ++i) one(i, i) = 1;
  return one;
}

// The triangle that is read of a Hermitian matrix, as the lower one; diagonals are real.
Matrix lower_triangle(const Matrix& a, bool lower) {
  Matrix l(a.rows(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < i; ++j) l(i, j) = lower ? a(i, j) : std::conj(a(j, i));
    l(i, i) = a(i, i).real();
  }
  return l;
}

// a -> (factor in its triangle, info)
void potrf(const Instruction& op, In in, Out out) {
  const bool lower = lapack_option(op, "uplo", 'L') == 'L';
  const int64_t n = in[0].rows();
  out[0] = in[0];
  Matrix l = lower_triangle(in[0], lower);
  for (int64_t j = 0; j < n; ++j) {
    check_stop();
    for (int64_t k = 0; k < j; ++k) l(j, j) -= std::norm(l(j, k));
    if (!(l(j, j).real() > 0)) {
      out[1](0) = static_cast<double>(j + 1);
      return;
    }
    l(j, j) = std::sqrt(l(j, j).real());
    for (int64_t i = j + 1; i < n; ++i) {
      for (int64_t k = 0; k < j; ++k) l(i, j) -= l(i, k) * std::conj(l(j, k));
      l(i, j) /= l(j, j);
    }
    for (int64_t i = j; i < n; ++i) (lower ? out[0](i, j) : out[0](j, i)) = lower ? l(i, j) : std::conj(l(i, j));
  }
}

// As LAPACK measures pivots.
double size_of(Z x) { return std::fabs(x.real()) + std::fabs(x.imag()); }

// The row at or below k that is largest in column k.
int64_t pivot_row(const Matrix& a, int64_t k) {
  int64_t best = k;
  for (int64_t i = k + 1; i < a.rows(); ++i) {
    if (size_of(a(i, k)) > size_of(a(best, k))) best = i;
  }
  return best;
}

// a -> (l and u, pivots from 1, info)
void getrf(const Instruction&, In in, Out out) {
  Matrix& a = out[0] = in[0];
  for (int64_t k = 0; k < std::min(a.rows(), a.columns()); ++k) {
    check_stop();
    const int64_t pivot = pivot_row(a, k);
    out[1](k) = static_cast<double>(pivot + 1);
    if (a(pivot, k) == 0.0) {
      if (out[2](0) == 0.0) out[2](0) = static_cast<double>(k + 1);
      continue;
    }
    a.swap_rows(k, pivot);
    for (int64_t i = k + 1; i < a.rows(); ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < a.columns(); ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
}

// c := (1 - tau v v^H) c, from its column `first` on; v is below the diagonal of a's column k, and 1 on it.
void reflect(const Matrix& a, int64_t k, Z tau, Matrix& c, int64_t first = 0) {
  check_stop();
  for (int64_t j = first; j < c.columns(); ++j) {
    Z sum = c(k, j);
    for (int64_t i = k + 1; i < a.rows(); ++i) sum += std::conj(a(i, k)) * c(i, j);
    c(k, j) -= tau * sum;
    for (int64_t i = k + 1; i < a.rows(); ++i) c(i, j) -= tau * a(i, k) * sum;
  }
}

// a -> (r, and below it reflectors; their factors)
void geqrf(const Instruction&, In in, Out out) {
  Matrix& a = out[0] = in[0];
  for (int64_t k = 0; k < std::min(a.rows(), a.columns()); ++k) {
    double below = 0;
    for (int64_t i = k + 1; i < a.rows(); ++i) below += std::norm(a(i, k));
    const Z alpha = a(k, k);
    if (below == 0 && alpha.imag() == 0) continue;  // nothing to reflect
    const double beta = -std::copysign(std::sqrt(std::norm(alpha) + below), alpha.real());
    const Z tau = out[1](k) = (beta - alpha) / beta;
    for (int64_t i = k + 1; i < a.rows(); ++i) a(i, k) /= alpha - beta;
    a(k, k) = beta;
    reflect(a, k, std::conj(tau), a, k + 1);
  }
}

Matrix adjoint(const Matrix& a) {
  Matrix t(a.columns(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.columns(); ++j) t(j, i) = std::conj(a(i, j));
  }
  return t;
}

// q c, or q^H c, of the product q of a's reflectors.
void apply_reflectors(const Matrix& a, const Matrix& taus, bool inverse, Matrix& c) {
  const int64_t count = taus.rows();
  for (int64_t n = 0; n < count; ++n) {
    const int64_t k = inverse ? n : count - 1 - n;
    reflect(a, k, inverse ? std::conj(taus(k)) : taus(k), c);
  }
}

// (reflectors, their factors) -> the first columns of q
void orgqr(const Instruction&, In in, Out out) {
  for (int64_t i = 0; i < out[0].columns(); ++i) out[0](i, i) = 1;
  apply_reflectors(in[0], in[1], false, out[0]);
}

// (reflectors, their factors, c) -> q c, c q, or with the inverse of q. c q = (q^H c^H)^H.
void ormqr(const Instruction& op, In in, Out out) {
  const bool left = lapack_option(op, "left", 1) != 0, inverse = lapack_option(op, "transpose", 0) != 0;
  out[0] = left ? in[2] : adjoint(in[2]);
  apply_reflectors(in[0], in[1], inverse == left, out[0]);
  if (!left) out[0] = adjoint(out[0]);
}

// op(a) x = b, or x op(a) = b, which is op(a)^T x^T = b^T.
void trsm(const Instruction& op, In in, Out out) {
  const bool left = lapack_option(op, "side", 'L') == 'L', unit = lapack_option(op, "diag", 'N') == 'U';
  const int form = lapack_option(op, "trans_x", 'N');
  const bool flip = (form != 'N') == left, lower = (lapack_option(op, "uplo", 'L') == 'L') != flip;
  const Matrix& a = in[0];
  auto coefficient = [&](int64_t i, int64_t j) {
    const Z value = flip ? a(j, i) : a(i, j);
    return form == 'C' ? std::conj(value) : value;
  };
  out[0] = in[1];
  const int64_t n = a.rows(), others = left ? out[0].columns() : out[0].rows();
  for (int64_t other = 0; other < others; ++other) {
    check_stop();
    auto x = [&](int64_t i) -> Z& { return left ? out[0](i, other) : out[0](other, i); };
    for (int64_t done = 0; done < n; ++done) {
      const int64_t i = lower ? done : n - 1 - done;
      for (int64_t before = 0; before < done; ++before) {
        const int64_t j = lower ? before : n - 1 - before;
        x(i) -= coefficient(i, j) * x(j);
      }
      if (!unit) x(i) /= coefficient(i, i);
    }
  }
}

// (lower, diagonal, upper, b) -> (three that mean nothing, x, info)
void gtsv(const Instruction&, In in, Out out) {
  const int64_t n = in[3].rows();
  Matrix a(n, n), x = in[3];
  for (int64_t i = 0; i < n; ++i) {
    a(i, i) = in[1](i);
    if (i > 0) a(i, i - 1) = in[0](i);
    if (i + 1 < n) a(i, i + 1) = in[2](i);
  }
  for (int64_t k = 0; k < n; ++k) {
    check_stop();
    const int64_t pivot = pivot_row(a, k);
    if (a(pivot, k) == 0.0) {
      out[4](0) = static_cast<double>(k + 1);
      return;
    }
    a.swap_rows(k, pivot), x.swap_rows(k, pivot);
    for (int64_t i = k + 1; i < std::min(n, k + 2); ++i) {
      const Z factor = a(i, k) / a(k, k);
      for (int64_t j = k; j < std::min(n, k + 3); ++j) a(i, j) -= factor * a(k, j);
      for (int64_t j = 0; j < x.columns(); ++j) x(i, j) -= factor * x(k, j);
    }
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t j = 0; j < x.columns(); ++j) {
      for (int64_t k = i + 1; k < std::min(n, i + 3); ++k) x(i, j) -= a(i, k) * x(k, j);
      x(i, j) /= a(i, i);
    }
  }
  out[3] = x;
}

// Makes element (p, q) of the Hermitian matrix `a` zero by a change of basis, which `v` goes along with: column q by a
// phase, so that the element is real, then Jacobi's rotation.
void annihilate(Matrix& a, Matrix& v, int64_t p, int64_t q) {
  const double size = std::abs(a(p, q));
  if (size == 0) return;
  const Z phase = std::conj(a(p, q)) / size;
  const double tau = (a(q, q).real() - a(p, p).real()) / (2 * size);
  const double t = std::copysign(1 / (std::fabs(tau) + std::hypot(1, tau)), tau), c = 1 / std::hypot(1, t), s = t * c;
  auto turn = [&](Z& x, Z& y, Z by) {
    y *= by;
    const Z old = x;
    x = c * x - s * y;
    y = s * old + c * y;
  };
  for (int64_t i = 0; i < a.rows(); ++i) turn(a(i, p), a(i, q), phase), turn(v(i, p), v(i, q), phase);
  for (int64_t i = 0; i < a.rows(); ++i) turn(a(p, i), a(q, i), std::conj(phase));
  a(p, q) = a(q, p) = 0;
}

// Eigenvectors and -values in ascending order; false, and NaN, if the matrix has elements that are no numbers.
bool spectrum(const Matrix& of, bool lower, Matrix& vectors, Matrix& values) {
  const int64_t n = of.rows();
  Matrix a = lower_triangle(of, lower), v = identity(n);
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) a(j, i) = std::conj(a(i, j)), total += std::norm(a(i, j));
  }
  constexpr int kMostSweeps = 40;  // some eight are usual
  double rest = total;
  for (int sweep = 0; sweep < kMostSweeps && rest > 1e-34 * total && std::isfinite(total); ++sweep) {
    rest = 0;
    for (int64_t p = 0; p < n; ++p) {
      check_stop();
      for (int64_t q = p + 1; q < n; ++q) rest += std::norm(a(p, q)), annihilate(a, v, p, q);
    }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int64_t i) { return a(i, i).real(); });
  const double nan = std::isfinite(total) ? 0 : std::numeric_limits<double>::quiet_NaN();
  for (int64_t k = 0; k < n; ++k) {
    values(k) = a(order[k], order[k]).real() + nan;
    for (int64_t i = 0; i < n; ++i) vectors(i, k) = v(i, order[k]) + nan;
  }
  return std::isfinite(total);
}

// a -> (vectors, values, info)
void syevd(const Instruction& op, In in, Out out) {
  if (!spectrum(in[0], lapack_option(op, "uplo", 'L') == 'L', out[0], out[1])) out[2](0) = 1;
}

void eigh(const Instruction& op, In in, Out out) {
  spectrum(in[0], !op.attrs.backend_config.starts_with("\"0"), out[0], out[1]);
}

struct Function {
  std::string_view name;
  size_t operands, results, rank;  ///< of leaves; the first one's without its batch
  void (*meaning)(const Instruction&, In, Out);
};

constexpr Function kLapack[] = {
    {"geqrf", 1, 2, 2, geqrf}, {"getrf", 1, 3, 2, getrf}, {"gtsv", 4, 5, 1, gtsv},   {"heevd", 1, 3, 2, syevd},
    {"orgqr", 2, 1, 2, orgqr}, {"ormqr", 3, 1, 2, ormqr}, {"potrf", 1, 2, 2, potrf}, {"syevd", 1, 3, 2, syevd},
    {"trsm", 2, 1, 2, trsm},   {"ungqr", 2, 1, 2, orgqr}, {"unmqr", 3, 1, 2, ormqr},
};
constexpr Function kXla[] = {
    {"Eigh", 1, 2, 2, eigh},
    {"ProductOfElementaryHouseholderReflectors", 2, 1, 2, orgqr},
    {"Qr", 1, 2, 2, geqrf},
};

const Function* row_of(const Instruction& call) {
  const bool lapack = is_lapack_call(call);
  const std::span<const Function> rows = lapack ? std::span<const Function>(kLapack) : kXla;
  auto row = std::ranges::find(rows, lapack ? lapack_function(call) : call.attrs.custom_call_target, &Function::name);
  return row == rows.end() ? nullptr : &*row;
}

// A leaf's element in complex f64, and back; counts and pivots are integers.
Z element(const Literal& l, int64_t i) { return is_complex(l.shape().type) ? l.as_complex(i) : l.as_double(i); }
void set_element(Literal& l, int64_t i, Z value) {
  if (is_complex(l.shape().type))
    l.set_complex(i, value);
  else if (is_float(l.shape().type))
    l.set_double(i, value.real());
  else
    l.set_int(i, static_cast<int64_t>(value.real()));
}

// One call's part of a leaf, without its values.
Matrix part_of(const Shape& leaf, const Ints& batch) {
  const auto first = leaf.dims.begin();
  const auto rank = leaf.dims.size() - std::min(batch.size(), leaf.dims.size());
  if (rank > 2 || !std::equal(batch.begin(), batch.end(), first, leaf.dims.end() - static_cast<int64_t>(rank))) {
    throw Error(ErrorKind::kInput, "the arrays of a custom call do not fit together");
  }
  const auto own = leaf.dims.end() - static_cast<int64_t>(rank);
  return Matrix(rank > 0 ? own[0] : 1, rank > 1 ? own[1] : 1);
}

}  // namespace

bool is_factor_call(const Instruction& call) {
  const Function* row = call.is(Opcode::kCustomCall) ? row_of(call) : nullptr;
  return row && call.operand_count() == row->operands && leaves(call.shape).size() == row->results &&
         call.operand(0)->shape.is_array() && static_cast<size_t>(call.operand(0)->shape.rank()) >= row->rank;
}

bool is_spectrum_call(const Instruction& call) {
  const Function* row = is_factor_call(call) ? row_of(call) : nullptr;
  return row && (row->meaning == syevd || row->meaning == eigh);
}

Literal factors(const Instruction& call, std::span<const Literal* const> operands) {
  const Function& row = *row_of(call);
  const Ints& dims = operands[0]->shape().dims;
  const Ints batch(dims.begin(), dims.end() - static_cast<int64_t>(row.rank));
  std::vector<Literal> results;
  for (const Shape* leaf : leaves(call.shape)) results.emplace_back(*leaf);
  for (int64_t b = 0; b < product(batch); ++b) {
    std::vector<Matrix> in, out;
    for (const Literal* x : operands) {
      Matrix& part = in.emplace_back(part_of(x->shape(), batch));
      const int64_t first = b * part.rows() * part.columns();
      for (int64_t i = 0; i < part.rows() * part.columns(); ++i)
        part(i / part.columns(), i % part.columns()) = element(*x, first + i);
    }
    for (const Literal& r : results) out.push_back(part_of(r.shape(), batch));
    row.meaning(call, in, out);
    for (size_t k = 0; k < out.size(); ++k) {
      const int64_t columns = out[k].columns(), first = b * out[k].rows() * columns;
      for (int64_t i = 0; i < out[k].rows() * columns; ++i)
        set_element(results[k], first + i, out[k](i / columns, i % columns));
    }
  }
  return call.shape.is_tuple() ? Literal::tuple(std::move(results)) : std::move(results[0]);
}

}  // namespace hlojit::eval

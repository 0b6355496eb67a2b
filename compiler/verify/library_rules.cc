// Factorisations, fft, batch normalisation, random numbers.
#include <algorithm>

#include "compiler/verify/rules.h"

namespace hlojit::rules {
namespace {

// The operand is a batch of square matrices of floats or complex numbers.
const Shape& need_matrices(const Use& use, size_t i) {
  need_type(use, i, kFloat | kComplex);
  const Shape& a = use.operand(i);
  need(a.rank() >= 2, "operand-kind", "operand {} of {} must have rank 2 or more, not {}", i, op_name(use.opcode), a);
  int64_t n = a.dims[a.rank() - 1], m = a.dims[a.rank() - 2];
  need(n == m, "square-matrix", "the matrices of operand {} of {} must be square, not {} by {}", i, op_name(use.opcode),
       m, n);
  return a;
}

Shape fft(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  const Ints& lengths = use.attrs.fft_length;
  size_t n = lengths.size();
  need(n >= 1 && n <= 3, "fft-length", "fft_length has {} entries, not 1, 2 or 3", n);
  need(static_cast<size_t>(x.rank()) >= n, "fft-length", "fft_length {} needs rank {} or more, not {}", list(lengths),
       n, x);
  bool to_complex = use.attrs.fft_type == FftType::kRfft;
  bool to_real = use.attrs.fft_type == FftType::kIrfft;
  bool real = x.type == DType::kF32 || x.type == DType::kF64;
  need(to_complex ? real : is_complex(x.type), "operand-type", "this fft takes {}, not {}",
       to_complex ? "f32 or f64" : "c64 or c128", dtype_name(x.type));
  std::vector<int64_t> dims = x.dims;
  for (size_t i = 0; i < n; ++i) {
    size_t d = dims.size() - n + i;
    need(lengths[i] >= 0, "fft-length", "fft_length {} is negative", lengths[i]);
    bool halved = i + 1 == n && (to_complex || to_real);
    int64_t half = lengths[i] == 0 ? 0 : lengths[i] / 2 + 1;
    int64_t want = halved && to_real ? half : lengths[i];
    need(dims[d] == want, "fft-length", "fft_length {} asks for size {} in dimension {}, which has {}", list(lengths),
         want, d, dims[d]);
    if (halved) dims[d] = to_real ? lengths[i] : half;
  }
  DType type = to_complex ? complex_of(x.type) : to_real ? component_type(x.type) : x.type;
  return Shape::array(type, std::move(dims));
}

Shape cholesky(const Use& use) {
  need_count(use, 1);
  return need_matrices(use, 0);
}

Shape triangular_solve(const Use& use) {
  need_count(use, 2);
  const Shape& a = need_matrices(use, 0);
  const Shape& b = array(use, 1);
  need_same_type(use, 0, 1);
  bool fits = a.rank() == b.rank();
  for (int64_t d = 0; fits && d + 2 < a.rank(); ++d) fits = a.dims[d] == b.dims[d];
  need(fits, "triangular-solve-sizes", "matrix {} and right-hand side {} differ in their batch dimensions", a, b);
  int64_t n = a.dims.back(), side = b.dims[b.rank() - (use.attrs.left_side ? 2 : 1)];
  need(n == side, "triangular-solve-sizes", "a matrix of size {} cannot solve for a side of size {} in {}", n, side, b);
  return b;
}

Shape batch_norm(const Use& use) {
  bool training = use.opcode == Opcode::kBatchNormTraining;
  bool grad = use.opcode == Opcode::kBatchNormGrad;
  need_count(use, training ? 3 : 5);
  need_type(use, 0, kFloat);
  const Shape& x = use.operand(0);
  const int64_t feature = use.attrs.feature_index;
  need(feature >= 0 && feature < x.rank(), "dimension-range", "feature_index names dimension {} of an array of rank {}",
       feature, x.rank());
  const Shape vector = Shape::array(x.type, {x.dims[feature]});
  for (size_t i = 1; i < use.operands.size(); ++i) {
    bool full = grad && i == 4;  // the gradient of the output
    need_same_type(use, 0, i);
    const Shape& v = use.operand(i);
    need(v.dims == (full ? x.dims : vector.dims), "batch-norm-sizes", "operand {} of {} must be {}, not {}", i,
         op_name(use.opcode), full ? x : vector, v);
  }
  if (use.opcode == Opcode::kBatchNormInference) return x;
  return Shape::tuple({x, vector, vector});
}

Shape rng(const Use& use) {
  need_count(use, 2);
  scalar(use, 0);
  scalar(use, 1);
  need_same_type(use, 0, 1);
  bool normal = use.attrs.distribution == Distribution::kNormal;
  need_type(use, 0, normal ? kFloat : kPred | kInt | kFloat);
  if (!use.declared) return undetermined();
  const Shape& result = declared_array(use);
  need(result.type == use.operand(0).type, "result-type", "rng between {} values is declared {}",
       dtype_name(use.operand(0).type), result);
  return result;
}

Shape rng_bit_generator(const Use& use) {
  need_count(use, 1);
  const Shape& state = array(use, 0);
  bool threefry = use.attrs.algorithm == RandomAlgorithm::kThreeFry;
  bool fits =
      state.type == DType::kU64 && state.rank() == 1 && (state.dims[0] == 2 || (state.dims[0] == 3 && !threefry));
  need(fits, "rng-state", "the state must be {}, not {}", threefry ? "u64[2]" : "u64[2] or u64[3]", state);
  if (!use.declared) return undetermined();
  const Shape& result = *use.declared;
  const Shape* data = &result;
  if (result.is_tuple()) {
    need(result.elements.size() == 2 && compatible(result.elements[0], state), "result-shape",
         "rng-bit-generator gives the new state {} and the data, not {}", state, result);
    data = &result.elements[1];
  }
  need(data->is_array(), "result-shape", "the data of rng-bit-generator must be an array, not {}", *data);
  need((class_bit(data->type) & (kInt | kFloat)) && dtype_bits(data->type) >= 8, "result-type",
       "rng-bit-generator does not give {}", dtype_name(data->type));
  return result;
}

Shape rng_state(const Use& use) {
  need_count(use, 0);
  return Shape::array(DType::kU64, {2});
}

constexpr Entry kOps[] = {
    {Opcode::kBatchNormGrad, batch_norm, "epsilon! feature_index!"},
    {Opcode::kBatchNormInference, batch_norm, "epsilon! feature_index!"},
    {Opcode::kBatchNormTraining, batch_norm, "epsilon! feature_index!"},
    {Opcode::kCholesky, cholesky, "lower"},
    {Opcode::kFft, fft, "fft_type! fft_length!"},
    {Opcode::kRng, rng, "distribution!", ResultShape::kDeclare},
    {Opcode::kRngBitGenerator, rng_bit_generator, "algorithm:rng!", ResultShape::kDeclare},
    {Opcode::kRngGetAndUpdateState, rng_state, "delta!", ResultShape::kDeclare},
    {Opcode::kTriangularSolve, triangular_solve, "left_side lower unit_diagonal transpose_a!"},
};

}  // namespace

std::span<const Entry> library_rules() { return kOps; }

}  // namespace hlojit::rules

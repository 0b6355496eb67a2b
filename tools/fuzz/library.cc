// Ops that stand for whole algorithms: batch norms, random bits, transforms, factorisations.
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* batch_norm(Draft& s) {
  Instruction* x = s.any([](const Shape& v) {
    return is_float(v.type) && dtype_bits(v.type) >= 16 && v.rank() >= 1 && v.element_count() > 0;
  });
  if (!x) return nullptr;
  DType t = x->shape.type;
  Attributes a;
  a.feature_index = s.random.below(x->shape.rank());
  a.epsilon = 0.5;
  Ints c = {x->shape.dims[static_cast<size_t>(a.feature_index)]};
  auto positive = [&](Instruction* v) { return s.b.unary(kAbs, v); };
  Instruction* scale = s.of(t, c);
  x = s.limited(x, 4);
  switch (s.random.below(3)) {
    case 0: return s.b.op(kBatchNormTraining, {x, scale, s.of(t, c)}, a);
    case 1: return s.b.op(kBatchNormInference, {x, scale, s.of(t, c), s.of(t, c), positive(s.of(t, c))}, a);
    default: return s.b.op(kBatchNormGrad, {x, scale, s.of(t, c), positive(s.of(t, c)), s.of(x->shape)}, a);
  }
}

Instruction* random_bits(Draft& s) {
  using enum DType;
  Attributes a;
  bool philox = s.random.chance(0.5);
  a.algorithm = !philox                ? RandomAlgorithm::kThreeFry
                : s.random.chance(0.3) ? RandomAlgorithm::kDefault
                                       : RandomAlgorithm::kPhilox;
  Instruction* state = s.of(kU64, {philox && s.random.chance(0.5) ? 3 : 2});
  DType t = s.random.pick(std::vector{kU32, kU32, kU64, kU8, kU16, kS32, kS64, kF32, kF16});
  Shape data = Shape::array(t, s.shape(0, 3));
  Shape shape = s.random.chance(0.2) ? data : Shape::tuple({state->shape, data});
  return s.b.op(kRngBitGenerator, shape, {state}, std::move(a));
}

// Other values at each run: what is seen of them is what holds of all.
Instruction* random_numbers(Draft& s) {
  DType t = s.type();
  if (is_complex(t) || is_pred(t) || dtype_bits(t) < 16) return nullptr;
  Attributes a;
  bool normal = is_float(t) && s.random.chance(0.4);
  a.distribution = normal ? Distribution::kNormal : Distribution::kUniform;
  Instruction *low = s.b.constant(t, is_signed(t) ? -2 : 1), *high = s.b.constant(t, 5);
  Ints sizes = s.shape(0, 3);
  Instruction* x = s.b.op(kRng, Shape::array(t, sizes), {low, high}, std::move(a));
  if (normal) return s.b.unary(kIsFinite, x);
  auto bound = [&](Instruction* scalar) { return sizes.empty() ? scalar : s.b.broadcast(scalar, sizes); };
  Instruction* above = s.b.compare(Direction::kGe, x, bound(low));
  return s.b.op(kAnd, {above, s.b.compare(is_float(t) ? Direction::kLe : Direction::kLt, x, bound(high))});
}

Instruction* fft(Draft& s) {
  Attributes a;
  Ints sizes = s.shape(0, 2);
  a.fft_type = static_cast<FftType>(s.random.below(4));
  for (int64_t n = s.random.chance(0.6) ? 1 : s.random.between(2, 3); n > 0; --n) {
    a.fft_length.push_back(
        s.random.pick(Ints{1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 17, 21, 31, 35, 49, 57, 64, 73, 99, 137, 221, 411}));
    sizes.push_back(a.fft_length.back());
  }
  bool wide = s.random.chance(0.3);
  DType t = wide ? DType::kC128 : DType::kC64;
  if (a.fft_type == FftType::kRfft) t = component_type(t);
  if (a.fft_type == FftType::kIrfft) sizes.back() = sizes.back() / 2 + 1;
  if (!s.fits(sizes)) return nullptr;
  Instruction* x = s.of(t, sizes);
  return s.b.op(kFft, {is_complex(t) ? x : s.limited(x, 8)}, std::move(a));
}

DType matrix_type(Draft& s) {
  using enum DType;
  return s.random.pick(std::vector{kF32, kF32, kF32, kF64, kC64, kC128});
}

// Matrices of a batch whose diagonals outweigh the rest: hermitian and positive definite.
Instruction* dominant(Draft& s, DType type, const Ints& batch, int64_t n) {
  DType part = component_type(type);
  Ints sizes = batch;
  sizes.insert(sizes.end(), {n, n});
  int64_t rank = std::ssize(sizes);
  Ints swapped;
  for (int64_t d = 0; d < rank; ++d) swapped.push_back(d < rank - 2 ? d : 2 * rank - 3 - d);
  Instruction* a = s.limited(s.of(part, sizes), 1);
  Instruction* sum = s.b.op(kAdd, {a, s.b.transpose(a, swapped)});
  Shape index = Shape::array(DType::kS32, sizes);
  Instruction* diagonal =
      s.b.convert(s.b.compare(Direction::kEq, s.b.iota(index, rank - 2), s.b.iota(index, rank - 1)), part);
  sum = s.b.op(kAdd, {sum, s.b.op(kMultiply, {diagonal, s.splat(part, 6.0 * static_cast<double>(n), sizes)})});
  if (part == type) return sum;
  Instruction* b = s.limited(s.of(part, sizes), 1);
  return s.b.op(kComplex, {sum, s.b.op(kSubtract, {b, s.b.transpose(b, swapped)})});
}

Ints batch_sizes(Draft& s) {
  Ints batch;
  for (int64_t n = s.random.chance(0.6) ? 0 : s.random.between(1, 2); n > 0; --n)
    batch.push_back(s.random.between(1, 3));
  return batch;
}

int64_t matrix_size(Draft& s) { return s.random.chance(0.1) ? s.random.pick(Ints{0, 17, 33}) : s.random.between(1, 9); }

Instruction* cholesky(Draft& s) {
  Attributes a;
  a.lower = s.random.chance(0.5);
  return s.b.op(kCholesky, {dominant(s, matrix_type(s), batch_sizes(s), matrix_size(s))}, std::move(a));
}

Instruction* triangular_solve(Draft& s) {
  int64_t n = matrix_size(s), k = s.random.between(1, 9);
  DType t = matrix_type(s);
  Attributes a;
  a.left_side = s.random.chance(0.5);
  a.lower = s.random.chance(0.5);
  a.unit_diagonal = n <= 4 && s.random.chance(0.2);
  a.transpose_a = static_cast<TransposeA>(s.random.below(3));
  Ints batch = batch_sizes(s), sizes = batch;
  sizes.insert(sizes.end(), {a.left_side ? n : k, a.left_side ? k : n});
  return s.b.op(kTriangularSolve, {dominant(s, t, batch, n), s.of(t, sizes)}, std::move(a));
}

// XLA's own calls of linear algebra: reflectors and what they are the product of, or eigenvalues, whose vectors are
// told but for a phase.
Instruction* factor_call(Draft& s) {
  const DType t = matrix_type(s);
  const Ints batch = batch_sizes(s);
  const int64_t rows = s.random.between(1, 9), columns = s.random.between(1, rows);
  Instruction* a = dominant(s, t, batch, rows);
  Ints sizes = a->shape.dims, line = batch;
  Attributes attrs;
  if (s.random.chance(0.4)) {
    line.push_back(rows);
    attrs.custom_call_target = "Eigh";
    attrs.backend_config = s.random.chance(0.5) ? "\"1,1,100,1e-6\"" : "\"0,1,100,1e-6\"";
    Shape both = Shape::tuple({a->shape, Shape::array(component_type(t), line)});
    return s.b.get_tuple_element(s.b.op(kCustomCall, both, {a}, std::move(attrs)), 1);
  }
  sizes.back() = columns;
  line.push_back(columns);
  a = s.b.slice(a, Ints(sizes.size(), 0), sizes);
  attrs.custom_call_target = "Qr";
  Instruction* qr =
      s.b.op(kCustomCall, Shape::tuple({Shape::array(t, sizes), Shape::array(t, line)}), {a}, std::move(attrs));
  if (s.random.chance(0.4)) return s.b.get_tuple_element(qr, s.random.below(2));
  Attributes product;
  product.custom_call_target = "ProductOfElementaryHouseholderReflectors";
  const Builder::Values parts = {s.b.get_tuple_element(qr, 0), s.b.get_tuple_element(qr, 1)};
  return s.b.op(kCustomCall, Shape::array(t, sizes), parts, std::move(product));
}

}  // namespace

Family norm_family() {
  return {"norms and random bits", {{batch_norm, 2}, {random_bits, 2}, {random_numbers, 1}}, 0.12};
}
Family algebra_family() {
  return {"transforms and factorisations", {{fft, 4}, {cholesky, 2}, {triangular_solve, 2}}, 0.04};
}
Family factor_call_family() { return {"calls for factors", {{factor_call, 10}}, 0.02}; }

}  // namespace hlojit::tools::fuzz

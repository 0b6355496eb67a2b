// Ops that stand for whole algorithms: batch norms, random bits, windows, sorting, factorisations.
#include "tools/fuzz/scope.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* batch_norm(Scope& s) {
  Instruction* x =
      s.any([](const Shape& v) { return v.type == DType::kF32 && v.rank() >= 1 && v.element_count() > 0; });
  if (!x) return nullptr;
  Attributes a;
  a.feature_index = s.random.below(x->shape.rank());
  a.epsilon = 0.5;
  Ints c = {x->shape.dims[static_cast<size_t>(a.feature_index)]};
  auto positive = [&](Instruction* v) { return s.b.unary(kAbs, v); };
  Instruction* scale = s.of(DType::kF32, c);
  x = s.limited(x, 4);
  switch (s.random.below(3)) {
    case 0: return s.b.op(kBatchNormTraining, {x, scale, s.of(DType::kF32, c)}, a);
    case 1:
      return s.b.op(kBatchNormInference,
                    {x, scale, s.of(DType::kF32, c), s.of(DType::kF32, c), positive(s.of(DType::kF32, c))}, a);
    default:
      return s.b.op(kBatchNormGrad, {x, scale, s.of(DType::kF32, c), positive(s.of(DType::kF32, c)), s.of(x->shape)},
                    a);
  }
}

Instruction* random_bits(Scope& s) {
  Attributes a;
  bool philox = s.random.chance(0.5);
  a.algorithm = philox ? RandomAlgorithm::kPhilox : RandomAlgorithm::kThreeFry;
  Instruction* state = s.of(DType::kU64, {philox && s.random.chance(0.5) ? 3 : 2});
  DType t = s.random.pick(std::vector{DType::kU32, DType::kU32, DType::kU64, DType::kU8, DType::kU16});
  return s.b.op(kRngBitGenerator, Shape::tuple({state->shape, Shape::array(t, s.shape(0, 3))}), {state}, std::move(a));
}

std::vector<WindowDim> window(Scope& s, const Shape& shape) {
  std::vector<WindowDim> dims;
  for (int64_t size : shape.dims) {
    WindowDim w;
    if (s.random.chance(0.6)) {
      w.size = s.random.between(1, 4);
      w.stride = s.random.between(1, 3);
      w.pad_low = s.random.between(-1, 3);
      w.pad_high = s.random.between(-1, 3);
      if (s.random.chance(0.15)) w.lhs_dilate = 2;
      if (s.random.chance(0.15)) w.rhs_dilate = 2;
      if (s.random.chance(0.1)) w = {.size = std::max<int64_t>(size, 1), .pad_low = std::max<int64_t>(size - 1, 0)};
    }
    dims.push_back(w);
  }
  return dims;
}

Instruction* reduce_window(Scope& s) {
  Instruction* x = s.any([](const Shape& v) {
    return v.rank() >= 1 && v.rank() <= 3 && !is_pred(v.type) && !is_complex(v.type) && dtype_bits(v.type) >= 8;
  });
  if (!x) return nullptr;
  DType t = x->shape.type;
  bool sum = s.random.chance(0.6);
  if (sum && is_float(t)) x = s.small(x, 2);
  Instruction* init = s.b.constant(t, sum ? 0 : is_float(t) ? -1e4 : 0);
  if (!sum && !is_float(t)) x = s.b.op(kMaximum, {x, s.splat(t, 0, x->shape.dims)});
  if (!sum && is_float(t)) x = s.limited(x, 100);
  return s.b.reduce_window({x}, {init}, combiner(s, sum ? kAdd : kMaximum, t), window(s, x->shape));
}

Instruction* select_and_scatter(Scope& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && v.rank() <= 3 && v.type == DType::kF32; });
  if (!x) return nullptr;
  DType t = x->shape.type;
  Ints sizes, strides, source;
  for (int64_t n : x->shape.dims) {
    int64_t size = s.random.between(1, 3), stride = s.random.between(1, 3);
    if (n < size) return nullptr;
    sizes.push_back(size);
    strides.push_back(stride);
    source.push_back((n - size) / stride + 1);
  }
  Builder b(s.draw.module, "ge");
  Instruction* p = b.parameter(Shape::scalar(t));
  Instruction* q = b.parameter(Shape::scalar(t));
  b.build(b.compare(Direction::kGe, p, q));
  Instruction* from = s.small(s.of(t, source), 4);
  return s.b.select_and_scatter(x, from, s.b.constant(t, 0), b.computation(), combiner(s, kAdd, t), sizes, strides,
                                Builder::Padding::kValid);
}

// By the first key; a total order for floats.
Instruction* sort(Scope& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && !is_complex(v.type); });
  if (!x) return nullptr;
  std::vector<Instruction*> in = {x};
  for (int64_t n = s.random.between(0, 2); n > 0; --n) in.push_back(s.of(s.type(), x->shape.dims));
  Builder b(s.draw.module, "before");
  std::vector<Instruction*> p;
  for (Instruction* v : in) {
    p.push_back(b.parameter(Shape::scalar(v->shape.type)));
    p.push_back(b.parameter(Shape::scalar(v->shape.type)));
  }
  Direction d = s.random.chance(0.6) ? Direction::kLt : Direction::kGt;
  CompareType order = is_float(x->shape.type) ? CompareType::kTotalOrder : CompareType::kDefault;
  if (s.random.chance(0.2) && is_integral(x->shape.type)) {
    b.build(b.compare(d, b.op(kAnd, {p[0], b.constant(x->shape.type, 3)}),
                      b.op(kAnd, {p[1], b.constant(x->shape.type, 3)})));
  } else {
    b.build(b.compare(d, p[0], p[1], order));
  }
  return s.b.sort(in, b.computation(), s.random.below(x->shape.rank()), true);
}

Instruction* top_k(Scope& s) {
  Instruction* x = s.any([](const Shape& v) {
    return v.rank() >= 1 && v.dims.back() > 0 && (v.type == DType::kF32 || is_integral(v.type));
  });
  if (!x) return nullptr;
  Attributes a;
  a.k = s.random.between(1, x->shape.dims.back());
  a.largest = s.random.chance(0.7);
  return s.b.op(kTopK, {x}, std::move(a));
}

Instruction* fft(Scope& s) {
  Attributes a;
  int64_t n = s.random.pick(std::vector<int64_t>{1, 2, 3, 4, 5, 7, 8, 12, 16, 31});
  a.fft_length = {n};
  a.fft_type = static_cast<FftType>(s.random.below(4));
  DType t = a.fft_type == FftType::kRfft ? DType::kF32 : DType::kC64;
  Ints sizes = s.shape(0, 2);
  sizes.push_back(a.fft_type == FftType::kIrfft ? n / 2 + 1 : n);
  return s.fits(sizes) ? s.b.op(kFft, {s.of(t, sizes)}, std::move(a)) : nullptr;
}

// a + aT with a heavy diagonal is positive definite.
Instruction* dominant(Scope& s, int64_t n) {
  Instruction* a = s.limited(s.of(DType::kF32, {n, n}), 1);
  Instruction* both = s.b.op(kAdd, {a, s.b.transpose(a, {1, 0})});
  Shape index = Shape::array(DType::kS32, {n, n});
  Instruction* diagonal = s.b.convert(s.b.compare(Direction::kEq, s.b.iota(index, 0), s.b.iota(index, 1)), DType::kF32);
  return s.b.op(kAdd,
                {both, s.b.op(kMultiply, {diagonal, s.splat(DType::kF32, 4.0 * static_cast<double>(n), {n, n})})});
}

Instruction* cholesky(Scope& s) {
  Attributes a;
  a.lower = s.random.chance(0.5);
  return s.b.op(kCholesky, {dominant(s, s.random.between(1, 9))}, std::move(a));
}

Instruction* triangular_solve(Scope& s) {
  int64_t n = s.random.between(1, 9), k = s.random.between(1, 9);
  Attributes a;
  a.left_side = s.random.chance(0.5);
  a.lower = s.random.chance(0.5);
  a.unit_diagonal = false;
  a.transpose_a = s.random.chance(0.5) ? TransposeA::kTranspose : TransposeA::kNone;
  return s.b.op(kTriangularSolve, {dominant(s, n), s.of(DType::kF32, a.left_side ? Ints{n, k} : Ints{k, n})},
                std::move(a));
}

}  // namespace

Family norm_family() { return {"norms and random bits", {{batch_norm, 2}, {random_bits, 2}}}; }
Family scatter_family();
Family convolution_family();
Family complex_family();
Family stochastic_family();

std::vector<Family> guest_families() {
  return {complex_family(),
          stochastic_family(),
          scatter_family(),
          convolution_family(),
          {"windows", {{reduce_window, 4}}},
          {"select-and-scatter", {{select_and_scatter, 4}}},
          {"sort", {{sort, 4}}},
          {"topk", {{top_k, 4}}},
          {"fft", {{fft, 4}}},
          {"linear algebra", {{cholesky, 2}, {triangular_solve, 2}}}};
}

}  // namespace hlojit::tools::fuzz

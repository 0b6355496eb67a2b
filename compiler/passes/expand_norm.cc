// Batch normalisation as reductions over all dims but the feature's and elementwise ops, computed
// in f32 (f64 stays) and rounded once at the end:
//
//   training   m = mean(x)   v = mean((x - m)^2)   y = (x - m) * (scale / sqrt(v + eps)) + offset
//   inference  y as above, m and v given
//   grad       c = x - m   r = sqrt(v + eps)   s1 = sum(g)   s2 = sum(g * c)
//              dx = scale / r * (g - s1/n - c * (s2/n) / (v + eps))
//              dscale = s2 / r   doffset = s1
//
// The variance is that of the centred values: no difference of large squares.
#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

using enum Opcode;

class BatchNorm {
 public:
  BatchNorm(Builder& b, const Instruction& op, Instruction* count)
      : b_(b),
        op_(op),
        count_(count),
        x_shape_(op.operand(0)->shape),
        type_(x_shape_.type == DType::kF64 ? DType::kF64 : DType::kF32),
        feature_(op.attrs.feature_index) {
    for (Instruction* o : op.operands()) in_.push_back(widened(o));
    for (int64_t d = 0; d < x_shape_.rank(); ++d) {
      if (d != feature_) reduced_.push_back(d);
    }
  }

  Instruction* inference() { return rounded(normalised(in_[1], in_[2], centred(in_[3]), in_[4])); }

  Instruction* training() {
    Instruction* mean = averaged(sum(in_[0]));
    Instruction* c = centred(mean);
    Instruction* variance = averaged(sum(b_.binary(kMultiply, c, c)));
    Instruction* y = normalised(in_[1], in_[2], c, variance);
    return b_.tuple({rounded(y), rounded(mean), rounded(variance)});
  }

  Instruction* grad() {
    Instruction *scale = in_[1], *g = in_[4], *c = centred(in_[2]);
    Instruction* v = shifted(in_[3]);
    Instruction* deviation = b_.unary(kSqrt, v);
    Instruction* sum_g = sum(g);
    Instruction* sum_gc = sum(b_.binary(kMultiply, g, c));
    Instruction* slope = b_.binary(kDivide, averaged(sum_gc), v);
    Instruction* dx = b_.binary(kSubtract, g, spread(averaged(sum_g)));
    dx = b_.binary(kSubtract, dx, b_.binary(kMultiply, c, spread(slope)));
    dx = b_.binary(kMultiply, dx, spread(b_.binary(kDivide, scale, deviation)));
    return b_.tuple({rounded(dx), rounded(b_.binary(kDivide, sum_gc, deviation)), rounded(sum_g)});
  }

 private:
  Instruction* widened(Instruction* v) { return v->shape.type == type_ ? v : b_.convert(v, type_); }
  Instruction* rounded(Instruction* v) { return x_shape_.type == type_ ? v : b_.convert(v, x_shape_.type); }
  Instruction* spread(Instruction* by_feature) { return b_.broadcast_in_dim(by_feature, x_shape_.dims, {feature_}); }
  Instruction* centred(Instruction* mean) { return b_.binary(kSubtract, in_[0], spread(mean)); }
  Instruction* shifted(Instruction* variance) {
    return b_.binary(kAdd, variance, b_.constant(type_, op_.attrs.epsilon));
  }
  Instruction* sum(Instruction* v) {
    return b_.reduce({v}, {b_.constant(type_, 0)}, b_.combiner(kAdd, type_), reduced_);
  }
  Instruction* averaged(Instruction* sums) {
    if (count_) return b_.binary(kDivide, sums, count_);
    int64_t n = 1;
    for (int64_t d : reduced_) n *= x_shape_.dims[d];
    return b_.binary(kDivide, sums, b_.constant(type_, static_cast<double>(n)));
  }
  Instruction* normalised(Instruction* scale, Instruction* offset, Instruction* centred, Instruction* variance) {
    Instruction* factor = b_.binary(kDivide, scale, b_.unary(kSqrt, shifted(variance)));
    return b_.binary(kAdd, b_.binary(kMultiply, centred, spread(factor)), spread(offset));
  }

  Builder& b_;
  const Instruction& op_;
  Instruction* const count_;
  const Shape x_shape_;
  const DType type_;
  const int64_t feature_;
  Builder::Values in_;
  Ints reduced_;
};

}  // namespace

Instruction* expand_batch_norm(Builder& b, const Instruction& op, Instruction* count) {
  BatchNorm norm(b, op, count);
  if (op.is(kBatchNormInference)) return norm.inference();
  return op.is(kBatchNormTraining) ? norm.training() : norm.grad();
}

}  // namespace hlojit

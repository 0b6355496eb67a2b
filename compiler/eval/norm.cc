// Batch normalisation: moments over all dimensions but the feature's, in f64.
#include <cmath>

#include "compiler/eval/ops.h"
#include "compiler/eval/strided.h"

namespace hlojit::eval {
namespace {

std::vector<double> doubles(const Literal& literal) {
  const int64_t n = literal.shape().element_count();
  std::vector<double> values(n);
  convert(literal.shape().type, DType::kF64, n, literal.bytes().data(), values.data());
  return values;
}

Literal rounded(const Shape& shape, const std::vector<double>& values) {
  Literal result(shape);
  convert(DType::kF64, shape.type, shape.element_count(), values.data(), result.bytes().data());
  return result;
}

// Which feature a row-major position belongs to.
struct Features {
  int64_t step, count;
  explicit Features(const Instruction& op, const Shape& x)
      : step(row_major_strides(x.dims)[op.attrs.feature_index]), count(x.dims[op.attrs.feature_index]) {}
  int64_t operator()(size_t at) const { return static_cast<int64_t>(at) / step % count; }
};

// Means by feature of f(position).
template <class F>
std::vector<double> means(size_t n, const Features& feature, F f) {
  std::vector<double> sums(feature.count);
  for (size_t i = 0; i < n; ++i) sums[feature(i)] += f(i);
  for (double& sum : sums) sum /= static_cast<double>(n) / static_cast<double>(feature.count);
  return sums;
}

std::vector<double> normalised(const Instruction& op, const std::vector<double>& x, const Features& feature,
                               const std::vector<double>& scale, const std::vector<double>& offset,
                               const std::vector<double>& mean, const std::vector<double>& variance) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = feature(i);
    y[i] = scale[c] * (x[i] - mean[c]) / std::sqrt(variance[c] + op.attrs.epsilon) + offset[c];
  }
  return y;
}

Literal batch_norm_training(const Instruction& op, Operands in) {
  const std::vector<double> x = doubles(*in[0]);
  const Features feature(op, in[0]->shape());
  const auto mean = means(x.size(), feature, [&](size_t i) { return x[i]; });
  const auto variance = means(x.size(), feature, [&](size_t i) {
    const double d = x[i] - mean[feature(i)];
    return d * d;
  });
  std::vector<Literal> results;
  results.push_back(
      rounded(op.shape.elements[0], normalised(op, x, feature, doubles(*in[1]), doubles(*in[2]), mean, variance)));
  results.push_back(rounded(op.shape.elements[1], mean));
  results.push_back(rounded(op.shape.elements[2], variance));
  return Literal::tuple(std::move(results));
}

Literal batch_norm_inference(const Instruction& op, Operands in) {
  return rounded(op.shape, normalised(op, doubles(*in[0]), Features(op, in[0]->shape()), doubles(*in[1]),
                                      doubles(*in[2]), doubles(*in[3]), doubles(*in[4])));
}

Literal batch_norm_grad(const Instruction& op, Operands in) {
  const std::vector<double> x = doubles(*in[0]), scale = doubles(*in[1]), mean = doubles(*in[2]),
                            variance = doubles(*in[3]), g = doubles(*in[4]);
  const Features feature(op, in[0]->shape());
  auto centred = [&](size_t i) { return x[i] - mean[feature(i)]; };
  const auto d = means(x.size(), feature, [&](size_t i) { return g[i]; });
  const auto slope =
      means(x.size(), feature, [&](size_t i) { return g[i] * centred(i) / (variance[feature(i)] + op.attrs.epsilon); });
  std::vector<double> gx(x.size()), gscale(feature.count), goffset(feature.count);
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = feature(i);
    const double deviation = std::sqrt(variance[c] + op.attrs.epsilon);
    gx[i] = scale[c] / deviation * (g[i] - d[c] - slope[c] * centred(i));
    gscale[c] += g[i] * centred(i) / deviation;
    goffset[c] += g[i];
  }
  std::vector<Literal> results;
  results.push_back(rounded(op.shape.elements[0], gx));
  results.push_back(rounded(op.shape.elements[1], gscale));
  results.push_back(rounded(op.shape.elements[2], goffset));
  return Literal::tuple(std::move(results));
}

constexpr Row kOps[] = {
    {Opcode::kBatchNormGrad, [](const Call& c) { return batch_norm_grad(c.op, c.in); }},
    {Opcode::kBatchNormInference, [](const Call& c) { return batch_norm_inference(c.op, c.in); }},
    {Opcode::kBatchNormTraining, [](const Call& c) { return batch_norm_training(c.op, c.in); }},
};

}  // namespace

std::span<const Row> norm_ops() { return kOps; }

}  // namespace hlojit::eval

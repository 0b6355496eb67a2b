// dot, its ragged and scaled forms, and convolution.
//
// Operands are rearranged to [batch, m, k] and [batch, n, k] (a convolution to patches) in the type
// they are accumulated in, and multiplied by plain loops: floats in f64 and rounded once to the
// result's type, integers modulo 2^64 (which is modulo 2^n once cut), pred as or of ands.
#include <algorithm>
#include <complex>
#include <cstring>

#include "compiler/eval/ops.h"
#include "compiler/eval/stop.h"
#include "compiler/eval/strided.h"
#include "compiler/ir/ragged.h"

namespace hlojit::eval {
namespace {

enum class Accumulator { kFloat, kInteger, kComplex };

Accumulator accumulator_of(DType result) {
  if (is_float(result)) return Accumulator::kFloat;
  return is_complex(result) ? Accumulator::kComplex : Accumulator::kInteger;
}

// The type that a named algorithm rounds operands to; nullopt leaves them as they are.
std::optional<DType> operand_rounding(const std::string& algorithm) {
  if (algorithm.starts_with("dot_bf16_bf16")) {
    const bool split = algorithm.ends_with("_x3") || algorithm.ends_with("_x6") || algorithm.ends_with("_x9");
    return split ? std::nullopt : std::optional(DType::kBF16);
  }
  if (algorithm.starts_with("dot_f16_f16")) return DType::kF16;
  return std::nullopt;
}

template <class T>
DType storage_type() {
  if (std::is_same_v<T, double>) return DType::kF64;
  return std::is_same_v<T, int64_t> ? DType::kS64 : DType::kC128;
}

// Elements of a literal in T, in the order given by sizes and strides.
template <class T>
std::vector<T> arranged(const Literal& literal, std::optional<DType> rounding, std::span<const int64_t> dims,
                        std::span<const int64_t> strides) {
  const int64_t n = literal.shape().element_count();
  const DType type = literal.shape().type;
  std::vector<T> values(n), result(n);
  if (rounding && is_float(type) && dtype_bits(type) > dtype_bits(*rounding)) {
    std::vector<std::byte> rounded(n * dtype_bytes(*rounding));
    convert(type, *rounding, n, literal.bytes().data(), rounded.data());
    convert(*rounding, storage_type<T>(), n, rounded.data(), values.data());
  } else {
    convert(type, storage_type<T>(), n, literal.bytes().data(), values.data());
  }
  int64_t at = 0;
  const Ints none(dims.size(), 0);
  for_each_offset(dims, strides, none, [&](int64_t from, int64_t) { result[at++] = values[from]; });
  return result;
}

template <class T>
T multiply_add(T sum, T a, T b) {
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    return {sum.real() + (a.real() * b.real() - a.imag() * b.imag()),
            sum.imag() + (a.real() * b.imag() + a.imag() * b.real())};
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return sum + a * b;
  }
}

template <class T>
void store(const std::vector<T>& sums, Literal& result) {
  const DType type = result.shape().type;
  convert(storage_type<T>(), type, static_cast<int64_t>(sums.size()), sums.data(), result.bytes().data());
}

// Sizes and strides of an operand in the order batch, free, contracting.
struct Arrangement {
  Ints dims, strides;
  int64_t batch = 1, free = 1, contracted = 1;
};

Arrangement arrange(const Shape& shape, const Ints& batch, const Ints& contracting) {
  const Ints strides = row_major_strides(shape.dims);
  Arrangement a;
  auto take = [&](int64_t d, int64_t& total) {
    a.dims.push_back(shape.dims[d]);
    a.strides.push_back(strides[d]);
    total *= shape.dims[d];
  };
  for (int64_t d : batch) take(d, a.batch);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const bool used =
        std::ranges::find(batch, d) != batch.end() || std::ranges::find(contracting, d) != contracting.end();
    if (!used) take(d, a.free);
  }
  for (int64_t d : contracting) take(d, a.contracted);
  return a;
}

template <class T>
void dot_in(const DotDims& d, std::optional<DType> rounding, const Literal& x, const Literal& y, Literal& result) {
  const Arrangement l = arrange(x.shape(), d.lhs_batch, d.lhs_contracting);
  const Arrangement r = arrange(y.shape(), d.rhs_batch, d.rhs_contracting);
  const std::vector<T> a = arranged<T>(x, rounding, l.dims, l.strides);
  const std::vector<T> b = arranged<T>(y, rounding, r.dims, r.strides);
  const int64_t m = l.free, n = r.free, k = l.contracted;
  std::vector<T> sums(l.batch * m * n);
  // The right-hand side is turned to [k, n] so that the innermost loop runs over results.
  std::vector<T> turned(k * n);
  for (int64_t batch = 0; batch < l.batch; ++batch) {
    const T* rhs = b.data() + batch * n * k;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) turned[p * n + j] = rhs[j * k + p];
    }
    for (int64_t i = 0; i < m; ++i) {
      check_stop();
      T* row = sums.data() + (batch * m + i) * n;
      const T* lhs = a.data() + (batch * m + i) * k;
      for (int64_t p = 0; p < k; ++p) {
        const T x = lhs[p];
        const T* y = turned.data() + p * n;
        for (int64_t j = 0; j < n; ++j) row[j] = multiply_add(row[j], x, y[j]);
      }
    }
  }
  store(sums, result);
}

// Sums over kernel positions and input features for every result element.
template <class T>
void convolution_in(const Instruction& op, Operands in, Literal& result) {
  const ConvDims& c = op.attrs.conv;
  const Shape &lhs = in[0]->shape(), &rhs = in[1]->shape();
  auto natural = [](const Literal& literal) {
    return arranged<T>(literal, std::nullopt, literal.shape().dims, row_major_strides(literal.shape().dims));
  };
  const std::vector<T> x = natural(*in[0]), w = natural(*in[1]);
  const Ints x_strides = row_major_strides(lhs.dims), w_strides = row_major_strides(rhs.dims);
  const int64_t features = rhs.dims[c.rhs_input_feature];
  const int64_t out_features = op.shape.dims[c.out_feature];
  const int64_t per_feature_group = std::max<int64_t>(out_features / op.attrs.feature_group_count, 1);
  const int64_t per_batch_group = std::max<int64_t>(out_features / op.attrs.batch_group_count, 1);
  const int64_t group_batch = lhs.dims[c.lhs_batch] / op.attrs.batch_group_count;
  const size_t spatial = c.lhs_spatial.size();
  Ints kernel;
  for (size_t s = 0; s < spatial; ++s) kernel.push_back(op.attrs.window[s].size);

  std::vector<T> sums(op.shape.element_count());
  int64_t at = 0;
  for_each_index(op.shape.dims, [&](std::span<const int64_t> out) {
    check_stop();
    const int64_t o = out[c.out_feature];
    const int64_t first_feature = o / per_feature_group * features;
    const int64_t batch = o / per_batch_group * group_batch + out[c.out_batch];
    T sum{};
    for_each_index(kernel, [&](std::span<const int64_t> k) {
      int64_t x_at = batch * x_strides[c.lhs_batch] + first_feature * x_strides[c.lhs_feature];
      int64_t w_at = o * w_strides[c.rhs_output_feature];
      for (size_t s = 0; s < spatial; ++s) {
        const WindowDim& d = op.attrs.window[s];
        const int64_t p = out[c.out_spatial[s]] * d.stride + k[s] * d.rhs_dilate - d.pad_low;
        if (p < 0 || p % d.lhs_dilate != 0 || p / d.lhs_dilate >= lhs.dims[c.lhs_spatial[s]]) return;
        x_at += p / d.lhs_dilate * x_strides[c.lhs_spatial[s]];
        w_at += (d.reversal ? d.size - 1 - k[s] : k[s]) * w_strides[c.rhs_spatial[s]];
      }
      for (int64_t i = 0; i < features; ++i) {
        sum = multiply_add(sum, x[x_at + i * x_strides[c.lhs_feature]], w[w_at + i * w_strides[c.rhs_input_feature]]);
      }
    });
    sums[at++] = sum;
  });
  store(sums, result);
}

Literal dot_of(const DotDims& dims, std::optional<DType> rounding, const Literal& x, const Literal& y,
               const Shape& shape) {
  Literal result(shape);
  switch (accumulator_of(shape.type)) {
    case Accumulator::kFloat: dot_in<double>(dims, rounding, x, y, result); break;
    case Accumulator::kInteger: dot_in<int64_t>(dims, rounding, x, y, result); break;
    case Accumulator::kComplex: dot_in<std::complex<double>>(dims, rounding, x, y, result); break;
  }
  return result;
}

// Entries [begin, end) of a dimension.
Literal part_of(const Literal& x, int64_t dim, int64_t begin, int64_t end) {
  Ints dims = x.shape().dims;
  dims[dim] = end - begin;
  Literal part(Shape::array(x.shape().type, dims));
  const Ints strides = row_major_strides(x.shape().dims);
  copy_strided(dtype_bytes(x.shape().type), dims, {part.bytes().data(), 0, row_major_strides(dims)},
               {x.bytes().data(), begin * strides[dim], strides});
  return part;
}

Literal without_dim(const Literal& x, int64_t dim) {
  Ints dims = x.shape().dims;
  dims.erase(dims.begin() + dim);
  Literal same(Shape::array(x.shape().type, dims));
  std::ranges::copy(x.bytes(), same.bytes().begin());
  return same;
}

int64_t position_in(const Ints& list, int64_t value) {
  auto at = std::ranges::find(list, value);
  return at == list.end() ? -1 : at - list.begin();
}

// Each element times that of its block; a scale of size 1 in all dims stands for one.
Literal dequantised(const Literal& x, const Literal& scale) {
  const Shape &shape = x.shape(), &blocks = scale.shape();
  std::vector<double> values(shape.element_count()), factors(blocks.element_count());
  convert(shape.type, DType::kF64, shape.element_count(), x.bytes().data(), values.data());
  convert(blocks.type, DType::kF64, blocks.element_count(), scale.bytes().data(), factors.data());
  const Ints strides = row_major_strides(blocks.dims);
  size_t at = 0;
  for_each_index(shape.dims, [&](std::span<const int64_t> index) {
    int64_t block = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      block += index[d] / (shape.dims[d] / blocks.dims[d]) * strides[d];
    }
    values[at++] *= factors[block];
  });
  Literal result(Shape::array(DType::kF64, shape.dims));
  std::memcpy(result.bytes().data(), values.data(), result.bytes().size());
  return result;
}

Literal dot(const Instruction& op, Operands in) {
  return dot_of(op.attrs.dot, operand_rounding(op.attrs.dot_algorithm), *in[0], *in[1], op.shape);
}

Literal scaled_dot(const Instruction& op, Operands in) {
  auto side = [&](size_t i) {
    const Literal& scale = *in[i + 2];
    const bool none = scale.shape().type == DType::kBF16 && scale.shape().element_count() == 1;
    return none ? *in[i] : dequantised(*in[i], scale);
  };
  return dot_of(op.attrs.dot, std::nullopt, side(0), side(1), op.shape);
}

// The ragged dimension of the left side is cut into consecutive groups. A free one: group g meets
// rhs[g]. A contracting one: group g gives slice g of the result. A batch one: the batches that
// belong to some group. What lies beyond the sum of the sizes gives 0.
Literal ragged_dot_of(const Instruction& op, const Literal& lhs, const Literal& rhs, const Literal& sizes,
                      const Shape& shape) {
  const Ints group_dims = numbers_in(text_attribute(op.attrs, "rhs_group_dims"));
  const int64_t ragged = ragged_dim(op.attrs);
  const DotDims& dims = op.attrs.dot;
  const auto rounding = operand_rounding(op.attrs.dot_algorithm);
  const int64_t contracting = position_in(dims.lhs_contracting, ragged);
  const int64_t batch = position_in(dims.lhs_batch, ragged);

  // Where the ragged dimension (or the groups) stand in the result, and the rhs without its groups.
  DotDims inner = dims;
  int64_t result_dim = 0;
  if (contracting < 0 && batch < 0) {
    for (Ints* list : {&inner.rhs_batch, &inner.rhs_contracting}) {
      for (int64_t& d : *list) d -= d > group_dims.at(0);
    }
    result_dim = static_cast<int64_t>(dims.lhs_batch.size());
    for (int64_t d = 0; d < ragged; ++d) {
      result_dim += position_in(dims.lhs_batch, d) < 0 && position_in(dims.lhs_contracting, d) < 0;
    }
  } else if (batch >= 0) {
    result_dim = batch;
  }

  Literal result(shape);
  const Ints strides = row_major_strides(shape.dims);
  const int64_t end_of_all = lhs.shape().dims[ragged];
  int64_t begin = 0;
  for (int64_t g = 0; g < sizes.shape().dims[0]; ++g) {
    const int64_t end = std::clamp(begin + std::clamp<int64_t>(sizes.as_int(g), 0, end_of_all), begin, end_of_all);
    Literal right;
    if (contracting >= 0) {
      right = part_of(rhs, dims.rhs_contracting[contracting], begin, end);
    } else if (batch >= 0) {
      right = part_of(rhs, dims.rhs_batch[batch], begin, end);
    } else {
      right = without_dim(part_of(rhs, group_dims[0], g, g + 1), group_dims[0]);
    }
    // The box of the result that this group fills.
    Shape box = Shape::array(shape.type, shape.dims);
    Shape computed = box;
    box.dims[result_dim] = contracting >= 0 ? 1 : end - begin;
    computed.dims = box.dims;
    if (contracting >= 0) computed.dims.erase(computed.dims.begin());
    const Literal part =
        dot_of(inner, rounding, part_of(lhs, ragged, begin, end), right, Shape::array(computed.type, computed.dims));
    const int64_t base = (contracting >= 0 ? g : begin) * strides[result_dim];
    copy_strided(dtype_bytes(shape.type), box.dims, {result.bytes().data(), base, strides},
                 {part.bytes().data(), 0, row_major_strides(box.dims)});
    begin = end;
  }
  return result;
}

// Where groups have sizes of their own for each entry of the dims `own`: one entry of the first of these after the
// other, each a ragged-dot of its own; a contracted dim's are summed.
Literal ragged_dot_by(const Instruction& op, const Literal& lhs, const Literal& rhs, const Literal& sizes, Ints own,
                      const Shape& shape) {
  if (own.empty()) return ragged_dot_of(op, lhs, rhs, sizes, shape);
  const DotDims& dims = op.attrs.dot;
  const int64_t d = own.front();
  own.erase(own.begin());
  const int64_t batch = position_in(dims.lhs_batch, d), contracting = position_in(dims.lhs_contracting, d);
  const int64_t groups = position_in(dims.lhs_contracting, ragged_dim(op.attrs)) >= 0;
  int64_t result_dim = groups + batch;
  if (batch < 0) {
    result_dim = groups + std::ssize(dims.lhs_batch);
    for (int64_t k = 0; k < d; ++k) {
      result_dim += position_in(dims.lhs_batch, k) < 0 && position_in(dims.lhs_contracting, k) < 0;
    }
  }
  Literal result(shape);
  const Ints strides = row_major_strides(shape.dims);
  Shape one = Shape::array(shape.type, shape.dims);
  if (contracting < 0) one.dims[result_dim] = 1;
  for (int64_t i = 0; i < lhs.shape().dims[d]; ++i) {
    Literal right = batch >= 0         ? part_of(rhs, dims.rhs_batch[batch], i, i + 1)
                    : contracting >= 0 ? part_of(rhs, dims.rhs_contracting[contracting], i, i + 1)
                                       : rhs;
    Literal part =
        ragged_dot_by(op, part_of(lhs, d, i, i + 1), right, without_dim(part_of(sizes, 0, i, i + 1), 0), own, one);
    if (contracting < 0) {
      copy_strided(dtype_bytes(shape.type), one.dims, {result.bytes().data(), i * strides[result_dim], strides},
                   {part.bytes().data(), 0, row_major_strides(one.dims)});
      continue;
    }
    for (int64_t k = 0; k < shape.element_count(); ++k) {
      if (is_integral(shape.type))
        result.set_int(k, result.as_int(k) + part.as_int(k));
      else
        result.set_double(k, result.as_double(k) + part.as_double(k));
    }
  }
  return result;
}

Literal ragged_dot(const Instruction& op, Operands in) {
  Ints own = in[2]->shape().rank() > 1 ? dims_before_ragged(op.attrs) : Ints{};
  return ragged_dot_by(op, *in[0], *in[1], *in[2], std::move(own), op.shape);
}

Literal convolution(const Instruction& op, Operands in) {
  Literal result(op.shape);
  switch (accumulator_of(op.shape.type)) {
    case Accumulator::kFloat: convolution_in<double>(op, in, result); break;
    case Accumulator::kInteger: convolution_in<int64_t>(op, in, result); break;
    case Accumulator::kComplex: convolution_in<std::complex<double>>(op, in, result); break;
  }
  return result;
}

constexpr Row kOps[] = {
    {Opcode::kConvolution, [](const Call& c) { return convolution(c.op, c.in); }},
    {Opcode::kDot, [](const Call& c) { return dot(c.op, c.in); }},
    {Opcode::kRaggedDot, [](const Call& c) { return ragged_dot(c.op, c.in); }},
    {Opcode::kScaledDot, [](const Call& c) { return scaled_dot(c.op, c.in); }},
};

}  // namespace

std::span<const Row> contract_ops() { return kOps; }

}  // namespace hlojit::eval

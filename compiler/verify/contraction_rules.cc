// Ops that multiply and sum: dot and its relatives, convolution.
//
// Their operands may differ in element type: a dot's in any way, a convolution's in precision or where
// one type holds all values of the other. The declared element type of the result is the type they
// accumulate to: s8 x s8 -> s32, bf16 x bf16 -> f32, u8 x s8 -> s32.
#include <algorithm>

#include <fmt/ranges.h>

#include "compiler/ir/ragged.h"
#include "compiler/verify/rules.h"

namespace hlojit::rules {
namespace {

constexpr std::string_view kAlgorithms[] = {
    "unset",
    "dot_any_f8_any_f8_any",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_bf16_bf16_f32_x9",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
};

int width(DType type) { return is_pred(type) ? 1 : dtype_bits(type); }

// pred, integers, floats, complex: each accumulates in its own kind or a later one.
int kind(DType t) { return is_pred(t) ? 0 : is_integral(t) ? 1 : is_float(t) ? 2 : 3; }

// All integers of so many bits, apart from a sign, are values of the type.
int magnitude_bits(DType t) {
  switch (t) {
    case DType::kF64: return 53;
    case DType::kF32: return 24;
    case DType::kF16: return 11;
    case DType::kBF16: return 8;
    default: return is_float(t) ? 1 : width(t) - is_signed(t);
  }
}

// Whether every value of the second type, no float, is one of the first.
bool holds_values(DType to, DType from) {
  if (to == from || is_pred(from)) return true;
  if (is_complex(to)) return holds_values(component_type(to), from);
  if (is_pred(to) || !is_integral(from) || (is_unsigned(to) && is_signed(from))) return false;
  return magnitude_bits(to) >= magnitude_bits(from);
}

// Element type of the result: what is declared if the operands can accumulate to it, else the wider
// of theirs.
DType accumulated_type(const Use& use) {
  DType a = use.operand(0).type, b = use.operand(1).type;
  DType natural = std::pair(kind(b), width(b)) > std::pair(kind(a), width(a)) ? b : a;
  if (!use.declared || !use.declared->is_array()) return natural;
  DType to = use.declared->type;
  if (to == natural) return to;
  bool fits = kind(to) > kind(natural) || (kind(to) == kind(natural) && (is_float(to) || width(to) >= width(natural)));
  need(fits, "result-type", "{} of {} and {} cannot give {}", op_name(use.opcode), dtype_name(a), dtype_name(b),
       dtype_name(to));
  return to;
}

// The one dimension of the right operand that would fit, if there is just one.
std::string suggest_dimension(const Shape& b, int64_t size) {
  if (std::ranges::count(b.dims, size) != 1) return {};
  return fmt::format("suggestion: dimension {} of the right operand has size {}",
                     std::ranges::find(b.dims, size) - b.dims.begin(), size);
}

// Contracting and batch dimensions of both sides agree.
void need_dot_dimensions(const DotDims& dims, const Shape& a, const Shape& b) {
  struct Pair {
    const Ints &lhs, &rhs;
    std::string_view what;
  };
  for (auto [lhs, rhs, what] : {Pair{dims.lhs_batch, dims.rhs_batch, "batch"},
                                Pair{dims.lhs_contracting, dims.rhs_contracting, "contracting"}}) {
    need(lhs.size() == rhs.size(), "dimension-count", "lhs_{0}_dims has {1} entries, rhs_{0}_dims has {2}", what,
         lhs.size(), rhs.size());
  }
  auto joined = [](const Ints& batch, const Ints& contracting) {
    Ints all = batch;
    all.insert(all.end(), contracting.begin(), contracting.end());
    return all;
  };
  need_dimensions(joined(dims.lhs_batch, dims.lhs_contracting), a.rank(), "lhs_batch_dims and lhs_contracting_dims");
  need_dimensions(joined(dims.rhs_batch, dims.rhs_contracting), b.rank(), "rhs_batch_dims and rhs_contracting_dims");
  for (auto [lhs, rhs, what] : {Pair{dims.lhs_batch, dims.rhs_batch, "batch"},
                                Pair{dims.lhs_contracting, dims.rhs_contracting, "contracting"}}) {
    for (size_t i = 0; i < lhs.size(); ++i) {
      int64_t n = a.dims[lhs[i]], m = b.dims[rhs[i]];
      if (n == m) continue;
      fail("dot-dimension-size",
           fmt::format("{} dimensions {} of the left and {} of the right operand have sizes {} and {}", what, lhs[i],
                       rhs[i], n, m),
           suggest_dimension(b, n));
    }
  }
}

void append_free(std::vector<int64_t>& to, const Shape& x, const Ints& batch, const Ints& contracting,
                 const Ints& group = {}) {
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!contains(batch, d) && !contains(contracting, d) && !contains(group, d)) {
      to.push_back(x.dims[d]);
    }
  }
}

std::vector<int64_t> dot_sizes(const DotDims& dims, const Shape& a, const Shape& b) {
  std::vector<int64_t> sizes;
  for (int64_t d : dims.lhs_batch) sizes.push_back(a.dims[d]);
  append_free(sizes, a, dims.lhs_batch, dims.lhs_contracting);
  append_free(sizes, b, dims.rhs_batch, dims.rhs_contracting);
  return sizes;
}

void need_algorithm(const Use& use) {
  const std::string& name = use.attrs.dot_algorithm;
  need(name.empty() || std::ranges::find(kAlgorithms, name) != std::end(kAlgorithms), "dot-algorithm",
       "unknown algorithm {}", name);
}

Shape dot(const Use& use) {
  need_count(use, 2);
  need_arrays(use);
  need_dot_dimensions(use.attrs.dot, use.operand(0), use.operand(1));
  need_algorithm(use);
  return Shape::array(accumulated_type(use), dot_sizes(use.attrs.dot, use.operand(0), use.operand(1)));
}

Shape ragged_dot(const Use& use) {
  need_count(use, 3);
  need_arrays(use);
  need_same_type_ignoring_precision(use, 0, 1);
  const Shape &a = use.operand(0), &b = use.operand(1), &sizes = use.operand(2);
  const DotDims& dims = use.attrs.dot;
  Ints ragged = numbers_in(text_attribute(use.attrs, "lhs_ragged_dims"));
  Ints group = numbers_in(text_attribute(use.attrs, "rhs_group_dims"));
  need(ragged.size() == 1, "ragged-dot-dimensions", "lhs_ragged_dims must name one dimension, not {}", ragged.size());
  need_dimensions(ragged, a.rank(), "lhs_ragged_dims");
  need_dimensions(group, b.rank(), "rhs_group_dims");
  need_dot_dimensions(dims, a, b);
  bool contracting = contains(dims.lhs_contracting, ragged[0]);
  bool batch = contains(dims.lhs_batch, ragged[0]);
  size_t groups_wanted = contracting || batch ? 0 : 1;
  need(group.size() == groups_wanted, "ragged-dot-dimensions",
       "a ragged {} dimension takes {} group dimension{}, not {}",
       contracting ? "contracting"
       : batch     ? "batch"
                   : "free",
       groups_wanted, groups_wanted == 1 ? "" : "s", group.size());
  for (int64_t g : group) {
    need(!contains(dims.rhs_batch, g) && !contains(dims.rhs_contracting, g), "ragged-dot-dimensions",
         "group dimension {} is also a batch or contracting dimension", g);
  }
  need(is_integral(sizes.type) && sizes.rank() >= 1, "ragged-dot-groups",
       "group sizes must be an array of integers, not {}", sizes);
  if (sizes.rank() > 1) {
    // One list of sizes for each entry of the dims before the ragged one: batch dims, then those of its kind.
    Ints before;
    for (int64_t d : dims_before_ragged(use.attrs)) before.push_back(a.dims[d]);
    Ints given(sizes.dims.begin(), sizes.dims.end() - 1);
    need(given == before, "ragged-dot-groups",
         "group sizes stand for dims [{}] before the ragged one, and {} gives [{}]", fmt::join(before, ","), sizes,
         fmt::join(given, ","));
  }
  int64_t groups = sizes.dims.back();
  for (int64_t g : group) {
    need(b.dims[g] == groups, "ragged-dot-groups", "there are {} group sizes for {} groups", groups, b.dims[g]);
  }
  std::vector<int64_t> result;
  if (contracting) result.push_back(groups);
  for (int64_t d : dims.lhs_batch) result.push_back(a.dims[d]);
  append_free(result, a, dims.lhs_batch, dims.lhs_contracting);
  append_free(result, b, dims.rhs_batch, dims.rhs_contracting, group);
  return Shape::array(accumulated_type(use), std::move(result));
}

Shape scaled_dot(const Use& use) {
  need_count(use, 4);
  need_arrays(use);
  const DotDims& dims = use.attrs.dot;
  need(dims.lhs_contracting.size() == 1, "scaled-dot-scale", "scaled-dot has one contracting dimension, not {}",
       dims.lhs_contracting.size());
  need_dot_dimensions(dims, use.operand(0), use.operand(1));
  for (size_t side : {0, 1}) {
    const Shape &x = use.operand(side), &scale = use.operand(side + 2);
    bool fits = x.rank() == scale.rank();
    for (size_t d = 0; fits && d < x.dims.size(); ++d) {
      fits = scale.dims[d] > 0 ? x.dims[d] % scale.dims[d] == 0 : x.dims[d] == 0;
    }
    need(fits, "scaled-dot-scale", "the sizes of scale {} do not divide those of operand {}", scale, x);
  }
  if (!use.declared) return undetermined();
  return Shape::array(accumulated_type(use), dot_sizes(dims, use.operand(0), use.operand(1)));
}

Shape convolution(const Use& use) {
  need_count(use, 2);
  need_arrays(use);
  const Shape &x = use.operand(0), &kernel = use.operand(1);
  auto real = [](DType t) { return is_complex(t) ? component_type(t) : t; };
  const bool fit = holds_values(x.type, kernel.type) || holds_values(kernel.type, x.type) ||
                   (is_float(real(x.type)) && is_float(real(kernel.type)));
  if (!fit) need_same_type(use, 0, 1);
  const ConvDims& c = use.attrs.conv;
  size_t spatial = c.lhs_spatial.size();
  int64_t rank = static_cast<int64_t>(spatial) + 2;
  need(x.rank() == rank && kernel.rank() == rank, "conv-labels",
       "dim_labels are for rank {}, the operands are {} and {}", rank, x, kernel);
  // Labels of an array: two special ones and the spatial ones are a permutation of its dimensions.
  auto need_labels = [&](int64_t first, int64_t second, const Ints& rest, std::string_view whose) {
    Ints all = rest;
    all.push_back(first);
    all.push_back(second);
    std::ranges::sort(all);
    bool fits = static_cast<int64_t>(all.size()) == rank;
    for (int64_t d = 0; fits && d < rank; ++d) fits = all[d] == d;
    need(fits, "conv-labels", "dim_labels of the {} do not name each of its {} dimensions once", whose, rank);
  };
  need_labels(c.lhs_batch, c.lhs_feature, c.lhs_spatial, "input");
  need_labels(c.rhs_input_feature, c.rhs_output_feature, c.rhs_spatial, "kernel");
  need_labels(c.out_batch, c.out_feature, c.out_spatial, "result");

  int64_t features = x.dims[c.lhs_feature], batch = x.dims[c.lhs_batch];
  int64_t in = kernel.dims[c.rhs_input_feature], out = kernel.dims[c.rhs_output_feature];
  int64_t groups = use.attrs.feature_group_count, batch_groups = use.attrs.batch_group_count;
  need(groups >= 1 && batch_groups >= 1, "conv-groups",
       "feature_group_count {} and batch_group_count {} must be at least 1", groups, batch_groups);
  need(groups == 1 || batch_groups == 1, "conv-groups",
       "feature_group_count {} and batch_group_count {} cannot both be above 1", groups, batch_groups);
  need(features % groups == 0 && features / groups == in, "conv-groups",
       "{} input features in {} groups do not make the kernel's {}", features, groups, in);
  need(out % groups == 0, "conv-groups", "{} output features do not divide into {} feature groups", out, groups);
  need(out % batch_groups == 0, "conv-groups", "{} output features do not divide into {} batch groups", out,
       batch_groups);
  need(batch % batch_groups == 0, "conv-groups", "a batch of {} does not divide into {} batch groups", batch,
       batch_groups);

  const auto& window = use.attrs.window;
  need(window.size() == spatial, "conv-window", "the window has {} dimensions, dim_labels have {}", window.size(),
       spatial);
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < spatial; ++d) {
    int64_t size = kernel.dims[c.rhs_spatial[d]];
    need(window[d].size == size, "conv-window", "window size {} of spatial dimension {} is not the kernel's {}",
         window[d].size, d, size);
    sizes.push_back(x.dims[c.lhs_spatial[d]]);
  }
  std::vector<int64_t> outputs = window_output(sizes, window);
  std::vector<int64_t> result(static_cast<size_t>(rank));
  result[c.out_batch] = batch / batch_groups;
  result[c.out_feature] = out;
  for (size_t d = 0; d < spatial; ++d) result[c.out_spatial[d]] = outputs[d];
  return Shape::array(accumulated_type(use), std::move(result));
}

#define HLOJIT_DOT_ATTRIBUTES                                                \
  "lhs_batch_dims lhs_contracting_dims rhs_batch_dims rhs_contracting_dims " \
  "operand_precision algorithm:dot"

constexpr Entry kOps[] = {
    {Opcode::kConvolution, convolution,
     "window dim_labels! feature_group_count batch_group_count operand_precision convolution_kind conv_kind"},
    {Opcode::kDot, dot, HLOJIT_DOT_ATTRIBUTES},
    {Opcode::kRaggedDot, ragged_dot, HLOJIT_DOT_ATTRIBUTES " lhs_ragged_dims rhs_group_dims"},
    {Opcode::kScaledDot, scaled_dot, HLOJIT_DOT_ATTRIBUTES, ResultShape::kDeclare},
};

}  // namespace

std::span<const Entry> contraction_rules() { return kOps; }

}  // namespace hlojit::rules

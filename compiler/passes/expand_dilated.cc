// Convolutions of inputs with gaps (lhs_dilate), which are gradients of strided ones and transposed convolutions: most
// of what a window sees there is the zeros between elements.
//
// Along a dim with gaps of L, results that are L apart see the same taps of the window. Where y[o] = sum x'[o + k - p]
// w[k] and x'[L i] = x[i], the sum for o = L q + r is over taps k = L t + (L - 1 - r) alone, if p + 1 is a multiple of
// L; so all of them are features of one convolution without gaps,
//
//   y'[q, (r, f)] = sum_t x[q + t - p'] w'[t, (r, f)]       w' = w in lines of L taps, turned round
//
// whose result is y when the features r are put between the q. Other paddings are made such ones by results in front
// that are dropped. A window of one tap leaves gaps in the result instead.
//
// Products know of the gaps themselves, and make one for each r (compiler/plan/matrix_product.h). So this is for few
// features, which would leave most of a vector empty, and for windows of one tap, of which most r have none.
#include <algorithm>
#include <numeric>

#include "compiler/ir/narrow.h"
#include "compiler/passes/expansions.h"
#include "layout/divide.h"
#include "layout/tiling.h"

namespace hlojit {
namespace {

using enum Opcode;

/// What becomes of a spatial dim.
struct GapDim {
  int64_t gap = 1;     ///< L; 1: the dim has none
  int64_t taps = 1;    ///< of the new window
  int64_t before = 0;  ///< zeros put in front of the window's taps
  int64_t dropped = 0, results = 0;
  WindowDim window = {};
  bool spread = false;  ///< a window of one tap
};

/// `n` elements of the input, `out` of the result. A dim that is not of this form stays as it is, gaps and all. `few`
/// features: phases are worth it. `exact`: no phase may have fewer taps than others, for zeros in their place would
/// make NaNs of infinite inputs that it does not see.
GapDim gap_dim(const WindowDim& w, int64_t n, int64_t out, bool few, bool exact) {
  const GapDim as_it_is{.gap = 1, .taps = w.size, .results = out, .window = w};
  if (w.lhs_dilate == 1 || w.stride != 1 || w.rhs_dilate != 1 || w.reversal || n == 0 || out == 0) return as_it_is;
  GapDim d{.gap = w.lhs_dilate, .taps = w.size, .results = n, .spread = w.size == 1};
  if (d.spread) return d;
  if (!few || (exact && w.size % d.gap != 0)) return as_it_is;
  const int64_t fewest = ceil_div(w.size, d.gap), left = mod(w.pad_low, d.gap);
  d.before = d.gap - 1 - left;
  d.taps = ceil_div(w.size + d.before, d.gap);
  if (d.taps > fewest) {
    d.dropped = d.before;
    d.before = 0;
    d.taps = fewest;
  }
  d.results = ceil_div(out + d.dropped, d.gap);
  d.window.size = d.taps;
  d.window.pad_low = floordiv(w.pad_low, d.gap);  // the same of as many more as are dropped
  d.window.pad_high = d.results + d.taps - 1 - d.window.pad_low - n;
  return d;
}

struct Gaps {
  const Instruction& op;
  std::vector<GapDim> dims;
  int64_t groups;

  bool phased(size_t s) const { return dims[s].gap > 1 && !dims[s].spread; }
  Ints spatial(auto size) const {
    Ints sizes;
    for (const GapDim& d : dims) sizes.push_back(size(d));
    return sizes;
  }
  int64_t phases() const {
    int64_t n = 1;
    for (size_t s = 0; s < dims.size(); ++s) n *= phased(s) ? dims[s].gap : 1;
    return n;
  }

  /// w' as [taps..., inputs, groups x phases x features].
  Instruction* kernel(Builder& b) const {
    const ConvDims& c = op.attrs.conv;
    Instruction* w = op.operand(1);
    std::vector<PadDim> padding(w->shape.dims.size());
    Ints order = c.rhs_spatial, lines, parts, sizes;
    order.insert(order.end(), {c.rhs_input_feature, c.rhs_output_feature});
    for (size_t s = 0; s < dims.size(); ++s) {
      const GapDim& d = dims[s];
      if (phased(s)) padding[c.rhs_spatial[s]] = {d.before, d.taps * d.gap - op.attrs.window[s].size - d.before, 0};
    }
    w = b.transpose(b.pad(w, zero(b), padding), order);
    const int64_t inputs = w->shape.dims[dims.size()], outputs = w->shape.dims[dims.size() + 1];
    Ints taps, gaps;  // dims of the reshaped kernel
    for (size_t s = 0; s < dims.size(); ++s) {
      taps.push_back(std::ssize(lines));
      lines.push_back(dims[s].taps);
      if (!phased(s)) continue;
      gaps.push_back(std::ssize(lines));
      lines.push_back(dims[s].gap);
    }
    const int64_t at = std::ssize(lines);
    lines.insert(lines.end(), {inputs, groups, outputs / groups});
    parts = taps;
    parts.insert(parts.end(), {at, at + 1});
    parts.insert(parts.end(), gaps.begin(), gaps.end());
    parts.push_back(at + 2);
    sizes = spatial([](const GapDim& d) { return d.taps; });
    sizes.insert(sizes.end(), {inputs, outputs * phases()});
    return b.reshape(b.transpose(b.rev(b.reshape(w, lines), gaps), parts), sizes);
  }

  /// [batch, results..., features x phases].
  Instruction* convolution(Builder& b) const {
    const auto rank = std::ssize(dims);
    Attributes a = op.attrs;
    ConvDims& c = a.conv.edit();
    a.window.clear();
    for (const GapDim& d : dims) a.window.push_back(d.window);
    c.rhs_spatial.resize(dims.size());
    std::iota(c.rhs_spatial.begin(), c.rhs_spatial.end(), 0);
    c.out_spatial.resize(dims.size());
    std::iota(c.out_spatial.begin(), c.out_spatial.end(), 1);
    c.rhs_input_feature = rank;
    c.rhs_output_feature = c.out_feature = rank + 1;
    c.out_batch = 0;
    Ints sizes = spatial([](const GapDim& d) { return d.results; });
    sizes.insert(sizes.begin(), op.operand(0)->shape.dims[c.lhs_batch]);
    sizes.push_back(op.shape.dims[op.attrs.conv->out_feature] * phases());
    Instruction* made =
        b.computation()->add(kConvolution, Shape::array(op.shape.type, sizes), {op.operand(0), kernel(b)}, op.name);
    made->attrs = std::move(a);
    return made;
  }

  /// y', the features that are phases put between the results, as [batch, spatial..., features].
  Instruction* joined(Builder& b, Instruction* y) const {
    Ints lines = {y->shape.dims[0]}, order = {0}, sizes = lines;
    const int64_t features = op.shape.dims[op.attrs.conv->out_feature];
    for (const GapDim& d : dims) lines.push_back(d.results);
    int64_t at = std::ssize(lines) + 1;
    lines.push_back(groups);
    for (size_t s = 0; s < dims.size(); ++s) {
      order.push_back(static_cast<int64_t>(s) + 1);
      sizes.push_back(dims[s].results * (phased(s) ? dims[s].gap : 1));
      if (!phased(s)) continue;
      order.push_back(at++);
      lines.push_back(dims[s].gap);
    }
    order.insert(order.end(), {std::ssize(dims) + 1, at});
    lines.push_back(features / groups);
    sizes.push_back(features);
    return b.reshape(b.transpose(b.reshape(y, lines), order), sizes);
  }

  /// In the op's sizes and order.
  Instruction* result(Builder& b, const TargetInfo& target) const {
    const ConvDims& c = op.attrs.conv;
    Instruction* plain = convolution(b);
    Instruction* few = expand_few_features(b, *plain, target);  // as whoever compiles what we print would
    Instruction* y = joined(b, few ? few : plain);
    if (few) b.computation()->remove(plain);
    Ints starts(y->shape.dims.size(), 0), limits = y->shape.dims, order(y->shape.dims.size());
    std::vector<PadDim> padding(y->shape.dims.size());
    order[c.out_batch] = 0;
    order[c.out_feature] = std::ssize(dims) + 1;
    for (size_t s = 0; s < dims.size(); ++s) {
      const GapDim& d = dims[s];
      const int64_t low = op.attrs.window[s].pad_low, out = op.shape.dims[c.out_spatial[s]];
      order[c.out_spatial[s]] = static_cast<int64_t>(s) + 1;
      if (d.spread) padding[s + 1] = {low, out - low - (d.results - 1) * d.gap - 1, d.gap - 1};
      if (!phased(s)) continue;
      starts[s + 1] = d.dropped;
      limits[s + 1] = d.dropped + out;
    }
    return b.transpose(b.pad(b.slice(y, starts, limits), zero(b), padding), order);
  }

  Instruction* zero(Builder& b) const { return b.constant(Literal(Shape::scalar(op.shape.type))); }
};

}  // namespace

Instruction* expand_dilated(Builder& b, const Instruction& op, const TargetInfo& target) {
  // Moving the window's taps and the results takes some of what is won, and products that still know of gaps some more.
  // (To five features, gaps of two in both dims, one of which stays: 40 us, 60 with half of the products.)
  constexpr double kWorth = 1.5, kWorthBeside = 2.5;
  const Instruction *x = op.operand(0), *w = op.operand(1);
  if (op.attrs.batch_group_count != 1 || x->shape.type != op.shape.type || w->shape.type != op.shape.type)
    return nullptr;
  if (!has_zero(op.shape.type)) return nullptr;  // to be left between the results
  Gaps gaps{op, {}, op.attrs.feature_group_count};
  const int64_t features = op.shape.dims[op.attrs.conv->out_feature] / gaps.groups;
  const int64_t lanes = target.vector_bytes / dtype_bytes(working_type(op.shape.type));
  const bool few = features > 1 && features < lanes;  // sums of one go along the inputs
  double less = 1;
  for (size_t s = 0; s < op.attrs.window.size(); ++s) {
    const int64_t n = x->shape.dims[op.attrs.conv->lhs_spatial[s]], out = op.shape.dims[op.attrs.conv->out_spatial[s]];
    const GapDim& d = gaps.dims.emplace_back(gap_dim(op.attrs.window[s], n, out, few, !is_integral(op.shape.type)));
    const int64_t before = out * op.attrs.window[s].size, after = d.results * d.taps * (d.spread ? 1 : d.gap);
    less *= static_cast<double>(before) / static_cast<double>(std::max<int64_t>(after, 1));
  }
  const bool stays = std::ranges::any_of(gaps.dims, [](const GapDim& d) { return d.window.lhs_dilate > 1; });
  return less >= (stays && gaps.phases() > 1 ? kWorthBeside : kWorth) && op.shape.element_count() > 0
             ? gaps.result(b, target)
             : nullptr;
}

}  // namespace hlojit

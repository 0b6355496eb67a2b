// Convolutions to a few features, such as an image's colors: neither do features fill a vector, nor are the results'
// neighbours in the input neighbours in memory.
//
// What each tap of the window adds to a feature is one product of all taps' weights with all of the input's positions;
// a result is then the sum of one element for each of the taps that it sees, each a step further than its neighbour's:
//
//   P[k, f, b, i] = sum_c w[k, c, f] x[b, i, c]        y[b, o, f] = sum_k P[k, f, b, o + k - p]
//
// Lanes go along positions in both. With gaps of L in the input (lhs_dilate), results L apart see the same taps: the
// sum is one for each of the L phases r, o = L q + r, over the taps with r + k - p = L s, of P[k, f, b, q + s]; the
// phases are then put between each other. Nothing is multiplied with the zeros of gaps.
//
// With a stride of S a tap sees every S-th position only: there is a P for each of the S phases of positions, i = S q +
// r, of the taps with k - p = S s + r, and a result is the sum of P_r[k, f, b, o + s]. Nothing is multiplied that no
// result sees.
#include <algorithm>
#include <limits>
#include <map>

#include "compiler/ir/narrow.h"
#include "compiler/passes/expansions.h"
#include "layout/divide.h"
#include "layout/tiling.h"

namespace hlojit {
namespace {

using enum Opcode;

/// A tap of the window: of which phase of positions, its place among that phase's taps, and how much further than its
/// result's number (in the phase) its element lies there.
struct Tap {
  int64_t positions = 0, number = 0, shift = 0;
};

/// A phase of positions: the taps that see it, which are even steps apart, where its first element is in the input that
/// a tap sees, how many there are, and what is seen beside them.
struct Positions {
  Ints taps;
  int64_t start = 0, count = 0;
  PadDim padding;
};

/// What becomes of a spatial dim.
struct TapsDim {
  std::vector<std::vector<Tap>> phases;
  int64_t results = 0;  ///< of a phase
  std::vector<Positions> positions;
  int64_t stride = 1, first = 0, count = 0;  ///< of a phase's positions, the first of which has this number
};

TapsDim taps_dim(const WindowDim& w, int64_t n, int64_t out) {
  TapsDim d;
  d.results = ceil_div(out, w.lhs_dilate);
  d.stride = w.stride;
  d.phases.resize(static_cast<size_t>(w.lhs_dilate));
  d.positions.resize(static_cast<size_t>(w.stride));
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
  for (int64_t tap = 0; tap < w.size; ++tap) {
    const int64_t offset = (w.reversal ? w.size - 1 - tap : tap) * w.rhs_dilate - w.pad_low;
    const int64_t r = mod(-offset, w.lhs_dilate), at = (r + offset) / w.lhs_dilate, shift = floordiv(at, w.stride);
    Ints& taps = d.positions[static_cast<size_t>(mod(at, w.stride))].taps;
    d.phases[static_cast<size_t>(r)].push_back({mod(at, w.stride), std::ssize(taps), shift});
    taps.push_back(tap);
    first = std::min(first, shift);
    last = std::max(last, shift);
  }
  d.first = first;
  d.count = last - first + d.results;
  for (int64_t r = 0; r < w.stride; ++r) {
    const int64_t begin = std::max<int64_t>(first, 0), end = std::min(first + d.count, ceil_div(n - r, w.stride));
    Positions& p = d.positions[static_cast<size_t>(r)];
    p.start = begin * w.stride + r;
    p.count = end - begin;
    p.padding = {begin - first, first + d.count - end, 0};
  }
  return d;
}

class FewFeatures {
 public:
  FewFeatures(Builder& b, const Instruction& op) : b_(b), op_(op), dims_(op.attrs.conv) {
    for (size_t s = 0; s < op.attrs.window.size(); ++s) {
      const int64_t n = op.operand(0)->shape.dims[static_cast<size_t>(dims_.lhs_spatial[s])];
      taps_.push_back(taps_dim(op.attrs.window[s], n, out_size(s)));
    }
  }

  /// No phase of positions is all padding.
  bool sees_all() const {
    auto there = [](const Positions& p) { return p.count > 0; };
    return std::ranges::all_of(taps_, [&](const TapsDim& d) { return std::ranges::all_of(d.positions, there); });
  }
  /// Of P.
  int64_t product_elements() const {
    int64_t n = features() * batch();
    for (size_t s = 0; s < taps_.size(); ++s) n *= op_.attrs.window[s].size * taps_[s].count;
    return n;
  }
  int64_t features() const { return op_.shape.dims[static_cast<size_t>(dims_.out_feature)]; }

  /// In the op's sizes and order.
  Instruction* result() {
    Instruction* y = joined(0, {});
    Ints sizes = {features(), batch()}, order(op_.shape.dims.size());
    order[static_cast<size_t>(dims_.out_feature)] = 0;
    order[static_cast<size_t>(dims_.out_batch)] = 1;
    for (size_t s = 0; s < taps_.size(); ++s) {
      sizes.push_back(out_size(s));
      order[static_cast<size_t>(dims_.out_spatial[s])] = static_cast<int64_t>(s) + 2;
    }
    return b_.transpose(b_.slice(y, Ints(sizes.size(), 0), sizes), order);
  }

 private:
  int64_t batch() const { return op_.shape.dims[static_cast<size_t>(dims_.out_batch)]; }
  int64_t out_size(size_t s) const { return op_.shape.dims[static_cast<size_t>(dims_.out_spatial[s])]; }
  DType sums() const { return working_type(op_.shape.type); }

  /// The P of the positions that these taps see, as [taps..., features, batch, positions...].
  Instruction* product(const std::vector<Tap>& taps) {
    Ints phases;
    for (const Tap& tap : taps) phases.push_back(tap.positions);
    Instruction*& made = products_[phases];
    if (made) return made;
    Instruction *x = op_.operand(0), *w = op_.operand(1);
    const size_t rank = taps.size() + 2;
    std::vector<PadDim> padding(2 * taps.size() + 2);
    Ints starts(rank, 0), limits = x->shape.dims, strides(rank, 1);
    Ints first(rank, 0), last = w->shape.dims, apart(rank, 1);
    for (size_t s = 0; s < taps.size(); ++s) {
      const Positions& p = taps_[s].positions[static_cast<size_t>(phases[s])];
      const auto of_input = static_cast<size_t>(dims_.lhs_spatial[s]), tap = static_cast<size_t>(dims_.rhs_spatial[s]);
      starts[of_input] = p.start;
      limits[of_input] = p.start + (p.count - 1) * taps_[s].stride + 1;
      strides[of_input] = taps_[s].stride;
      padding[rank + s] = p.padding;
      first[tap] = p.taps.front();
      last[tap] = p.taps.back() + 1;
      if (p.taps.size() > 1) apart[tap] = p.taps[1] - p.taps[0];
    }
    x = b_.slice(x, starts, limits, strides);
    w = b_.slice(w, first, last, apart);
    Ints positions = {dims_.lhs_batch}, weights = dims_.rhs_spatial;
    positions.insert(positions.end(), dims_.lhs_spatial.begin(), dims_.lhs_spatial.end());
    positions.push_back(dims_.lhs_feature);
    weights.insert(weights.end(), {dims_.rhs_output_feature, dims_.rhs_input_feature});
    x = b_.transpose(x, positions);
    w = b_.transpose(w, weights);
    const int64_t deep = std::ssize(positions) - 1;
    Ints sizes(w->shape.dims.begin(), w->shape.dims.end() - 1);
    sizes.insert(sizes.end(), x->shape.dims.begin(), x->shape.dims.end() - 1);
    Instruction* dot = b_.computation()->add(kDot, Shape::array(sums(), sizes), {w, x}, op_.name);
    dot->attrs.dot = DotDims{{}, {}, {deep}, {deep}};
    return made = b_.pad(dot, b_.constant(Literal(Shape::scalar(sums()))), padding);
  }

  /// The phases of the dims from `s` on put between each other, `chosen` those of the dims before.
  Instruction* joined(size_t s, const std::vector<size_t>& chosen) {
    if (s == taps_.size()) return phase(chosen);
    Builder::Values phases;
    Ints sizes, apart;
    for (size_t r = 0; r < taps_[s].phases.size(); ++r) {
      std::vector<size_t> next = chosen;
      next.push_back(r);
      Instruction* y = joined(s + 1, next);
      sizes = apart = y->shape.dims;
      apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(s) + 3, 1);
      phases.push_back(b_.reshape(y, apart));
    }
    if (phases.size() == 1) return b_.reshape(phases[0], sizes);
    sizes[s + 2] *= std::ssize(phases);
    return b_.reshape(b_.concat_in_dim(phases, static_cast<int64_t>(s) + 3), sizes);
  }

  /// [features, batch, results...] of the phases.
  Instruction* phase(const std::vector<size_t>& chosen) {
    Instruction* sum = nullptr;
    add_terms(chosen, {}, sum);
    if (!sum) {
      Ints sizes = {features(), batch()};
      for (const TapsDim& d : taps_) sizes.push_back(d.results);
      sum = b_.broadcast(b_.constant(Literal(Shape::scalar(sums()))), sizes);
    }
    return op_.shape.type == sums() ? sum : b_.convert(sum, op_.shape.type);
  }

  /// The phases' terms of all taps that begin with these.
  void add_terms(const std::vector<size_t>& chosen, const std::vector<Tap>& taps, Instruction*& sum) {
    if (taps.size() == taps_.size()) {
      Instruction* one = term(taps);
      sum = sum ? b_.binary(kAdd, sum, one) : one;
      return;
    }
    const size_t s = taps.size();
    for (const Tap& tap : taps_[s].phases[chosen[s]]) {
      std::vector<Tap> next = taps;
      next.push_back(tap);
      add_terms(chosen, next, sum);
    }
  }

  /// What the taps add to [features, batch, results...].
  Instruction* term(const std::vector<Tap>& taps) {
    Ints starts, limits, sizes = {features(), batch()};
    for (const Tap& tap : taps) {
      starts.push_back(tap.number);
      limits.push_back(tap.number + 1);
    }
    starts.insert(starts.end(), {0, 0});
    limits.insert(limits.end(), {features(), batch()});
    for (size_t s = 0; s < taps.size(); ++s) {
      starts.push_back(taps[s].shift - taps_[s].first);
      limits.push_back(starts.back() + taps_[s].results);
      sizes.push_back(taps_[s].results);
    }
    return b_.reshape(b_.slice(product(taps), starts, limits), sizes);
  }

  Builder& b_;
  const Instruction& op_;
  const ConvDims& dims_;
  std::vector<TapsDim> taps_;
  std::map<Ints, Instruction*> products_;  // by their phases of positions
};

/// Neighbouring positions of a few planes lie together already: 5x5 from one to three took 2.8 times as long summed so.
/// By the labels alone: the pass `layouts` may choose another order, and a compiler of what we print would see that.
bool enough_inputs(const Instruction& op) {
  constexpr int64_t kFew = 2, kFewPlanes = 8;
  const Shape& x = op.operand(0)->shape;
  const int64_t feature = op.attrs.conv->lhs_feature;
  const bool planes = feature + 1 != x.rank();
  return x.dims[static_cast<size_t>(feature)] >= (planes ? kFewPlanes : kFew);
}

/// Windows of several taps, few enough to be written out one by one, with phases of results or of positions. Taps
/// that share no positions gain nothing by it; of two a phase on average 4x2 to three features took 1.3 times as long.
bool has_few_taps(const Instruction& op) {
  constexpr int64_t kMostTaps = 64, kMostPhases = 8;
  int64_t taps = 1, strides = 1;
  for (const WindowDim& w : op.attrs.window) {
    if (std::min(w.stride, w.lhs_dilate) != 1 || std::max(w.stride, w.lhs_dilate) > kMostPhases) return false;
    if (w.size == 0 || w.size > kMostTaps / taps) return false;
    taps *= w.size;
    strides *= w.stride;
  }
  return taps > (strides > 1 ? 2 * strides : 1);
}

/// Sizes that all this is worth it for.
struct Worth {
  int64_t most_features, fewest_inputs, fewest_results, most_product_bytes;
};

Worth worth_of(const Instruction& op, int64_t features, int64_t inputs, const TargetInfo& target) {
  constexpr int64_t kImage = 3, kFew = 64, kMany = 1024, kPartOfLastLevel = 6;
  const bool gaps = std::ranges::any_of(op.attrs.window, [](const WindowDim& w) { return w.lhs_dilate > 1; });
  const bool even = std::ranges::all_of(op.attrs.window,
                                        [](const WindowDim& w) { return w.size == 1 || w.size % w.lhs_dilate == 0; });
  const bool strides = std::ranges::any_of(op.attrs.window, [](const WindowDim& w) { return w.stride > 1; });
  const int64_t lanes = std::max(1, target.vector_bytes / dtype_bytes(working_type(op.shape.type)));
  const bool fills = inputs % lanes == 0;
  Worth w;
  // Up to six features take 0.2 to 0.8 of the time, eight 0.9 to 1.1. With gaps that share out the taps evenly up to
  // four: what expand_dilated makes of more has too many features to be seen here, whoever compiles what we print. What
  // it leaves would be packed tap by tap. (A Zen 4, 3x3 with gaps of two: to five features out of 3, 8 and 32 0.14,
  // 0.24 and 0.46 of the time, to eight out of 3, 8 and 24 0.27, 0.47 and 0.93, to ten out of 3 and 7 0.38 and 0.39, of
  // f64 to eight out of 3 and 8 0.52 and 1.36; other windows to ten 0.36 to 0.78. They compile in 50 ms, not 13.)
  // With strides the taps share less: to four features out of many, which would be summed along these, 0.5 to 0.9, to
  // six or out of few 1.1 to 2.4.
  w.most_features = strides || (gaps && even) ? 4 : gaps && inputs < lanes / 2 ? 10 : 6;
  w.fewest_inputs = strides ? lanes : 1;
  // Fewer results are soon summed in any way. Where input features fill vectors, and there are no gaps to skip, sums
  // along them are good ones: of 162 results and 32 features three kernels took 1.3 times as long, of 13 features 0.24.
  // Images to five features and pooled, of 810 results, took 1.6 times as long.
  w.fewest_results = gaps || (features <= kImage && !fills) ? kFew : kMany;
  // Products of a quarter of the last level's size, which two cores and the operands share, took as long as without.
  w.most_product_bytes = target.llc_bytes / kPartOfLastLevel;
  return w;
}

}  // namespace

Instruction* expand_few_features(Builder& b, const Instruction& op, const TargetInfo& target) {
  const Attributes& a = op.attrs;
  const DType input = op.operand(0)->shape.type;
  if (!is_float(op.shape.type) || !is_float(input) || !has_zero(input)) return nullptr;
  if (a.feature_group_count * a.batch_group_count != 1 || !has_few_taps(op) || !enough_inputs(op)) return nullptr;
  FewFeatures few(b, op);
  if (!few.sees_all()) return nullptr;
  const int64_t inputs = op.operand(0)->shape.dims[static_cast<size_t>(a.conv->lhs_feature)];
  const Worth worth = worth_of(op, few.features(), inputs, target);
  if (few.features() > worth.most_features || inputs < worth.fewest_inputs) return nullptr;
  if (op.shape.element_count() < worth.fewest_results) return nullptr;
  const int64_t bytes = few.product_elements() * dtype_bytes(working_type(op.shape.type));
  return bytes <= worth.most_product_bytes ? few.result() : nullptr;
}

}  // namespace hlojit

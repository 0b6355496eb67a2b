// Dots with any dimensions in any role, and convolutions.
#include <algorithm>
#include <cmath>

#include "layout/lists.h"
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {

using enum Opcode;

Instruction* factor(Draft& s, Instruction* x) {
  if (is_complex(x->shape.type)) {
    return s.b.op(kComplex, {factor(s, s.b.unary(kReal, x)), factor(s, s.b.unary(kImag, x))});
  }
  if (!is_float(x->shape.type) || (s.draw.tame && s.random.chance(0.6))) return x;
  return s.small(x, dtype_bits(x->shape.type) == 16 ? 1 : 4);
}

void widen(Draft& s, Instruction* product) {
  using enum DType;
  DType t = product->shape.type;
  if (is_integral(t) && dtype_bits(t) < 32) product->shape.type = is_signed(t) ? kS32 : kU32;
  if (is_narrow_float(t)) product->shape.type = kF32;
  if (t == kF32 && s.random.chance(0.5)) product->shape.type = kF64;
  product->shape.layout.element_size_in_bits = 0;
}

namespace {

// The type of the other factor: floats may be of any precision.
DType partner(Draft& s, DType type) {
  if (!is_float(type) || !s.random.chance(0.1)) return type;
  return s.random.pick(std::vector{DType::kF32, DType::kF64, DType::kBF16, DType::kF16});
}

Instruction* dot(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() <= 4; });
  if (!x) return nullptr;
  DotDims dims;
  struct Dim {
    int64_t size, role;  // role: lhs dimension that it is paired with, or -1: free
    bool batch;
  };
  std::vector<Dim> other;
  int64_t elements = 1;
  for (int64_t d = 0; d < x->shape.rank(); ++d) {
    int64_t size = x->shape.dims[static_cast<size_t>(d)];
    int64_t role = s.random.below(5);
    if (role == 0)
      other.push_back({size, d, true});
    else if (role <= 2)
      other.push_back({size, d, false});
    if (role == 0 || role > 2) elements *= std::max<int64_t>(size, 1);
  }
  for (int64_t n = s.random.between(0, 2); n > 0; --n) {
    int64_t size = s.random.pick(s.draw.sizes);
    if (elements * std::max<int64_t>(size, 1) > 4 * s.draw.most_elements) continue;
    elements *= std::max<int64_t>(size, 1);
    other.push_back({size, -1, false});
  }
  s.random.shuffle(other);
  Ints sizes;
  for (size_t k = 0; k < other.size(); ++k) {
    sizes.push_back(other[k].size);
    if (other[k].role < 0) continue;
    (other[k].batch ? dims.lhs_batch : dims.lhs_contracting).push_back(other[k].role);
    (other[k].batch ? dims.rhs_batch : dims.rhs_contracting).push_back(static_cast<int64_t>(k));
  }
  if (!s.fits(sizes) || elements > 4 * s.draw.most_elements) return nullptr;
  Instruction* y = s.of(partner(s, x->shape.type), sizes);
  bool swap = s.random.chance(0.3);
  Instruction* l = factor(s, x);
  Instruction* r = factor(s, y);
  if (swap) {
    std::swap(l, r);
    std::swap(dims.lhs_batch, dims.rhs_batch);
    std::swap(dims.lhs_contracting, dims.rhs_contracting);
  }
  Instruction* product = s.b.dot_general(l, r, dims);
  if (s.random.chance(0.15)) widen(s, product);
  return product;
}

// Plain matrix product of odd sizes, what the micro-kernels are for.
Instruction* matmul(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() == 2 && is_float(v.type); });
  if (!x) return nullptr;
  int64_t k = s.random.below(2);
  Ints sizes = {x->shape.dims[static_cast<size_t>(k)], s.random.pick(s.draw.sizes)};
  int64_t at = s.random.below(2);
  if (at == 1) std::swap(sizes[0], sizes[1]);
  if (!s.fits(sizes)) return nullptr;
  DotDims dims;
  dims.lhs_contracting = {k};
  dims.rhs_contracting = {at};
  Instruction* y = s.of(x->shape.type, sizes);
  Instruction* product = s.b.dot_general(factor(s, x), factor(s, y), dims);
  if (s.random.chance(0.4)) product = s.b.op(kAdd, {product, s.of(product->shape)});
  return product;
}

// As many products as there are batches, maybe none, of operands that are often read where they lie.
Instruction* batched_matmul(Draft& s) {
  int64_t batch = s.random.pick(Ints{0, 0, 1, 2, 3}), m = s.random.between(4, 40), k = s.random.between(4, 40);
  int64_t n = s.random.pick(Ints{8, 16, 17, 32, 40});
  bool plain = s.random.chance(0.4);  // a matrix, not a batch of them
  Ints left = plain ? Ints{m, k} : Ints{batch, m, k}, right = plain ? Ints{k, n} : Ints{batch, k, n};
  DotDims dims;
  if (!plain) dims.lhs_batch = dims.rhs_batch = {0};
  dims.lhs_contracting = {plain ? 1 : 2};
  dims.rhs_contracting = {plain ? 0 : 1};
  DType t = s.random.chance(0.6) ? DType::kF32 : s.type();
  auto side = [&](const Ints& sizes) {
    Instruction* x = s.of(t, sizes);
    return s.random.chance(0.6) && !is_complex(t) && dtype_bits(t) >= 32 ? x : factor(s, x);
  };
  return s.b.dot_general(side(left), side(right), dims);
}

// Rows and columns of two dims each, between which what is contracted may stand: a product part by part.
Instruction* product_in_parts(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  DType t = s.random.chance(0.6) ? DType::kF32 : s.type();
  const int64_t k = s.random.pick(Ints{3, 8, 16, 30});
  auto side = [&](const Ints& along, int64_t& contracted) {
    Ints sizes = {s.random.between(1, 5), s.random.pick(along)};
    contracted = s.random.between(0, 2);
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(contracted), k);
    return factor(s, s.of(t, sizes));
  };
  int64_t left = 0, right = 0;
  Instruction* x = side({4, 7, 8, 12, 20, 33}, left);
  Instruction* y = side({5, 16, 31, 32, 40, 50}, right);
  DotDims dims;
  dims.lhs_contracting = {left};
  dims.rhs_contracting = {right};
  Instruction* product = s.b.dot_general(x, y, dims);
  return s.random.chance(0.4) ? s.b.op(kAdd, {product, s.of(product->shape)}) : product;
}

// Rows of the left side, in groups whose sizes are values, each with a matrix of its own; or the same
// with the groups along what is contracted.
Instruction* ragged_dot(Draft& s) {
  DType t = s.type();
  int64_t m = s.random.pick(s.draw.sizes), k = s.random.pick(s.draw.sizes), n = s.random.between(1, 9);
  int64_t g = s.random.between(1, 4);
  bool contracting = s.random.chance(0.4);
  Ints lhs = {m, k}, rhs = contracting ? Ints{k, n} : Ints{g, k, n};
  if (!s.fits({g, m, k, n})) return nullptr;
  Attributes a;
  a.dot = DotDims{{}, {}, {1}, {contracting ? 0 : 1}};
  a.other.emplace_back("lhs_ragged_dims", contracting ? "{1}" : "{0}");
  a.other.emplace_back("rhs_group_dims", contracting ? "{}" : "{0}");
  Instruction* sizes = s.of(DType::kS32, {g});
  sizes = s.b.op(kClamp, {s.b.constant(DType::kS32, 0), sizes, s.b.constant(DType::kS32, 9)});
  return s.b.op(kRaggedDot, {factor(s, s.of(t, lhs)), factor(s, s.of(t, rhs)), sizes}, std::move(a));
}

// Blocks of narrow floats that share a scale each.
Instruction* scaled_dot(Draft& s) {
  using enum DType;
  DType t = s.random.pick(std::vector{kF8E4M3FN, kF8E5M2, kF4E2M1FN, kBF16});
  int64_t m = s.random.between(1, 9), n = s.random.between(1, 9), blocks = s.random.between(1, 4);
  int64_t k = blocks * s.random.pick(Ints{1, 2, 16, 32});
  Attributes a;
  a.dot = DotDims{{}, {}, {1}, {1}};
  DType scale = t == kBF16 ? kBF16 : kF8E8M0FNU;
  Instruction *one = s.splat(scale, 1, {m, blocks}), *two = s.splat(scale, 2, {n, blocks});
  return s.b.op(kScaledDot, Shape::array(kF32, {m, n}), {s.of(t, {m, k}), s.of(t, {n, k}), one, two}, std::move(a));
}

// Factors with gaps between their elements, large enough for micro-kernels, which read what lies close where it lies.
Instruction* spread_product(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  DType t = s.random.chance(0.7) ? DType::kF32 : DType::kF64;
  int64_t m = s.random.pick(Ints{4, 12, 33, 64}), n = s.random.pick(Ints{16, 32, 33, 64});
  int64_t k = s.random.pick(Ints{16, 33, 64, 100});
  auto spread = [&](const Ints& sizes) {
    Shape shape = Shape::array(t, sizes);
    if (s.random.chance(0.8)) shape.layout.element_size_in_bits = 2 * dtype_bits(t);
    Instruction* x = s.b.parameter(shape);
    s.draw.pinned.insert(x);
    return x;
  };
  DotDims dims;
  dims.lhs_contracting = {1};
  dims.rhs_contracting = {s.random.below(2)};
  return s.b.dot_general(spread({m, k}), spread(dims.rhs_contracting[0] == 0 ? Ints{k, n} : Ints{n, k}), dims);
}

const Ints kFeatures = {1, 3, 8, 16, 17, 32};
const Ints kPageOfFeatures = {1021, 1023, 1024};  // of floats
const Ints kLine = {7, 12, 13, 15, 16, 24, 26, 32};
constexpr int64_t kMostWork = 400'000;  // multiplications, which the evaluator does one by one

// Infinite at one index of a spatial dim: where a window does not meet it, it must not be multiplied, be it by zero.
Instruction* with_infinity(Draft& s, Instruction* x, const Ints& spatial) {
  if (!is_float(x->shape.type) || dtype_bits(x->shape.type) < 16 || spatial.empty()) return x;
  const Ints& sizes = x->shape.dims;
  const int64_t dim = s.random.pick(spatial), n = sizes[static_cast<size_t>(dim)];
  if (n == 0) return x;
  Instruction* at = s.b.iota(Shape::array(DType::kS32, sizes), dim);
  Instruction* here =
      s.b.compare(Direction::kEq, at, s.splat(DType::kS32, static_cast<double>(s.random.below(n)), sizes));
  return s.b.select(here, s.splat(x->shape.type, HUGE_VAL, sizes), x);
}

// What is drawn: a few of everything; as many features as micro-kernels want, of operands that were moved; images that
// become few features, which are summed tap by tap; filters whose rows lie nearly a page apart; images of many features
// with gaps, of which each phase of the result sees other taps; lines of about as many positions as a matrix register
// has rows.
enum class Drawn { kSmall, kWide, kImage, kNearPages, kGaps, kLines };

// Dimensions in any order, windows that stride, dilate, turn round and reach over the edge, groups of
// features or of the batch.
Instruction* convolution_of(Draft& s, Drawn drawn) {
  const bool wide = drawn != Drawn::kSmall, image = drawn == Drawn::kImage, pages = drawn == Drawn::kNearPages,
             spread = drawn == Drawn::kGaps, lines = drawn == Drawn::kLines;
  DType t = s.random.chance(0.5) ? DType::kF32 : s.type();
  if (image && !is_float(t)) t = DType::kBF16;
  if (lines) t = s.random.chance(0.6) ? DType::kBF16 : DType::kS8;
  size_t space =
      static_cast<size_t>(!image && s.random.chance(0.1) ? s.random.pick(Ints{0, 3}) : s.random.between(1, 2));
  if (pages) space = 1;
  if (lines) space = static_cast<size_t>(s.random.between(1, 2));
  int64_t groups = !image && !pages && !lines && s.random.chance(0.3) ? s.random.between(2, 4) : 1;
  bool of_batch = s.random.chance(0.3);
  int64_t in = s.random.between(1, 4), out = groups * s.random.between(1, s.random.chance(0.2) ? 20 : 4);
  if (wide) in = s.random.pick(kFeatures), out = groups * s.random.pick(kFeatures);
  if (image) out = s.random.between(1, 7);
  if (pages) in = 1, out = s.random.pick(kPageOfFeatures);
  if (lines) in = s.random.pick(Ints{32, 32, 64, 24}), out = s.random.between(4, 12);
  int64_t batch = pages ? 1 : s.random.between(1, lines ? 2 : 3) * (of_batch ? groups : 1);
  int64_t rank = static_cast<int64_t>(space) + 2;
  Ints lhs = s.permutation(rank), rhs = s.permutation(rank), result = s.permutation(rank);
  if (s.random.chance(0.3)) lhs = rhs = result = s.permutation(rank);
  if (spread || (lines && s.random.chance(0.7))) {  // from the batch to the features, as they lie
    lhs = {0, rank - 1};
    for (int64_t d = 1; d + 1 < rank; ++d) lhs.push_back(d);
    rhs = result = lhs;
  }
  const bool gradient = wide && !image && !pages && !spread && !lines &&
                        s.random.chance(0.3);  // of weights: the input's features are what is called its batch
  if (gradient) batch = s.random.pick(Ints{8, 12, 16, 20}) * (of_batch ? groups : 1);
  // Features are neighbours, and rows read where they lie.
  if (wide && (gradient || s.random.chance(lines ? 0.9 : 0.5))) {
    auto last = [&](Ints& order, size_t which) { std::swap(order[which], *std::ranges::max_element(order)); };
    last(lhs, gradient ? 0 : 1);
    last(rhs, 1);
    last(result, 1);
    auto before_last = std::ranges::find(result, rank - 2);
    if (gradient) std::swap(result[0], *before_last);
  }
  ConvDims dims{lhs[0], lhs[1], rhs[0], rhs[1], result[0], result[1], {}, {}, {}};
  dims.lhs_spatial.assign(lhs.begin() + 2, lhs.end());
  dims.rhs_spatial.assign(rhs.begin() + 2, rhs.end());
  dims.out_spatial.assign(result.begin() + 2, result.end());
  Ints x_sizes(lhs.size()), k_sizes(rhs.size());
  auto set = [](Ints& sizes, int64_t at, int64_t n) { sizes[static_cast<size_t>(at)] = n; };
  set(x_sizes, dims.lhs_batch, batch);
  set(x_sizes, dims.lhs_feature, of_batch ? in : in * groups);
  set(k_sizes, dims.rhs_input_feature, in);
  set(k_sizes, dims.rhs_output_feature, out);
  std::vector<WindowDim> window;
  for (size_t d = 0; d < space; ++d) {
    WindowDim w;
    int64_t size = s.random.chance(0.02) ? 0 : s.random.between(s.random.chance(0.1) ? 1 : 2, space > 1 ? 9 : 20);
    if (image) size = space > 1 ? s.random.between(14, 26) : s.random.between(150, 400);
    if (pages) size = s.random.between(54, 60);
    w.size = pages ? s.random.between(3, 6) : s.random.between(1, lines ? 3 : 4);
    w.stride = s.random.chance(image ? 0.9 : 0.6) ? 1 : s.random.between(2, 3);
    w.pad_low = s.random.between(-1, 3);
    w.pad_high = s.random.between(-1, 3);
    if (s.random.chance(0.2)) w.lhs_dilate = s.random.between(2, 3);
    if (s.random.chance(0.2)) w.rhs_dilate = s.random.between(2, 3);
    w.reversal = s.random.chance(pages ? 0.5 : 0.15);
    if (spread) {
      w.lhs_dilate = s.random.between(1, 4);
      w.pad_low = w.pad_high = s.random.between(-1, 1);
    }
    if (lines) {
      if (s.random.chance(0.6)) w.pad_low = w.pad_high = 0;
      const int64_t reach = (w.size - 1) * w.rhs_dilate + 1 - w.pad_low - w.pad_high;
      const int64_t positions = d + 1 == space ? s.random.pick(kLine) : s.random.between(1, 2);
      w.lhs_dilate = 1;
      size = std::max<int64_t>((positions - 1) * w.stride + reach, 0);
    }
    set(x_sizes, dims.lhs_spatial[d], size);
    set(k_sizes, dims.rhs_spatial[d], w.size);
    window.push_back(w);
  }
  if (wide ? product(x_sizes) * product(k_sizes) > kMostWork * in : !s.fits(x_sizes)) return nullptr;
  auto side = [&](DType type, const Ints& sizes) {
    if (lines) return s.fresh(type, sizes);
    return wide ? moved(s, type, sizes) : s.of(type, sizes);
  };
  Instruction* x = factor(s, side(t, x_sizes));
  const bool gaps = std::ranges::any_of(window, [](const WindowDim& w) { return w.lhs_dilate > 1; });
  if (s.random.chance(gaps ? 0.4 : 0.05)) x = with_infinity(s, x, dims.lhs_spatial);
  Instruction* k = factor(s, side(partner(s, t), k_sizes));
  if (spread && s.random.chance(0.3)) k = with_infinity(s, k, dims.rhs_spatial);
  Instruction* made = s.b.conv(x, k, window, dims, of_batch ? 1 : groups, of_batch ? groups : 1);
  if (s.random.chance(dtype_bits(t) == 8 ? 0.6 : 0.15)) widen(s, made);
  return made;
}

Instruction* convolution(Draft& s) { return convolution_of(s, Drawn::kSmall); }
Instruction* wide_convolution(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  if (s.random.chance(0.1)) return convolution_of(s, Drawn::kNearPages);
  if (s.random.chance(0.4)) return convolution_of(s, Drawn::kLines);
  return convolution_of(s, s.random.chance(0.3) ? Drawn::kImage : Drawn::kWide);
}
Instruction* spread_convolution(Draft& s) { return s.draw.depth > 0 ? nullptr : convolution_of(s, Drawn::kGaps); }

}  // namespace

Family dot_family() { return {"dots", {{dot, 3}, {matmul, 3}}, 0.35}; }
Family batched_dot_family() { return {"batched products", {{batched_matmul, 14}, {product_in_parts, 6}}, 0.06}; }
Family spread_dot_family() { return {"spread products", {{spread_product, 20}}, 0.03}; }
Family wide_convolution_family() { return {"wide convolutions", {{wide_convolution, 20}}, 0.05}; }
Family spread_convolution_family() { return {"images with gaps", {{spread_convolution, 20}}, 0.03}; }
Family convolution_family() {
  return {"convolution and other dots", {{convolution, 6}, {ragged_dot, 2}, {scaled_dot, 1}}, 0.08};
}

}  // namespace hlojit::tools::fuzz

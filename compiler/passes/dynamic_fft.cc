// A transform whose length n is known at run time only, by Bluestein's identity jk = (j² + k² - (k-j)²) / 2:
//
//     X[k] = w[k] Σ x[j] w[j] · conj(w[k - j]),    w[j] = exp(-iπ j² / n),
//
// a convolution, and so a product of transforms of one fixed length, a power of two that holds twice the bound.
// j² is taken modulo 2n, the period of w, before it becomes an angle. Several dims are transformed one by one.
#include "compiler/passes/dynamic_fft.h"

#include <bit>
#include <numbers>
#include <numeric>

namespace hlojit {
namespace {

using enum Opcode;

// Lines along the last dimension, and what is made of them.
class Lines {
 public:
  Lines(Builder& b, bool inverse) : b_(b), inverse_(inverse) {}

  /// The transform of the first n elements of each line, in as many.
  Instruction* transformed(Instruction* x, Instruction* n) {
    const int64_t bound = x->shape.dims.back(), last = x->shape.rank() - 1;
    if (bound == 0) return x;
    const auto length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * bound - 1)));
    auto [cosine, sine] = chirp(bound, n, component_type(x->shape.type));
    Instruction* wave = b_.binary(kComplex, cosine, inverse_ ? sine : b_.unary(kNegate, sine));
    Instruction* conjugate = b_.binary(kComplex, cosine, inverse_ ? b_.unary(kNegate, sine) : sine);
    Instruction* spread = b_.broadcast(wave, leading(x));
    Instruction* product = cut(b_.binary(kMultiply, x, spread), n);
    std::vector<PadDim> padding(x->shape.dims.size());
    padding[last].high = length - bound;
    Instruction* padded = b_.pad(product, zero(x->shape.type), padding);

    // conj(w) is even: its other half stands at the end of the circle.
    conjugate = cut(conjugate, n);
    Instruction* around = b_.rev(b_.slice_in_dim(conjugate, 1, bound, 1, 0), {0});
    PadDim gap{.low = length - 2 * bound + 1, .high = 0, .interior = 0};
    around = b_.pad(around, zero(x->shape.type), {gap});
    Instruction* circle = b_.concat_in_dim({conjugate, around}, 0);

    Instruction* both = b_.binary(kMultiply, fft(padded, FftType::kFft, length),
                                  b_.broadcast(fft(circle, FftType::kFft, length), leading(x)));
    Instruction* sums = b_.slice_in_dim(fft(both, FftType::kIfft, length), 0, bound, 1, last);
    Instruction* made = b_.binary(kMultiply, sums, spread);
    if (!inverse_) return made;
    Instruction* size = b_.convert(b_.convert(n, component_type(x->shape.type)), x->shape.type);
    return b_.binary(kDivide, made, b_.broadcast(size, x->shape.dims));
  }

  /// Bins of n real values: their transform is that of all n bins, each but the first and the middle one twice.
  Instruction* all_bins(Instruction* x, Instruction* bins, Instruction* n, int64_t bound) {
    const int64_t half = x->shape.dims.back();
    const DType real = component_type(x->shape.type);
    Instruction* k = b_.iota(Shape::array(DType::kS32, {half}), 0);
    Instruction* twice = b_.binary(kMultiply, k, s32(2));
    Instruction* single = b_.binary(kOr, b_.compare(Direction::kEq, k, b_.broadcast(s32(0), {half})),
                                    b_.compare(Direction::kEq, twice, b_.broadcast(n, {half})));
    auto all = [&](double value) { return b_.broadcast(b_.constant(real, value), {half}); };
    Instruction* weight = b_.convert(b_.select(single, all(1), all(2)), x->shape.type);
    Instruction* weighted = b_.binary(kMultiply, x, b_.broadcast(weight, leading(x)));
    std::vector<PadDim> padding(x->shape.dims.size());
    padding.back().high = bound - half;
    return b_.pad(cut(weighted, bins), zero(x->shape.type), padding);
  }

  Instruction* fft(Instruction* x, FftType type, int64_t length) {
    Attributes a;
    a.fft_type = type;
    a.fft_length = {length};
    return b_.op(kFft, {x}, std::move(a));
  }

 private:
  static Ints leading(const Instruction* x) { return {x->shape.dims.begin(), x->shape.dims.end() - 1}; }
  Instruction* s32(int64_t value) { return b_.constant(DType::kS32, static_cast<double>(value)); }
  Instruction* zero(DType type) { return b_.constant(Literal(Shape::scalar(type))); }

  // Zeros from the n-th element of a line on.
  Instruction* cut(Instruction* x, Instruction* n) {
    Instruction* at = b_.iota(Shape::array(DType::kS32, x->shape.dims), x->shape.rank() - 1);
    Instruction* inside = b_.compare(Direction::kLt, at, b_.broadcast(n, x->shape.dims));
    return b_.select(inside, x, b_.broadcast(zero(x->shape.type), x->shape.dims));
  }

  // cos and sin of π j² / n.
  std::pair<Instruction*, Instruction*> chirp(int64_t bound, Instruction* n, DType type) {
    Instruction* j = b_.iota(Shape::array(DType::kS64, {bound}), 0);
    Instruction* period = b_.binary(kMultiply, b_.convert(n, DType::kS64), b_.constant(DType::kS64, 2));
    Instruction* turns = b_.convert(b_.binary(kRemainder, b_.binary(kMultiply, j, j), period), DType::kF64);
    Instruction* step = b_.binary(kDivide, b_.constant(DType::kF64, std::numbers::pi), b_.convert(n, DType::kF64));
    Instruction* angle = b_.binary(kMultiply, turns, step);
    return {b_.convert(b_.unary(kCosine, angle), type), b_.convert(b_.unary(kSine, angle), type)};
  }

  Builder& b_;
  const bool inverse_;
};

}  // namespace

Instruction* expand_dynamic_fft(Builder& b, const Instruction& op, DimSizes& sizes) {
  const FftType type = op.attrs.fft_type;
  const Ints& lengths = op.attrs.fft_length;
  const bool from_bins = type == FftType::kIrfft;
  Lines lines(b, from_bins || type == FftType::kIfft);
  Instruction* x = op.operand(0);
  const int64_t last = x->shape.rank() - 1, first = last + 1 - std::ssize(lengths);

  auto real_axis = [&] {
    Instruction*& n = sizes[last];
    const int64_t bound = lengths.back();
    if (!n) {
      x = lines.fft(x, type, bound);
    } else if (from_bins) {
      Instruction* bins = n;
      Instruction* twice = b.binary(kMultiply, bins, b.constant(DType::kS32, 2));
      n = b.binary(kMaximum, b.binary(kSubtract, twice, b.constant(DType::kS32, bound % 2 == 0 ? 2 : 1)),
                   b.constant(DType::kS32, 0));
      x = b.unary(kReal, lines.transformed(lines.all_bins(x, bins, n, bound), n));
    } else {
      x = lines.transformed(b.convert(x, complex_of(x->shape.type)), n);
      const int64_t half = bound == 0 ? 0 : bound / 2 + 1;
      x = b.slice_in_dim(x, 0, half, 1, last);
      Instruction* bins = b.binary(kAdd, b.binary(kDivide, n, b.constant(DType::kS32, 2)), b.constant(DType::kS32, 1));
      n = b.select(b.compare(Direction::kEq, n, b.constant(DType::kS32, 0)), n, bins);
    }
  };
  auto complex_axis = [&](int64_t d) {
    Ints order(x->shape.dims.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[d], order[last]);
    Instruction* turned = b.transpose(x, order);
    turned = sizes[d] ? lines.transformed(turned, sizes[d])
                      : lines.fft(turned, from_bins || type == FftType::kIfft ? FftType::kIfft : FftType::kFft,
                                  turned->shape.dims.back());
    x = b.transpose(turned, order);
  };

  const bool real = from_bins || type == FftType::kRfft;
  if (type == FftType::kRfft) real_axis();
  for (int64_t d = real ? last - 1 : last; d >= first; --d) complex_axis(d);
  if (from_bins) real_axis();
  return x;
}

}  // namespace hlojit

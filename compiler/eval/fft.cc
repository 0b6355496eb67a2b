// fft by its definition, one axis after the other: n^2 terms an axis, any length. Every sum is in
// f64 with the twiddle looked up by (j k) mod n, so that angles stay small and exact lengths exact.
#include <cmath>
#include <complex>
#include <numbers>

#include "compiler/eval/ops.h"
#include "compiler/eval/stop.h"
#include "compiler/eval/strided.h"

namespace hlojit::eval {
namespace {

using Z = std::complex<double>;

struct Array {
  Ints dims;
  std::vector<Z> values;
};

// One line of n values to `count` values. A real inverse (half == true) reads n/2 + 1 inputs and
// takes the rest as their conjugates, ignoring the imaginary parts of bin 0 and of Nyquist's.
void line(const std::vector<Z>& in, std::vector<Z>& out, const std::vector<Z>& twiddles, bool half) {
  const int64_t n = static_cast<int64_t>(twiddles.size());
  for (size_t k = 0; k < out.size(); ++k) {
    check_stop();
    Z sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      Z x;
      if (!half) {
        x = in[j];
      } else if (j == 0 || 2 * j == n) {
        x = in[j].real();
      } else {
        x = 2 * j < n ? in[j] : std::conj(in[n - j]);
      }
      const Z w = twiddles[static_cast<__int128>(j) * static_cast<int64_t>(k) % n];
      sum += Z(x.real() * w.real() - x.imag() * w.imag(), x.real() * w.imag() + x.imag() * w.real());
    }
    out[k] = sum;
  }
}

// Transforms dimension `d` of length n into `count` results a line.
Array along(const Array& a, size_t d, int64_t n, int64_t count, bool inverse, bool half) {
  std::vector<Z> twiddles(n);
  for (int64_t i = 0; i < n; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    twiddles[i] = {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
  }
  Array r{a.dims, {}};
  r.dims[d] = count;
  r.values.resize(product(r.dims));
  const Ints from = row_major_strides(a.dims), to = row_major_strides(r.dims);
  Ints others = a.dims;
  others[d] = 1;
  std::vector<Z> in(a.dims[d]), out(count);
  for_each_offset(others, from, to, [&](int64_t source, int64_t target) {
    for (size_t j = 0; j < in.size(); ++j) in[j] = a.values[source + j * from[d]];
    line(in, out, twiddles, half);
    for (size_t k = 0; k < out.size(); ++k) {
      r.values[target + k * to[d]] = inverse ? out[k] / static_cast<double>(n) : out[k];
    }
  });
  return r;
}

Literal fft(const Instruction& op, Operands in) {
  Literal result(op.shape);
  const Ints& lengths = op.attrs.fft_length;
  const FftType type = op.attrs.fft_type;
  if (op.shape.element_count() == 0) return result;
  Array a{in[0]->shape().dims, std::vector<Z>(in[0]->shape().element_count())};
  convert(in[0]->shape().type, DType::kC128, in[0]->shape().element_count(), in[0]->bytes().data(), a.values.data());
  const size_t rank = a.dims.size(), axes = lengths.size();
  const bool inverse = type == FftType::kIfft || type == FftType::kIrfft;
  // The real transform of the last axis comes first forwards and last backwards.
  if (type == FftType::kRfft) a = along(a, rank - 1, lengths.back(), lengths.back() / 2 + 1, false, false);
  const bool real = type == FftType::kRfft || type == FftType::kIrfft;
  for (size_t i = 0; i + (real ? 1 : 0) < axes; ++i) {
    a = along(a, rank - axes + i, lengths[i], lengths[i], inverse, false);
  }
  if (type == FftType::kIrfft) a = along(a, rank - 1, lengths.back(), lengths.back(), true, true);
  convert(DType::kC128, op.shape.type, op.shape.element_count(), a.values.data(), result.bytes().data());
  return result;
}

constexpr Row kOps[] = {
    {Opcode::kFft, [](const Call& c) { return fft(c.op, c.in); }},
};

}  // namespace

std::span<const Row> fft_ops() { return kOps; }

}  // namespace hlojit::eval

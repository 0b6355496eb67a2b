// One axis after the other, each as blocks of lines that a Dft transforms side by side. The real
// transform of the last axis comes first forwards and last backwards. A real line is a complex one
// of half the length (its even and odd elements) plus one pass that separates them; odd lengths
// take the full complex transform.
#include "runtime/kernels/fft.h"

#include <algorithm>

#include "runtime/kernels/dft.h"
#include "runtime/pool.h"

namespace hlojit {
namespace {

constexpr int64_t kBlockElements = 1 << 13;  // of a block's lines, in each plane: all four stay in the cache
constexpr int64_t kMaxLanes = 16;

/// Where the lines of one axis lie in an array: `count` elements `step` apart, `across` from line
/// to line.
struct Side {
  int64_t count, step, across, outer;  // outer: distance of groups of lines
};

/// The lines of one axis: `groups` groups of `lines` lines.
struct Lines {
  int64_t groups, lines;
  Side in, out;
};

/// Axis `d` of row-major arrays that differ in that dimension only.
Lines lines_of(const Ints& in, const Ints& out, size_t d) {
  int64_t before = 1, after = 1;
  for (size_t k = 0; k < d; ++k) before *= in[k];
  for (size_t k = d + 1; k < in.size(); ++k) after *= in[k];
  // On the last axis the lines of all groups follow each other as one group's do.
  if (after == 1) return {1, before, {in[d], 1, in[d], 0}, {out[d], 1, out[d], 0}};
  return {before, after, {in[d], after, 1, in[d] * after}, {out[d], after, 1, out[d] * after}};
}

enum class Kind { kComplex, kRealToComplex, kComplexToReal };

/// One axis, from T (interleaved if complex) to T, computing in C.
template <class T, class C>
class Axis {
 public:
  Axis(Kind kind, bool inverse, int64_t length, Lines lines)
      : kind_(kind),
        inverse_(inverse),
        paired_(kind != Kind::kComplex && length % 2 == 0),
        length_(length),
        points_(paired_ ? length / 2 : length),
        lines_(lines),
        dft_(points_) {
    for (int64_t k = 0; paired_ && k <= points_; ++k) {
      auto [c, d] = unit_root(k, length);
      roots_.push_back(static_cast<C>(c));
      roots_.push_back(static_cast<C>(d));
    }
    lanes_ = std::clamp<int64_t>(kBlockElements / dft_.room(), 1, kMaxLanes);
    lanes_ = std::min(lanes_, lines.lines);
  }

  void run(ThreadPool& pool, const void* in, void* out) const {
    int64_t blocks = (lines_.lines + lanes_ - 1) / lanes_;
    int64_t work = lines_.groups * lines_.lines * dft_.room() * 10;
    run_chunks(pool, lines_.groups * blocks, work, [&](int64_t c) {
      int64_t group = c / blocks, first = c % blocks * lanes_;
      block(static_cast<const T*>(in), static_cast<T*>(out), group, first, std::min(lanes_, lines_.lines - first));
    });
  }

 private:
  void block(const T* in, T* out, int64_t group, int64_t first, int64_t lanes) const {
    auto plane = static_cast<size_t>(dft_.room() * lanes);
    std::shared_ptr<void> memory = pool_allocate(4 * plane * sizeof(C));
    C* base = static_cast<C*>(memory.get());
    Planes<C> x{base, base + plane}, y{base + 2 * plane, base + 3 * plane};
    const bool real_in = kind_ == Kind::kRealToComplex, real_out = kind_ == Kind::kComplexToReal;
    in += (real_in ? 1 : 2) * (group * lines_.in.outer + first * lines_.in.across);
    out += (real_out ? 1 : 2) * (group * lines_.out.outer + first * lines_.out.across);
    if (!paired_) {
      load(in, x, lanes);
    } else if (real_in) {
      load_pairs(in, x, lanes);
    } else {
      join(in, x, lanes);
    }
    if (inverse_) {
      Planes<C> r = dft_.run({x.im, x.re}, {y.im, y.re}, lanes);
      y = {r.im, r.re};
    } else {
      y = dft_.run(x, y, lanes);
    }
    if (!paired_) {
      store(y, out, lanes);
    } else if (real_in) {
      separate(y, out, lanes);
    } else {
      store_pairs(y, out, lanes);
    }
  }

  void load(const T* in, Planes<C> x, int64_t lanes) const {
    const Side& side = lines_.in;
    for (int64_t j = 0; j < side.count; ++j) {
      for (int64_t v = 0; v < lanes; ++v) {
        const int64_t at = j * side.step + v * side.across;
        x.re[j * lanes + v] = static_cast<C>(kind_ == Kind::kRealToComplex ? in[at] : in[2 * at]);
        x.im[j * lanes + v] = kind_ == Kind::kRealToComplex ? C{} : static_cast<C>(in[2 * at + 1]);
      }
    }
    if (kind_ != Kind::kComplexToReal) return;
    // The other half is the conjugate; what must be real is taken as real.
    for (int64_t v = 0; v < lanes; ++v) {
      x.im[v] = 0;
      for (int64_t j = side.count; j < length_; ++j) {
        x.re[j * lanes + v] = x.re[(length_ - j) * lanes + v];
        x.im[j * lanes + v] = -x.im[(length_ - j) * lanes + v];
      }
    }
  }

  void store(Planes<C> y, T* out, int64_t lanes) const {
    const Side& side = lines_.out;
    const C scale = inverse_ ? static_cast<C>(length_) : C{1};
    for (int64_t j = 0; j < side.count; ++j) {
      for (int64_t v = 0; v < lanes; ++v) {
        const int64_t at = j * side.step + v * side.across;
        const C re = y.re[j * lanes + v] / scale, im = y.im[j * lanes + v] / scale;
        if (kind_ == Kind::kComplexToReal) {
          out[at] = static_cast<T>(re);
        } else {
          out[2 * at] = static_cast<T>(re);
          out[2 * at + 1] = static_cast<T>(im);
        }
      }
    }
  }

  // ---- real lines of even length: z[j] = x[2j] + i x[2j + 1] of half the length
  // ----------------------

  void load_pairs(const T* in, Planes<C> x, int64_t lanes) const {
    const Side& side = lines_.in;
    for (int64_t j = 0; j < points_; ++j) {
      for (int64_t v = 0; v < lanes; ++v) {
        const T* pair = in + 2 * j * side.step + v * side.across;
        x.re[j * lanes + v] = static_cast<C>(pair[0]);
        x.im[j * lanes + v] = static_cast<C>(pair[side.step]);
      }
    }
  }

  void store_pairs(Planes<C> y, T* out, int64_t lanes) const {
    const Side& side = lines_.out;
    const C scale = static_cast<C>(points_);
    for (int64_t j = 0; j < points_; ++j) {
      for (int64_t v = 0; v < lanes; ++v) {
        T* pair = out + 2 * j * side.step + v * side.across;
        pair[0] = static_cast<T>(y.re[j * lanes + v] / scale);
        pair[side.step] = static_cast<T>(y.im[j * lanes + v] / scale);
      }
    }
  }

  /// X[k] = E[k] + w^k O[k], where Z = E + i O and E, O are transforms of real lines: their values
  /// at -k are the conjugates.
  void separate(Planes<C> z, T* out, int64_t lanes) const {
    const Side& side = lines_.out;
    for (int64_t k = 0; k <= points_; ++k) {
      const C c = roots_[static_cast<size_t>(2 * k)], d = roots_[static_cast<size_t>(2 * k + 1)];
      const int64_t here = k % points_ * lanes, mirror = (points_ - k) % points_ * lanes;
      for (int64_t v = 0; v < lanes; ++v) {
        const C even_re = (z.re[here + v] + z.re[mirror + v]) / 2, even_im = (z.im[here + v] - z.im[mirror + v]) / 2;
        const C odd_re = (z.im[here + v] + z.im[mirror + v]) / 2, odd_im = (z.re[mirror + v] - z.re[here + v]) / 2;
        T* to = out + 2 * (k * side.step + v * side.across);
        to[0] = static_cast<T>(even_re + (odd_re * c - odd_im * d));
        to[1] = static_cast<T>(even_im + (odd_re * d + odd_im * c));
      }
    }
  }

  /// The way back: Z from X. What must be real (the first and the last) is taken as real.
  void join(const T* in, Planes<C> z, int64_t lanes) const {
    const Side& side = lines_.in;
    for (int64_t k = 0; k < points_; ++k) {
      const C c = roots_[static_cast<size_t>(2 * k)], d = roots_[static_cast<size_t>(2 * k + 1)];
      for (int64_t v = 0; v < lanes; ++v) {
        const T* here = in + 2 * (k * side.step + v * side.across);
        const T* mirror = in + 2 * ((points_ - k) * side.step + v * side.across);
        const C here_im = k == 0 ? C{} : static_cast<C>(here[1]), mirror_im = k == 0 ? C{} : static_cast<C>(mirror[1]);
        const C here_re = static_cast<C>(here[0]), mirror_re = static_cast<C>(mirror[0]);
        const C even_re = (here_re + mirror_re) / 2, even_im = (here_im - mirror_im) / 2;
        const C turned_re = (here_re - mirror_re) / 2, turned_im = (here_im + mirror_im) / 2;
        const C odd_re = turned_re * c + turned_im * d, odd_im = turned_im * c - turned_re * d;
        z.re[k * lanes + v] = even_re - odd_im;
        z.im[k * lanes + v] = even_im + odd_re;
      }
    }
  }

  Kind kind_;
  bool inverse_;
  bool paired_;  // two real elements are one complex point
  int64_t length_, points_;
  Lines lines_;
  Dft<C> dft_;
  std::vector<C> roots_;  // of `length_`, if paired
  int64_t lanes_;
};

using AxisFunction = std::function<void(ThreadPool&, const void* in, void* out)>;

/// A convolution doubles the number of roundings: it is done in double precision.
template <class T>
AxisFunction make_axis(Kind kind, bool inverse, int64_t length, const Lines& lines) {
  if (Dft<T>::is_smooth(length)) {
    auto axis = std::make_shared<const Axis<T, T>>(kind, inverse, length, lines);
    return [axis](ThreadPool& pool, const void* in, void* out) { axis->run(pool, in, out); };
  }
  auto axis = std::make_shared<const Axis<T, double>>(kind, inverse, length, lines);
  return [axis](ThreadPool& pool, const void* in, void* out) { axis->run(pool, in, out); };
}

template <class T>
StepFunction fft_of(const Instruction& fft) {
  const Attributes& attrs = fft.attrs;
  const Ints& in = fft.operand(0)->shape.dims;
  const Ints& out = fft.shape.dims;
  const size_t rank = in.size(), axes = attrs.fft_length.size();
  const bool inverse = attrs.fft_type == FftType::kIfft || attrs.fft_type == FftType::kIrfft;
  const bool to_complex = attrs.fft_type == FftType::kRfft, to_real = attrs.fft_type == FftType::kIrfft;
  const size_t complex_axes = axes - (to_complex || to_real ? 1 : 0);
  std::vector<AxisFunction> steps;
  if (to_complex) steps.push_back(make_axis<T>(Kind::kRealToComplex, false, in.back(), lines_of(in, out, rank - 1)));
  const Ints& middle = to_complex ? out : in;  // what the complex axes work on
  for (size_t k = 0; k < complex_axes; ++k) {
    size_t d = rank - axes + k;
    steps.push_back(make_axis<T>(Kind::kComplex, inverse, middle[d], lines_of(middle, middle, d)));
  }
  if (to_real) steps.push_back(make_axis<T>(Kind::kComplexToReal, true, out.back(), lines_of(in, out, rank - 1)));
  // The axes before a complex-to-real one need room: the operand is not ours to overwrite.
  const size_t room = to_real && complex_axes > 0 ? static_cast<size_t>(fft.operand(0)->shape.dense_bytes()) : 0;
  return [=](const StepCall& call) {
    std::shared_ptr<void> memory = room ? pool_allocate(room) : nullptr;
    void* target = room ? memory.get() : call.buffers[1];
    const void* source = call.buffers[0];
    for (size_t k = 0; k < steps.size(); ++k) {
      if (to_real && k + 1 == steps.size()) target = call.buffers[1];
      steps[k](call.pool, source, target);
      source = target;
    }
  };
}

}  // namespace

StepFunction fft_step(const Instruction& fft) {
  if (fft.shape.element_count() == 0) return [](const StepCall&) {};
  bool wide = component_type(fft.shape.type) == DType::kF64;
  return wide ? fft_of<double>(fft) : fft_of<float>(fft);
}

}  // namespace hlojit

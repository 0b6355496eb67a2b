// One axis after the other, each as blocks of lines that a Dft transforms side by side. The real
// transform of the last axis comes first forwards and last backwards. A real line is a complex one
// of half the length (its even and odd elements) plus one pass that separates them. Of lines
// of odd length half of one pass is as much as all (RealDft), but where they have no small factor: then they are
// complex ones.
//
// Few long lines are no lanes, do not fit into a cache and give other threads nothing to do. Those of length a * b are
// transformed as matrices of a rows and b columns: their columns, each element k of column j times w^(j k); then their
// rows, which are written as columns.
#include "runtime/kernels/fft.h"

#include <algorithm>
#include <cmath>

#include "runtime/kernels/dft.h"
#include "runtime/kernels/planes.h"
#include "runtime/pool.h"

namespace hlojit {
namespace {

// Lines of a block: two vectors of double precision a butterfly, as long as its addresses take. Half as many, so that
// more of their planes stay near, is slower up to 4,000 points (2003, double precision: 448 us, 412).
constexpr int64_t kMaxLanes = 16;
constexpr int64_t kLanes = 8, kFewLines = 4;  // a block of fewer lines leaves vectors empty, or most of them
constexpr int64_t kLongLine = 1 << 11, kMiddleLine = 1 << 10, kShortLine = 64;

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

/// `count` consecutive lines of a group.
struct LineRange {
  int64_t first, count;
};

enum class Kind { kComplex, kRealToComplex, kComplexToReal };

/// One axis, from T (interleaved if complex) to T, computing in C.
template <class T, class C>
class Axis {
 public:
  /// `twisted`: of a matrix with these columns, transformed as the first half of one long line.
  Axis(Kind kind, bool inverse, int64_t length, Lines lines, bool twisted = false)
      : kind_(kind),
        inverse_(inverse),
        paired_(kind != Kind::kComplex && length % 2 == 0),
        length_(length),
        points_(paired_ ? length / 2 : length),
        lines_(lines),
        real_(kind != Kind::kComplex && !paired_ && RealDft<C>::serves(length)
                  ? std::make_unique<RealDft<C>>(length, inverse)
                  : nullptr),
        dft_(real_ ? 1 : points_) {
    if (paired_) {
      for (auto [c, d] : unit_roots(length)) {
        roots_.push_back(static_cast<C>(c));
        roots_.push_back(static_cast<C>(d));
      }
    }
    if (twisted) {
      auto roots = unit_roots(length * lines.lines);
      for (int64_t k = 0; k < length; ++k) {
        for (int64_t j = 0; j < lines.lines; ++j) {
          twist_re_.push_back(static_cast<C>(roots[static_cast<size_t>(j * k)].first));
          twist_im_.push_back(static_cast<C>(roots[static_cast<size_t>(j * k)].second));
        }
      }
      twist_re_.resize(twist_re_.size() + kMaxLanes);  // lanes without a line read beyond
      twist_im_.resize(twist_im_.size() + kMaxLanes);
    }
  }

  void run(ThreadPool& pool, const void* in, void* out) const {
    int64_t blocks = (lines_.lines + kMaxLanes - 1) / kMaxLanes;
    // What a core has not made itself comes from another's cache, line by line. (Back and forth over 64x64 points ten
    // times, an Emerald Rapids, one thread and two, us: 149 and 321; 128x128 971 and 971, 256x256 5024 and 3664.)
    constexpr int64_t kFewPoints = 12 << 10;
    constexpr int64_t kPointNs = 3;  // lines of 250; called ten, three of them were handed out: 2 us, 14
    const int64_t points = lines_.groups * lines_.lines * room(), work = points < kFewPoints ? 0 : points * kPointNs;
    run_chunks(pool, lines_.groups * blocks, work, [&](int64_t c) {
      int64_t group = c / blocks, first = c % blocks * kMaxLanes;
      block(static_cast<const T*>(in), static_cast<T*>(out), group, {first, std::min(kMaxLanes, lines_.lines - first)});
    });
  }

 private:
  void block(const T* in, T* out, int64_t group, LineRange range) const {
    const auto [first, lines] = range;
    // Whole vectors: 7 lines take one step where there were four. A single line more than such would gain nothing.
    const int64_t lanes = lines % 8 == 1 ? lines : (lines + 3) / 4 * 4;
    auto plane = static_cast<size_t>((room() + 1) * lanes);
    std::shared_ptr<void> memory = pool_allocate(4 * plane * sizeof(C));
    C* base = static_cast<C*>(memory.get());
    Planes<C> x{base, base + plane}, y{base + 2 * plane, base + 3 * plane};
    const bool real_in = kind_ == Kind::kRealToComplex, real_out = kind_ == Kind::kComplexToReal;
    in += (real_in ? 1 : 2) * (group * lines_.in.outer + first * lines_.in.across);
    out += (real_out ? 1 : 2) * (group * lines_.out.outer + first * lines_.out.across);
    if (paired_ && real_out) {
      load(in, points_ + 1, y, lines, lanes);
      line_loops<C>().join_halves(y, x, roots_.data(), points_, lanes);
    } else if (paired_) {
      to_planes(in, {lines_.in.across, 2}, points_, x, lines, lanes);  // pairs of real numbers
    } else if (real_in) {
      to_plane(in, lines_.in.across, length_, x.re, lines, lanes);
      if (!real_) std::fill_n(x.im, length_ * lanes, C{});
    } else {
      load(in, lines_.in.count, x, lines, lanes);
    }
    if (real_out && !paired_ && !real_) mirror(x, lanes);
    Planes<C> z = real_      ? real_->run(x, y, lanes)
                  : inverse_ ? swapped(dft_.run(swapped(x), swapped(y), lanes))
                             : dft_.run(x, y, lanes);
    if (!twist_re_.empty()) {
      line_loops<C>().multiply_each(inverse_ ? swapped(z) : z, {twist_re_.data() + first, twist_im_.data() + first},
                                    lines_.lines, points_, lanes);
    }
    if (inverse_ && !real_) line_loops<C>().scale(z, C{1} / static_cast<C>(points_), points_ * lanes);
    Planes<C> free = z.re == x.re ? y : x;
    if (!paired_ && real_out) {
      from_plane(z.re, length_, lines, lanes, out, lines_.out.across);
    } else if (!paired_) {
      store(z, lines_.out.count, out, lines, lanes);
    } else if (real_in) {
      line_loops<C>().separate_halves(z, free, roots_.data(), points_, lanes);
      store(free, points_ + 1, out, lines, lanes);
    } else {
      from_planes(z, points_, lines, lanes, out, {lines_.out.across, 2});
    }
  }

  int64_t room() const { return real_ ? real_->room() : dft_.room(); }

  static Planes<C> swapped(Planes<C> p) { return {p.im, p.re}; }

  void load(const T* in, int64_t count, Planes<C> x, int64_t lines, int64_t lanes) const {
    to_planes(in, {2 * lines_.in.across, 2 * lines_.in.step}, count, x, lines, lanes);
  }
  void store(Planes<C> y, int64_t count, T* out, int64_t lines, int64_t lanes) const {
    from_planes(y, count, lines, lanes, out, {2 * lines_.out.across, 2 * lines_.out.step});
  }

  /// The other half is the conjugate; what must be real is taken as real.
  void mirror(Planes<C> x, int64_t lanes) const {
    std::fill(x.im, x.im + lanes, C{});
    for (int64_t j = lines_.in.count; j < length_; ++j) {
      for (int64_t v = 0; v < lanes; ++v) {
        x.re[j * lanes + v] = x.re[(length_ - j) * lanes + v];
        x.im[j * lanes + v] = -x.im[(length_ - j) * lanes + v];
      }
    }
  }

  Kind kind_;
  bool inverse_;
  bool paired_;  // two real elements are one complex point
  int64_t length_, points_;
  Lines lines_;
  std::unique_ptr<RealDft<C>> real_;  // instead of:
  Dft<C> dft_;
  std::vector<C> roots_;                // of `length_`, if paired
  std::vector<C> twist_re_, twist_im_;  // if twisted: of each line of a group, for each element
};

using AxisFunction = std::function<void(ThreadPool&, const void* in, void* out)>;

/// A convolution doubles the number of roundings: it is done in double precision.
template <class T>
AxisFunction make_direct(Kind kind, bool inverse, int64_t length, const Lines& lines, bool twisted = false) {
  if (Dft<T>::has_factors_up_to(Dft<T>::kLargestFactor, length)) {
    auto axis = std::make_shared<const Axis<T, T>>(kind, inverse, length, lines, twisted);
    return [axis](ThreadPool& pool, const void* in, void* out) { axis->run(pool, in, out); };
  }
  auto axis = std::make_shared<const Axis<T, double>>(kind, inverse, length, lines, twisted);
  return [axis](ThreadPool& pool, const void* in, void* out) { axis->run(pool, in, out); };
}

/// The greatest divisor that is not above the root.
int64_t rows_of(int64_t length) {
  auto rows = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
  while (rows > 1 && length % rows != 0) --rows;
  return rows;
}

/// Lines of the last axis as matrices of `rows` rows.
template <class T>
AxisFunction make_matrices(bool inverse, int64_t length, int64_t lines, int64_t rows) {
  const int64_t columns = length / rows;
  const Side down{rows, columns, 1, length}, along{columns, 1, columns, length}, turned{columns, rows, 1, length};
  AxisFunction first = make_direct<T>(Kind::kComplex, inverse, rows, {lines, columns, down, down}, true);
  AxisFunction second = make_direct<T>(Kind::kComplex, inverse, columns, {lines, rows, along, turned});
  const auto room = static_cast<size_t>(2 * length * lines) * sizeof(T);
  return [=](ThreadPool& pool, const void* in, void* out) {
    std::shared_ptr<void> memory = pool_allocate(room);
    first(pool, in, memory.get());
    second(pool, memory.get(), out);
  };
}

template <class T>
AxisFunction make_axis(Kind kind, bool inverse, int64_t length, const Lines& lines) {
  const bool last = lines.in.step == 1;
  const int64_t longest = lines.lines < kFewLines ? kShortLine : lines.lines < kLanes ? kMiddleLine : kLongLine;
  const int64_t rows = rows_of(length);
  if (kind == Kind::kComplex && last && length > longest && rows >= kLanes) {
    return make_matrices<T>(inverse, length, lines.lines, rows);
  }
  return make_direct<T>(kind, inverse, length, lines);
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

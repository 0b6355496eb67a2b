// See convolution.h.
#include "runtime/kernels/convolution.h"

namespace hlojit {
namespace {

constexpr int64_t kFewLanes = 4;         // fewer leave vectors empty but in passes that bring elements together
constexpr int64_t kNearBytes = 1 << 14;  // half of a core's nearest cache

/// Which element of the transform the passes down leave at `place`.
template <class T>
int64_t element_at(int64_t place, const std::vector<DftStage<T>>& stages) {
  int64_t element = 0, step = 1;
  for (const DftStage<T>& stage : stages) {
    element += place / stage.m * step;
    place %= stage.m;
    step *= stage.radix;
  }
  return element;
}

}  // namespace

template <class T>
Convolution<T>::Convolution(const std::vector<std::pair<double, double>>& line)
    : length_(std::ssize(line)), stages_(dft_stages<T>(length_, kLargestFactor)), whole_(length_) {
  std::vector<T> re, im;
  for (auto [c, d] : line) {
    re.push_back(static_cast<T>(c));
    im.push_back(static_cast<T>(d));
  }
  std::vector<T> other_re(re), other_im(im);
  const Planes<T> f = whole_.run({re.data(), im.data()}, {other_re.data(), other_im.data()}, 1);
  for (int64_t place = 0; place < length_; ++place) {
    const int64_t k = element_at(place, stages_);
    for (auto& [filter, at] : {std::pair{&factors_, place}, std::pair{&filter_, k}}) {
      filter->push_back(f.re[at] / static_cast<T>(length_));
      filter->push_back(f.im[at] / static_cast<T>(length_));
    }
  }
}

template <class T>
Planes<T> Convolution<T>::run(Planes<T> x, Planes<T> y, int64_t lanes) const {
  if (lanes >= kFewLanes) {
    run(0, x, lanes, {0, 1});
    return x;
  }
  const Planes<T> f = whole_.run(x, y, lanes), other = f.re == x.re ? y : x;
  line_loops<T>().multiply(f, factors_.data(), length_, lanes);
  const Planes<T> back = whole_.run({f.im, f.re}, {other.im, other.re}, lanes);
  return {back.im, back.re};
}

template <class T>
void Convolution<T>::run(size_t level, Planes<T> x, int64_t lanes, Blocks blocks) const {
  const DftStage<T>& stage = stages_[level];
  BlockPass<T> pass{x, lanes, stage.m, blocks.count, stage.twiddles.data(), stage.matrix.data()};
  if (level + 1 == stages_.size()) {
    pass.twiddles = filter_.data() + 2 * stage.radix * blocks.first;
    line_loops<T>().pass_through(stage.radix, pass);
    return;
  }
  line_loops<T>().pass_down(stage.radix, pass);
  const Blocks inner{blocks.first * stage.radix, blocks.count * stage.radix};
  if (stage.m * lanes * static_cast<int64_t>(2 * sizeof(T)) <= kNearBytes) {
    run(level + 1, x, lanes, inner);
  } else {
    for (int64_t k = 0; k < inner.count; ++k) {
      const int64_t at = k * stage.m * lanes;
      run(level + 1, {x.re + at, x.im + at}, lanes, {inner.first + k, 1});
    }
  }
  pass.x = {x.im, x.re};  // exchanged, the way back is the transform
  line_loops<T>().pass_up(stage.radix, pass);
}

template class Convolution<float>;
template class Convolution<double>;

}  // namespace hlojit

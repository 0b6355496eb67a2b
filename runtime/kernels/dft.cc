// See dft.h.
#include "runtime/kernels/dft.h"

#include <algorithm>
#include <numbers>
#include <utility>

#include "runtime/kernels/convolved_dft.h"

namespace hlojit {
namespace {

constexpr int kRadices[] = {4, 2, 3, 5, 7, 11, 13};  // with loops of their own

/// A factor of n > 1 that is done next, 0 if no prime is `largest` or less.
int next_radix(int64_t n, int largest) {
  const auto* quick = std::ranges::find_if(kRadices, [&](int r) { return n % r == 0; });
  if (quick != std::end(kRadices)) return *quick <= largest ? *quick : 0;
  int r = 17;
  while (r <= largest && n % r != 0) r += 2;
  return r <= largest ? r : 0;
}

/// For each k and j of 1 ... radix / 2 the cosine and the sine of 2 pi j k / radix.
template <class T>
std::vector<T> matrix_of(int radix) {
  const std::vector<std::pair<double, double>> roots = unit_roots(radix);
  std::vector<T> matrix;
  for (int k = 1; k <= radix / 2; ++k) {
    for (int j = 1; j <= radix / 2; ++j) {
      auto [c, d] = roots[static_cast<size_t>(j * k % radix)];
      matrix.push_back(static_cast<T>(c));
      matrix.push_back(static_cast<T>(-d));
    }
  }
  return matrix;
}

/// Element j of all lanes, or its conjugate, as element k.
template <class T>
void copy_element(Planes<T> from, int64_t j, Planes<T> to, int64_t k, int64_t lanes, bool conjugate) {
  std::copy_n(from.re + j * lanes, lanes, to.re + k * lanes);
  const T* im = from.im + j * lanes;
  T* target = to.im + k * lanes;
  for (int64_t v = 0; v < lanes; ++v) target[v] = conjugate ? -im[v] : im[v];
}

}  // namespace

std::vector<std::pair<double, double>> unit_roots(int64_t n) {
  std::vector<double> angles(static_cast<size_t>(n % 4 == 0 ? n / 4 : n)), cosine(angles), sine(angles);
  for (size_t k = 0; k < angles.size(); ++k) {
    const int64_t rest = 4 * static_cast<int64_t>(k) % n;  // of a quarter turn, in n-ths
    angles[k] = static_cast<double>(rest) / static_cast<double>(n) * (std::numbers::pi / 2);
  }
  cosines_and_sines(angles.data(), std::ssize(angles), cosine.data(), sine.data());
  std::vector<std::pair<double, double>> roots(static_cast<size_t>(n));
  for (size_t k = 0; k < roots.size(); ++k) {
    if (k >= angles.size()) {  // another quarter is the one before, turned
      auto [c, d] = roots[k - angles.size()];
      roots[k] = {d, -c};
      continue;
    }
    const double c = cosine[k], s = sine[k];
    switch (4 * static_cast<int64_t>(k) / n) {
      case 0: roots[k] = {c, -s}; break;
      case 1: roots[k] = {-s, -c}; break;
      case 2: roots[k] = {-c, s}; break;
      default: roots[k] = {s, c};
    }
  }
  return roots;
}

template <class T>
bool Dft<T>::has_factors_up_to(int largest, int64_t n) {
  while (n > 1) {
    const int radix = next_radix(n, largest);
    if (radix == 0) return false;
    n /= radix;
  }
  return true;
}

template <class T>
std::vector<DftStage<T>> dft_stages(int64_t n, int largest) {
  const std::vector<std::pair<double, double>> roots = unit_roots(n);  // those of what divides n are among them
  std::vector<DftStage<T>> stages;
  int64_t rest = n;
  while (rest > 1) {
    const int radix = next_radix(rest, largest);
    if (radix == 0) break;
    DftStage<T> stage{radix, rest / radix, {}, radix % 2 != 0 ? matrix_of<T>(radix) : std::vector<T>()};
    stage.twiddles.reserve(static_cast<size_t>(2 * stage.m * (radix - 1)));
    for (int64_t p = 0; p < stage.m; ++p) {
      for (int64_t k = 1; k < radix; ++k) {
        auto [c, d] = roots[static_cast<size_t>(p * k * (n / rest))];
        stage.twiddles.push_back(static_cast<T>(c));
        stage.twiddles.push_back(static_cast<T>(d));
      }
    }
    rest = stage.m;
    stages.push_back(std::move(stage));
  }
  return stages;
}

template <class T>
Dft<T>::Dft(int64_t n) : room_(n), stages_(dft_stages<T>(n, kLargestFactor)) {
  const int64_t rest = stages_.empty() ? n : stages_.back().m;
  if (rest == 1) return;
  convolution_ = std::make_unique<ConvolvedDft<T>>(rest);
  room_ = n / rest * convolution_->room();
}

template <class T>
Dft<T>::~Dft() = default;

template <class T>
Planes<T> Dft<T>::run(Planes<T> x, Planes<T> y, int64_t lanes) const {
  int64_t s = lanes;
  for (const DftStage<T>& stage : stages_) {
    line_loops<T>().pass(stage.radix, {{x.re, x.im}, y, s, stage.m, stage.twiddles.data(), stage.matrix.data()});
    s *= stage.radix;
    std::swap(x, y);
  }
  // What is left of the length is behind no other factor: the elements of all the lines side by side are its lanes.
  return convolution_ ? convolution_->run(x, y, s) : x;
}

template <class T>
RealDft<T>::RealDft(int64_t n, bool back)
    : n_(n),
      back_(back),
      radix_(n % 3 == 0   ? 3
             : n % 5 == 0 ? 5
                          : 7),
      kept_(radix_ / 2 + 1),
      rest_(n / radix_),
      matrix_(matrix_of<T>(radix_)) {
  const std::vector<std::pair<double, double>> roots = unit_roots(n);
  const double scale = 1 / static_cast<double>(n);
  for (int64_t p = 0; p < n / radix_; ++p) {
    for (int64_t k = 0; k < kept_; ++k) {
      auto [c, d] = roots[static_cast<size_t>(p * k)];
      const double by = !back ? 1 : k == 0 ? scale : 2 * scale;  // each stands for its conjugate, too
      twiddles_.push_back(static_cast<T>(c * by));
      twiddles_.push_back(static_cast<T>((back ? -d : d) * by));
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const bool conjugate = i % radix_ >= kept_;
    const int64_t at = conjugate ? n - i : i;
    places_.push_back({at / radix_ * kept_ + at % radix_, conjugate});
  }
}

template <class T>
Planes<T> RealDft<T>::run_forwards(Planes<T> x, Planes<T> y, int64_t lanes) const {
  line_loops<T>().real_pass(radix_, {{x.re, x.im}, y, lanes, n_ / radix_, twiddles_.data(), matrix_.data()});
  const Planes<T> z = rest_.run(y, x, kept_ * lanes), result = z.re == x.re ? y : x;
  for (int64_t i = 0; i <= n_ / 2; ++i) {
    const auto [from, conjugate] = places_[static_cast<size_t>(i)];
    copy_element(z, from, result, i, lanes, conjugate);
  }
  return result;
}

template <class T>
Planes<T> RealDft<T>::run_back(Planes<T> x, Planes<T> y, int64_t lanes) const {
  for (int64_t i = 0; i < n_; ++i) {
    const auto [to, other] = places_[static_cast<size_t>(i)];
    if (!other) copy_element(x, std::min(i, n_ - i), y, to, lanes, i > n_ / 2);
  }
  const Planes<T> turned = rest_.run({y.im, y.re}, {x.im, x.re}, kept_ * lanes), z{turned.im, turned.re};
  const Planes<T> result = z.re == x.re ? y : x;
  line_loops<T>().pass_to_real(radix_, {{z.re, z.im}, result, lanes, n_ / radix_, twiddles_.data(), matrix_.data()});
  return result;
}

template std::vector<DftStage<float>> dft_stages(int64_t, int);
template std::vector<DftStage<double>> dft_stages(int64_t, int);
template class RealDft<float>;
template class RealDft<double>;
template class Dft<float>;
template class Dft<double>;

}  // namespace hlojit

// Discrete Fourier transforms of several lines side by side.
//
// Real and imaginary parts are planes of their own: element j of line v lies at [j * lanes + v], so
// every butterfly is a loop over consecutive lanes. The passes are Stockham's: from one pair of
// planes to the other, in order, one pass a factor, each with as many consecutive elements as the
// factors before it. What large prime factors leave of a length comes last, as a convolution (convolved_dft.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/kernels/line_loops.h"

namespace hlojit {

/// exp(-2 pi i k / n) for all k < n, by their quarter turns, so that multiples of one are exact.
std::vector<std::pair<double, double>> unit_roots(int64_t n);

/// A factor of a transform's length.
template <class T>
struct DftStage {
  int radix;
  int64_t m;                // length behind this factor
  std::vector<T> twiddles;  // for each p < m: cos and sin of p k, 1 <= k < radix
  std::vector<T> matrix;    // RadixPass::matrix
};

/// Those of n that have no prime above `largest`.
template <class T>
std::vector<DftStage<T>> dft_stages(int64_t n, int largest);

template <class T>
class ConvolvedDft;

/// A forward transform of length n >= 1, unscaled. (Backwards: exchange the planes before and
/// after.) Tables are computed in double precision. Immutable.
template <class T>
class Dft {
 public:
  explicit Dft(int64_t n);
  ~Dft();

  /// Largest prime that has a pass of its own: as many multiply-adds an element as the prime is. A convolution takes
  /// as long as some 120, in double precision, and one whose length has no large prime as long as 60.
  static constexpr int kLargestFactor = sizeof(T) == 4 ? kLargestRadix : 59;
  /// Whether all of n's primes are `largest` or less.
  static bool has_factors_up_to(int largest, int64_t n);
  /// Elements of a line that each plane must have room for: n or more.
  int64_t room() const { return room_; }
  /// Transforms `lanes` lines in x, with y as room; returns which of the two holds the result.
  Planes<T> run(Planes<T> x, Planes<T> y, int64_t lanes) const;

 private:
  int64_t room_;
  std::vector<DftStage<T>> stages_;
  std::unique_ptr<ConvolvedDft<T>> convolution_;  // of what the stages leave
};

/// A transform of real lines whose length n has a factor of 3, 5 or 7, or back to such lines, from or to the first
/// n / 2 + 1 elements of what is complex. Of the factor's pass half of the complex elements are the conjugates of the
/// others, and so is what is made of them: the lines of the others alone are transformed by the other passes.
template <class T>
class RealDft {
 public:
  /// `back`: to real lines, scaled by 1 / n.
  RealDft(int64_t n, bool back);

  static bool serves(int64_t n) { return n % 3 == 0 || n % 5 == 0 || n % 7 == 0; }
  int64_t room() const { return std::max(n_, kept_ * rest_.room()); }
  /// Real lines are in re alone.
  Planes<T> run(Planes<T> x, Planes<T> y, int64_t lanes) const {
    return back_ ? run_back(x, y, lanes) : run_forwards(x, y, lanes);
  }

 private:
  Planes<T> run_forwards(Planes<T> x, Planes<T> y, int64_t lanes) const;
  Planes<T> run_back(Planes<T> x, Planes<T> y, int64_t lanes) const;
  /// Where an element of a line's transform lies among the lines that are kept, or where its conjugate does.
  struct Place {
    int64_t at;
    bool conjugate;
  };

  int64_t n_;
  bool back_;
  int radix_;
  int64_t kept_;  // complex elements of the factor's pass
  Dft<T> rest_;
  std::vector<T> twiddles_, matrix_;  // of that pass
  std::vector<Place> places_;         // of each element of a line
};

extern template std::vector<DftStage<float>> dft_stages(int64_t, int);
extern template std::vector<DftStage<double>> dft_stages(int64_t, int);
extern template class RealDft<float>;
extern template class RealDft<double>;
extern template class Dft<float>;
extern template class Dft<double>;

}  // namespace hlojit

// Cyclic convolutions of lines side by side (dft.h) with one line that is known beforehand.
//
// Between a transform and the way back elements are only multiplied, in whatever order: the passes down leave them
// where the passes up want them, and stay in place. Each block of a pass is finished, down and up, before the next, so
// that all but the first passes find theirs in the nearest cache; from plane to plane, one pass after the other, 1024
// points of eight lines in double precision took 3 times as long.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/kernels/dft.h"

namespace hlojit {

template <class T>
class Convolution {
 public:
  static constexpr int kLargestFactor = 13;  // of a length

  /// With this line, real and imaginary parts.
  explicit Convolution(const std::vector<std::pair<double, double>>& line);

  int64_t length() const { return length_; }
  /// Of `lanes` lines in x, with y as room; returns which of the two holds the result.
  Planes<T> run(Planes<T> x, Planes<T> y, int64_t lanes) const;

 private:
  /// Consecutive blocks of a stage, all that the one before leaves of one of its own, or of some.
  struct Blocks {
    int64_t first, count;
  };
  void run(size_t level, Planes<T> x, int64_t lanes, Blocks blocks) const;

  int64_t length_;
  std::vector<DftStage<T>> stages_;
  Dft<T> whole_;            // for few lines
  std::vector<T> factors_;  // the transform of the known line, scaled
  std::vector<T> filter_;   // the same in the order in which the passes down leave it
};

extern template class Convolution<float>;
extern template class Convolution<double>;

}  // namespace hlojit

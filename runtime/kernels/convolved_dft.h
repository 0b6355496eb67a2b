// Transforms of lengths with a large prime factor, as cyclic convolutions of a smooth length.
//
// A prime length n whose n - 1 is smooth: all j but 0 are powers of one generator g, and x[g^p] w^(g^(p - q)), summed
// over p, is a convolution of length n - 1 (Rader). Any other: jk = (j^2 + k^2 - (k - j)^2) / 2 makes it a product with
// the chirp w^(j^2/2), a convolution with its conjugate and another product; this one must not wrap, so that its length
// is 2n - 1 or more (Bluestein).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/kernels/convolution.h"

namespace hlojit {

/// What Dft is where its length is not smooth, with the same interface.
template <class T>
class ConvolvedDft {
 public:
  explicit ConvolvedDft(int64_t n);

  int64_t room() const { return std::max(n_, convolution_.length()); }
  Planes<T> run(Planes<T> x, Planes<T> y, int64_t lanes) const;

 private:
  int64_t n_;
  std::vector<int64_t> from_, to_;  // by powers of a generator: where the convolution's elements lie; else empty
  Convolution<T> convolution_;
  std::vector<T> chirp_;
};

extern template class ConvolvedDft<float>;
extern template class ConvolvedDft<double>;

}  // namespace hlojit

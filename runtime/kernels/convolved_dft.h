// Transforms of lengths with a large prime factor, as cyclic convolutions of a smooth length.
//
// A prime length n whose n - 1 is smooth: all j but 0 are powers of one generator g, and x[g^p] w^(g^(p - q)), summed
// over p, is a convolution of length n - 1 (Rader). Any other: jk = (j^2 + k^2 - (k - j)^2) / 2 makes it a product with
// the chirp w^(j^2/2), a convolution with its conjugate and another product; this one must not wrap, so that its length
// is 2n - 1 or more (Bluestein).
#pragma once

#include "runtime/kernels/dft.h"

namespace hlojit {

/// What Dft is where its length is not smooth, with the same interface.
template <class T>
class ConvolvedDft {
 public:
  explicit ConvolvedDft(int64_t n);

  int64_t room() const { return order_.empty() ? inner_.room() : n_; }
  Planes<T> run(Planes<T> x, Planes<T> y, int64_t lanes) const;

 private:
  Planes<T> by_powers(Planes<T> x, Planes<T> y, int64_t lanes) const;
  Planes<T> by_chirp(Planes<T> x, Planes<T> y, int64_t lanes) const;

  int64_t n_;
  std::vector<int64_t> order_;  // the powers of the generator; empty: by the chirp
  Dft<T> inner_;
  std::vector<T> chirp_, filter_;  // the filter's transform, scaled
};

extern template class ConvolvedDft<float>;
extern template class ConvolvedDft<double>;

}  // namespace hlojit

// Vectors of complex numbers in planes, as templates over compiler/math's number types: vectors of the instruction set
// A, then narrower ones, then single lanes for what is left. Included by the files that are compiled for one set.
#pragma once

#include <type_traits>

#include "compiler/math/batch.h"
#include "runtime/kernels/line_loops.h"

namespace hlojit {
namespace {  // its own in each file: code for other instructions must not take its place

template <class T>
using Avx2Lanes = math::Batch<T, xsimd::fma3<xsimd::avx2>>;

using math::fma;
using math::like;
using math::store_lanes;

template <class F>
[[gnu::always_inline]] inline F lanes_at(const typename math::Number<F>::Scalar* from) {
  if constexpr (std::is_floating_point_v<F>) {
    return *from;
  } else {
    return math::load_lanes<F>(from);
  }
}
template <class T>
[[gnu::always_inline]] inline void store_lanes(T* to, T x) {
  *to = x;
}

/// body(F(), t) for steps of F's lanes that cover [0, n).
template <class A, class T, class Body>
[[gnu::always_inline]] inline void over_lanes(int64_t n, const Body& body) {
  using Wide = math::Batch<T, A>;
  using Narrow = math::Batch<T, xsimd::sse2>;
  int64_t t = 0;
  for (; t + Wide::lanes <= n; t += Wide::lanes) body(Wide(), t);
  if constexpr (Wide::lanes > Avx2Lanes<T>::lanes) {
    for (; t + Avx2Lanes<T>::lanes <= n; t += Avx2Lanes<T>::lanes) body(Avx2Lanes<T>(), t);
  }
  for (; t + Narrow::lanes <= n; t += Narrow::lanes) body(Narrow(), t);
  for (; t < n; ++t) body(T(), t);
}

template <class F>
struct Complex {
  F re, im;
};

/// x * (c + i d)
template <class F, class T>
[[gnu::always_inline]] inline Complex<F> times(Complex<F> x, T c, T d) {
  const F cos = like(x.re, c), sin = like(x.re, d);
  return {fma(x.re, cos, -(x.im * sin)), fma(x.re, sin, x.im * cos)};
}

template <class T, class F>
[[gnu::always_inline]] inline Complex<F> complex_at(Planes<T> x, int64_t at) {
  return {lanes_at<F>(x.re + at), lanes_at<F>(x.im + at)};
}

template <class T, class F>
[[gnu::always_inline]] inline void store_complex(Planes<T> to, int64_t at, Complex<F> x) {
  store_lanes(to.re + at, x.re);
  store_lanes(to.im + at, x.im);
}

}  // namespace
}  // namespace hlojit

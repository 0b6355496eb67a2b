// The arithmetic of transforms: loops over consecutive lanes, which are the vectors' lanes. Each set of instructions
// has its own, compiled for it alone from one source (line_loops_for.h); without contraction all give the same bits.
#pragma once

#include <cstdint>

namespace hlojit {

/// Real and imaginary parts of numbers, in planes of their own.
template <class T>
struct Planes {
  T *re, *im;
};

constexpr int kLargestRadix = 131;

/// One pass of a transform: `s` consecutive elements (lanes times the factors done), `m` twiddle groups. Element t of
/// input j of group p is at (m j + p) s + t of x, element t of result k at (radix p + k) s + t of y.
template <class T>
struct RadixPass {
  Planes<const T> x;
  Planes<T> y;
  int64_t s, m;
  const T* twiddles;  ///< for each p < m: cos and sin of result k, 1 <= k < radix
  const T* matrix;    ///< of an odd radix: cos and sin of 2 pi j k / radix, for each k and j of 1 ... radix / 2
};

/// A pass that stays in place: `blocks` blocks of radix * m elements, all lanes of an element side by side. Butterfly p
/// of a block is of its elements p + k m, k < radix.
template <class T>
struct BlockPass {
  Planes<T> x;
  int64_t lanes, m, blocks;
  const T* twiddles;  ///< for each p < m: cos and sin of k, 1 <= k < radix
  const T* matrix;    ///< RadixPass::matrix
};

template <class T>
struct LineLoops {
  /// Radix 4 or a prime, at most kLargestRadix.
  void (*pass)(int radix, const RadixPass<T>& pass);
  /// Radix 3, 5 or 7 of real elements, x.re alone: results 0 to radix / 2, with twiddles of as many, result k of group
  /// p at ((radix / 2 + 1) p + k) s.
  void (*real_pass)(int radix, const RadixPass<T>& pass);
  /// The way back to real elements, y.re alone: from places and with twiddles like those, unconjugated.
  void (*pass_to_real)(int radix, const RadixPass<T>& pass);
  /// Radix 4 or a prime, at most 13. Down: result k of a butterfly, times its twiddle, is where element k was. Up:
  /// elements are multiplied before. Through (m is 1): results times as many factors, of each block its own, which
  /// stand in place of the twiddles; then transformed back, unscaled.
  void (*pass_down)(int radix, const BlockPass<T>& pass);
  void (*pass_up)(int radix, const BlockPass<T>& pass);
  void (*pass_through)(int radix, const BlockPass<T>& pass);
  void (*scale)(Planes<T> x, T factor, int64_t count);
  /// Element k of all lanes times the complex factors[k].
  void (*multiply)(Planes<T> x, const T* factors, int64_t count, int64_t lanes);
  /// Element k of lane t times the complex element t of factors + k * apart.
  void (*multiply_each)(Planes<T> x, Planes<const T> factors, int64_t apart, int64_t count, int64_t lanes);
  /// Element from[k] of x, k < count, of all lanes as element k of y; their sum behind them.
  void (*take)(Planes<T> x, const int64_t* from, int64_t count, Planes<T> y, int64_t lanes);
  /// Element k of x, k < count, plus element 0 of y, as element to[k] of y.
  void (*give)(Planes<T> x, const int64_t* to, int64_t count, Planes<T> y, int64_t lanes);
  /// A real line of even length 2n is a complex one of length n, z[j] = x[2j] + i x[2j + 1], and one pass over its
  /// transform: with E and O the transforms of the even and the odd elements, Z = E + i O and X[k] = E[k] + w^k O[k];
  /// values of E and O at -k are the conjugates of those at k. X[0..n] of `lanes` lines from Z[0..n). `roots`: cos and
  /// sin of each w^k, k = 0..n.
  void (*separate_halves)(Planes<T> z, Planes<T> x, const T* roots, int64_t n, int64_t lanes);
  /// The way back. What must be real, X[0] and X[n], is made so.
  void (*join_halves)(Planes<T> x, Planes<T> z, const T* roots, int64_t n, int64_t lanes);
};

/// Of the best instruction set that this machine has.
template <class T>
const LineLoops<T>& line_loops();

/// cosine[k] and sine[k] of angles[k], |angle| <= pi/4 or a little more.
void cosines_and_sines(const double* angles, int64_t count, double* cosine, double* sine);

}  // namespace hlojit

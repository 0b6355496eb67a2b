// The loops of line_loops.h for the instruction set A, as templates over compiler/math's number types: vectors of A,
// then narrower ones, then single lanes for what is left. Included by the file of each set, which is compiled for it.
#pragma once

#include <algorithm>

#include "compiler/math/batch.h"
#include "runtime/kernels/line_loops.h"

namespace hlojit {
namespace {

template <class T>
using Avx2Lanes = math::Batch<T, xsimd::fma3<xsimd::avx2>>;

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

/// (re + i im) * (c + i d)
template <class T, class F>
[[gnu::always_inline]] inline void store_product(Planes<T> to, int64_t at, F re, F im, T c, T d) {
  const F cos = like(re, c), sin = like(re, d);
  store_lanes(to.re + at, re * cos - im * sin);
  store_lanes(to.im + at, re * sin + im * cos);
}

template <class A, class T>
void radix2(const RadixPass<T>& a) {
  const int64_t s = a.s, far = a.s * a.m;
  for (int64_t p = 0; p < a.m; ++p) {
    const T* w = a.twiddles + 2 * p;
    const Planes<const T> x{a.x.re + s * p, a.x.im + s * p};
    const Planes<T> y{a.y.re + s * 2 * p, a.y.im + s * 2 * p};
    over_lanes<A, T>(s, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
      const F r0 = lanes_at<F>(x.re + t), r1 = lanes_at<F>(x.re + t + far);
      const F i0 = lanes_at<F>(x.im + t), i1 = lanes_at<F>(x.im + t + far);
      store_lanes(y.re + t, r0 + r1);
      store_lanes(y.im + t, i0 + i1);
      store_product(y, s + t, r0 - r1, i0 - i1, w[0], w[1]);
    });
  }
}

template <class A, class T>
void radix4(const RadixPass<T>& a) {
  const int64_t s = a.s, far = a.s * a.m;
  for (int64_t p = 0; p < a.m; ++p) {
    const T* w = a.twiddles + 6 * p;
    const Planes<const T> x{a.x.re + s * p, a.x.im + s * p};
    const Planes<T> y{a.y.re + s * 4 * p, a.y.im + s * 4 * p};
    over_lanes<A, T>(s, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
      F r[4], i[4];
      for (int j = 0; j < 4; ++j) {
        r[j] = lanes_at<F>(x.re + t + j * far);
        i[j] = lanes_at<F>(x.im + t + j * far);
      }
      const F sr = r[0] + r[2], si = i[0] + i[2], dr = r[0] - r[2], di = i[0] - i[2];
      const F er = r[1] + r[3], ei = i[1] + i[3], fr = i[1] - i[3], fi = r[3] - r[1];  // f: times -i
      store_lanes(y.re + t, sr + er);
      store_lanes(y.im + t, si + ei);
      store_product(y, s + t, dr + fr, di + fi, w[0], w[1]);
      store_product(y, 2 * s + t, sr - er, si - ei, w[2], w[3]);
      store_product(y, 3 * s + t, dr - fr, di - fi, w[4], w[5]);
    });
  }
}

/// Elements j and radix - j of one place: their sums and differences, real parts and imaginary ones.
template <class F>
struct MirroredPair {
  F sum_re, sum_im, difference_re, difference_im;
};

template <class F, class T>
[[gnu::always_inline]] inline MirroredPair<F> mirrored_pair(Planes<const T> x, int64_t near, int64_t mirror) {
  const F nr = lanes_at<F>(x.re + near), mr = lanes_at<F>(x.re + mirror);
  const F ni = lanes_at<F>(x.im + near), mi = lanes_at<F>(x.im + mirror);
  return {nr + mr, ni + mi, nr - mr, ni - mi};
}

/// Cosine and sine of each multiple of the R-th part of a turn, but for 0.
template <int R, class T>
struct PartsOfTurn {
  T cosine[R], sine[R];

  explicit PartsOfTurn(const T* matrix) {
    for (int j = 1; j <= R / 2; ++j) {
      cosine[j] = cosine[R - j] = matrix[2 * (j - 1)];
      sine[j] = matrix[2 * (j - 1) + 1];
      sine[R - j] = -sine[j];
    }
  }
};

/// Odd radices: elements j and R - j enter by their sum and difference, results k and R - k share sums.
template <class A, int R, class T>
void radix_odd(const RadixPass<T>& a) {
  constexpr int H = (R - 1) / 2;
  const PartsOfTurn<R, T> turn(a.matrix);
  const int64_t s = a.s, far = a.s * a.m;
  for (int64_t p = 0; p < a.m; ++p) {
    const T* w = a.twiddles + 2 * (R - 1) * p;
    const Planes<const T> x{a.x.re + s * p, a.x.im + s * p};
    const Planes<T> y{a.y.re + s * R * p, a.y.im + s * R * p};
    over_lanes<A, T>(s, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
      const F first_re = lanes_at<F>(x.re + t), first_im = lanes_at<F>(x.im + t);
      MirroredPair<F> pairs[H];
      F r0 = first_re, i0 = first_im;
#pragma clang loop unroll(full)
      for (int j = 0; j < H; ++j) {
        pairs[j] = mirrored_pair<F>(x, t + (j + 1) * far, t + (R - 1 - j) * far);
        r0 = r0 + pairs[j].sum_re;
        i0 = i0 + pairs[j].sum_im;
      }
      store_lanes(y.re + t, r0);
      store_lanes(y.im + t, i0);
#pragma clang loop unroll(full)
      for (int k = 1; k <= H; ++k) {
        F cr = first_re, ci = first_im, er = like(cr, 0), ei = er;
#pragma clang loop unroll(full)
        for (int j = 0; j < H; ++j) {
          const int at = (j + 1) * k % R;
          cr = cr + like(cr, turn.cosine[at]) * pairs[j].sum_re;
          ci = ci + like(ci, turn.cosine[at]) * pairs[j].sum_im;
          er = er + like(er, turn.sine[at]) * pairs[j].difference_re;
          ei = ei + like(ei, turn.sine[at]) * pairs[j].difference_im;
        }
        store_product(y, k * s + t, cr + ei, ci - er, w[2 * k - 2], w[2 * k - 1]);
        store_product(y, (R - k) * s + t, cr - ei, ci + er, w[2 * (R - k) - 2], w[2 * (R - k) - 1]);
      }
    });
  }
}

/// Of real elements, of which there is one plane: results 0 to R / 2, the others are the conjugates of these but for
/// the twiddles.
template <class A, int R, class T>
void radix_real(const RadixPass<T>& a) {
  constexpr int H = (R - 1) / 2;
  const PartsOfTurn<R, T> turn(a.matrix);
  const int64_t s = a.s, far = a.s * a.m;
  for (int64_t p = 0; p < a.m; ++p) {
    const T* w = a.twiddles + 2 * (H + 1) * p;
    const T* x = a.x.re + s * p;
    const Planes<T> y{a.y.re + s * (H + 1) * p, a.y.im + s * (H + 1) * p};
    over_lanes<A, T>(s, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
      const F first = lanes_at<F>(x + t);
      F sum[H], difference[H], all = first;
#pragma clang loop unroll(full)
      for (int j = 0; j < H; ++j) {
        const F near = lanes_at<F>(x + t + (j + 1) * far), mirror = lanes_at<F>(x + t + (R - 1 - j) * far);
        sum[j] = near + mirror;
        difference[j] = mirror - near;
        all = all + sum[j];
      }
      store_lanes(y.re + t, all);
      store_lanes(y.im + t, like(all, 0));
#pragma clang loop unroll(full)
      for (int k = 1; k <= H; ++k) {
        F re = first, im = like(first, 0);
#pragma clang loop unroll(full)
        for (int j = 0; j < H; ++j) {
          const int at = (j + 1) * k % R;
          re = re + like(re, turn.cosine[at]) * sum[j];
          im = im + like(im, turn.sine[at]) * difference[j];
        }
        store_product(y, k * s + t, re, im, w[2 * k], w[2 * k + 1]);
      }
    });
  }
}

/// The way back: elements 0 to R / 2 of a line, times the twiddles, and the conjugates of all but the first.
template <class A, int R, class T>
void radix_to_real(const RadixPass<T>& a) {
  constexpr int H = (R - 1) / 2;
  const PartsOfTurn<R, T> turn(a.matrix);
  const int64_t s = a.s, far = a.s * a.m;
  for (int64_t p = 0; p < a.m; ++p) {
    const T* w = a.twiddles + 2 * (H + 1) * p;
    const Planes<const T> x{a.x.re + s * (H + 1) * p, a.x.im + s * (H + 1) * p};
    T* y = a.y.re + s * p;
    over_lanes<A, T>(s, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
      const F first = lanes_at<F>(x.re + t) * like(F(), w[0]);
      F re[H], im[H], all = first;
#pragma clang loop unroll(full)
      for (int k = 1; k <= H; ++k) {
        const F xr = lanes_at<F>(x.re + k * s + t), xi = lanes_at<F>(x.im + k * s + t);
        const F c = like(xr, w[2 * k]), d = like(xr, w[2 * k + 1]);
        re[k - 1] = xr * c - xi * d;
        im[k - 1] = xr * d + xi * c;
        all = all + re[k - 1];
      }
      store_lanes(y + t, all);
#pragma clang loop unroll(full)
      for (int j = 1; j <= H; ++j) {
        F even = first, odd = like(first, 0);
#pragma clang loop unroll(full)
        for (int k = 1; k <= H; ++k) {
          even = even + like(even, turn.cosine[j * k % R]) * re[k - 1];
          odd = odd + like(odd, turn.sine[j * k % R]) * im[k - 1];
        }
        store_lanes(y + t + j * far, even - odd);
        store_lanes(y + t + (R - j) * far, even + odd);
      }
    });
  }
}

/// Results k to k + N - 1 and their mirror images: rows of the matrices times sums and differences, N at once since
/// each of these is loaded for all.
template <int N, class F, class T>
[[gnu::always_inline]] inline void store_rows(const RadixPass<T>& a, int radix, int k, F first_re, F first_im,
                                              const MirroredPair<F>* pairs, Planes<T> y, const T* w) {
  const int half = radix / 2;
  F cr[N], ci[N], er[N], ei[N];
  for (int n = 0; n < N; ++n) {
    cr[n] = first_re;
    ci[n] = first_im;
    er[n] = ei[n] = like(first_re, 0);
  }
  const T* matrix = a.matrix + 2 * static_cast<int64_t>(half) * (k - 1);
  for (int j = 0; j < half; ++j) {
    const MirroredPair<F> pair = pairs[j];
#pragma clang loop unroll(full)
    for (int n = 0; n < N; ++n) {
      const F cosine = like(first_re, matrix[2 * (n * half + j)]),
              sine = like(first_re, matrix[2 * (n * half + j) + 1]);
      cr[n] = cr[n] + cosine * pair.sum_re;
      ci[n] = ci[n] + cosine * pair.sum_im;
      er[n] = er[n] + sine * pair.difference_re;
      ei[n] = ei[n] + sine * pair.difference_im;
    }
  }
#pragma clang loop unroll(full)
  for (int n = 0; n < N; ++n) {
    const int near = k + n, mirror = radix - k - n;
    store_product(y, near * a.s, cr[n] + ei[n], ci[n] - er[n], w[2 * near - 2], w[2 * near - 1]);
    store_product(y, mirror * a.s, cr[n] - ei[n], ci[n] + er[n], w[2 * mirror - 2], w[2 * mirror - 1]);
  }
}

/// Any odd radix, as radix_odd.
template <class A, class T>
void radix_by_matrix(int radix, const RadixPass<T>& a) {
  constexpr int kRows =
      math::Batch<T, A>::lanes > Avx2Lanes<T>::lanes ? 4 : 2;  // four sums each, of 32 registers or 16
  const int half = radix / 2;
  const int64_t s = a.s, far = a.s * a.m;
  for (int64_t p = 0; p < a.m; ++p) {
    const T* w = a.twiddles + 2 * (radix - 1) * p;
    const Planes<const T> x{a.x.re + s * p, a.x.im + s * p};
    const Planes<T> y{a.y.re + s * radix * p, a.y.im + s * radix * p};
    over_lanes<A, T>(s, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
      const F first_re = lanes_at<F>(x.re + t), first_im = lanes_at<F>(x.im + t);
      F r0 = first_re, i0 = first_im;
      MirroredPair<F> pairs[kLargestRadix / 2];
      for (int j = 0; j < half; ++j) {
        pairs[j] = mirrored_pair<F>(x, t + (j + 1) * far, t + (radix - 1 - j) * far);
        r0 = r0 + pairs[j].sum_re;
        i0 = i0 + pairs[j].sum_im;
      }
      store_lanes(y.re + t, r0);
      store_lanes(y.im + t, i0);
      int k = 1;
      for (; k + kRows - 1 <= half; k += kRows)
        store_rows<kRows>(a, radix, k, first_re, first_im, pairs, {y.re + t, y.im + t}, w);
      for (; k <= half; ++k) store_rows<1>(a, radix, k, first_re, first_im, pairs, {y.re + t, y.im + t}, w);
    });
  }
}

template <class A, class T>
void any_radix(int radix, const RadixPass<T>& a) {
  switch (radix) {
    case 2: return radix2<A>(a);
    case 3: return radix_odd<A, 3>(a);
    case 4: return radix4<A>(a);
    case 5: return radix_odd<A, 5>(a);
    case 7: return radix_odd<A, 7>(a);
    case 11: return radix_odd<A, 11>(a);
    case 13: return radix_odd<A, 13>(a);
    default: return radix_by_matrix<A>(radix, a);
  }
}

/// run.operator()<R>() for R = radix: 3, 5 or 7.
template <class Run>
void with_real_radix(int radix, Run run) {
  switch (radix) {
    case 3: return run.template operator()<3>();
    case 5: return run.template operator()<5>();
    default: return run.template operator()<7>();
  }
}

template <class A, class T>
void any_real_radix(int radix, const RadixPass<T>& a) {
  with_real_radix(radix, [&]<int R>() { radix_real<A, R>(a); });
}

template <class A, class T>
void any_radix_to_real(int radix, const RadixPass<T>& a) {
  with_real_radix(radix, [&]<int R>() { radix_to_real<A, R>(a); });
}

template <class A, class T>
void scale(Planes<T> x, T factor, int64_t count) {
  over_lanes<A, T>(count, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
    const F re = lanes_at<F>(x.re + t), im = lanes_at<F>(x.im + t);
    store_lanes(x.re + t, re * like(re, factor));
    store_lanes(x.im + t, im * like(im, factor));
  });
}

template <class A, class T>
void multiply(Planes<T> x, const T* factors, int64_t count, int64_t lanes) {
  for (int64_t k = 0; k < count; ++k) {
    const Planes<T> here{x.re + k * lanes, x.im + k * lanes};
    over_lanes<A, T>(lanes, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
      store_product(here, t, lanes_at<F>(here.re + t), lanes_at<F>(here.im + t), factors[2 * k], factors[2 * k + 1]);
    });
  }
}

template <class A, class T>
void multiply_each(Planes<T> x, Planes<const T> factors, int64_t apart, int64_t count, int64_t lanes) {
  for (int64_t k = 0; k < count; ++k) {
    over_lanes<A, T>(lanes, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
      const int64_t at = k * lanes + t, by = k * apart + t;
      const F re = lanes_at<F>(x.re + at), im = lanes_at<F>(x.im + at);
      const F c = lanes_at<F>(factors.re + by), d = lanes_at<F>(factors.im + by);
      store_lanes(x.re + at, re * c - im * d);
      store_lanes(x.im + at, re * d + im * c);
    });
  }
}

template <class A, class T>
void separate(Planes<T> z, Planes<T> x, const T* roots, int64_t n, int64_t lanes) {
  for (int64_t k = 0; k <= n; ++k) {
    const int64_t here = (k == n ? 0 : k) * lanes, mirror = (k == 0 ? 0 : n - k) * lanes, to = k * lanes;
    over_lanes<A, T>(lanes, [&]<class F>(F, int64_t v) __attribute__((always_inline)) {
      const F here_re = lanes_at<F>(z.re + here + v), mirror_re = lanes_at<F>(z.re + mirror + v);
      const F here_im = lanes_at<F>(z.im + here + v), mirror_im = lanes_at<F>(z.im + mirror + v);
      const F half = like(here_re, 0.5), c = like(here_re, roots[2 * k]), d = like(here_re, roots[2 * k + 1]);
      const F even_re = (here_re + mirror_re) * half, even_im = (here_im - mirror_im) * half;
      const F odd_re = (here_im + mirror_im) * half, odd_im = (mirror_re - here_re) * half;
      store_lanes(x.re + to + v, even_re + (odd_re * c - odd_im * d));
      store_lanes(x.im + to + v, even_im + (odd_re * d + odd_im * c));
    });
  }
}

template <class A, class T>
void join(Planes<T> x, Planes<T> z, const T* roots, int64_t n, int64_t lanes) {
  std::fill(x.im, x.im + lanes, T{});
  std::fill(x.im + n * lanes, x.im + (n + 1) * lanes, T{});
  for (int64_t k = 0; k < n; ++k) {
    const int64_t here = k * lanes, mirror = (n - k) * lanes;
    over_lanes<A, T>(lanes, [&]<class F>(F, int64_t v) __attribute__((always_inline)) {
      const F here_re = lanes_at<F>(x.re + here + v), mirror_re = lanes_at<F>(x.re + mirror + v);
      const F here_im = lanes_at<F>(x.im + here + v), mirror_im = lanes_at<F>(x.im + mirror + v);
      const F half = like(here_re, 0.5), c = like(here_re, roots[2 * k]), d = like(here_re, roots[2 * k + 1]);
      const F even_re = (here_re + mirror_re) * half, even_im = (here_im - mirror_im) * half;
      const F turned_re = (here_re - mirror_re) * half, turned_im = (here_im + mirror_im) * half;
      const F odd_re = turned_re * c + turned_im * d, odd_im = turned_im * c - turned_re * d;
      store_lanes(z.re + here + v, even_re - odd_im);
      store_lanes(z.im + here + v, even_im + odd_re);
    });
  }
}

template <class A, class T>
constexpr LineLoops<T> loops_for() {
  return {&any_radix<A, T>, &any_real_radix<A, T>, &any_radix_to_real<A, T>, &scale<A, T>,
          &multiply<A, T>,  &multiply_each<A, T>,  &separate<A, T>,          &join<A, T>};
}

}  // namespace
}  // namespace hlojit

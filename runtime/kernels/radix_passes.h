// The passes of a transform, each by one radix, for the instruction set A: of complex elements or real ones, from place
// to place or in place.
#pragma once

#include "runtime/kernels/complex_lanes.h"

namespace hlojit {
namespace {

/// Elements j and radix - j of one place: their sums and differences, real parts and imaginary ones.
template <class F>
struct MirroredPair {
  F sum_re, sum_im, difference_re, difference_im;
};

template <class F>
[[gnu::always_inline]] inline MirroredPair<F> mirrored_pair(Complex<F> near, Complex<F> mirror) {
  return {near.re + mirror.re, near.im + mirror.im, near.re - mirror.re, near.im - mirror.im};
}

/// Cosine and sine of each multiple of the R-th part of a turn, but for 0.
template <int R, class T>
struct PartsOfTurn {
  T cosine[R], sine[R];

  explicit PartsOfTurn(const T* matrix) {
    if constexpr (R % 2 == 0) return;  // these need none
    for (int j = 1; j <= R / 2; ++j) {
      cosine[j] = cosine[R - j] = matrix[2 * (j - 1)];
      sine[j] = matrix[2 * (j - 1) + 1];
      sine[R - j] = -sine[j];
    }
  }
};

/// store(k, result k) of the transform of R elements. Odd radices: elements j and R - j enter by their sum and
/// difference, results k and R - k share sums.
template <int R, class F, class T, class Store>
[[gnu::always_inline]] inline void transform(const Complex<F> (&x)[R], const PartsOfTurn<R, T>& turn, Store store) {
  if constexpr (R == 2) {
    store(0, {x[0].re + x[1].re, x[0].im + x[1].im});
    store(1, {x[0].re - x[1].re, x[0].im - x[1].im});
  } else if constexpr (R == 4) {
    const MirroredPair<F> even = mirrored_pair(x[0], x[2]), odd = mirrored_pair(x[1], x[3]);
    store(0, {even.sum_re + odd.sum_re, even.sum_im + odd.sum_im});
    store(1, {even.difference_re + odd.difference_im, even.difference_im - odd.difference_re});
    store(2, {even.sum_re - odd.sum_re, even.sum_im - odd.sum_im});
    store(3, {even.difference_re - odd.difference_im, even.difference_im + odd.difference_re});
  } else {
    constexpr int H = R / 2;
    MirroredPair<F> pairs[H];
    Complex<F> all = x[0];
#pragma clang loop unroll(full)
    for (int j = 0; j < H; ++j) {
      pairs[j] = mirrored_pair(x[j + 1], x[R - 1 - j]);
      all = {all.re + pairs[j].sum_re, all.im + pairs[j].sum_im};
    }
    store(0, all);
#pragma clang loop unroll(full)
    for (int k = 1; k <= H; ++k) {
      F cr = x[0].re, ci = x[0].im, er = like(cr, 0), ei = er;
#pragma clang loop unroll(full)
      for (int j = 0; j < H; ++j) {
        const F cosine = like(cr, turn.cosine[(j + 1) * k % R]), sine = like(cr, turn.sine[(j + 1) * k % R]);
        cr = fma(cosine, pairs[j].sum_re, cr);
        ci = fma(cosine, pairs[j].sum_im, ci);
        er = fma(sine, pairs[j].difference_re, er);
        ei = fma(sine, pairs[j].difference_im, ei);
      }
      store(k, {cr + ei, ci - er});
      store(R - k, {cr - ei, ci + er});
    }
  }
}

template <int R, class F, class T>
[[gnu::always_inline]] inline void load_apart(Complex<F> (&to)[R], Planes<T> x, int64_t at, int64_t apart) {
#pragma clang loop unroll(full)
  for (int j = 0; j < R; ++j) to[j] = complex_at<T, F>(x, at + j * apart);
}

/// (Inlined side by side into one function their loops' addresses went through memory: a tenth of the time.)
template <class A, int R, class T>
[[gnu::noinline]] void radix(const RadixPass<T>& a) {
  const PartsOfTurn<R, T> turn(a.matrix);
  const int64_t s = a.s, far = a.s * a.m;
  for (int64_t p = 0; p < a.m; ++p) {
    const T* w = a.twiddles + 2 * (R - 1) * p;
    const Planes<const T> from{a.x.re + s * p, a.x.im + s * p};
    const Planes<T> to{a.y.re + s * R * p, a.y.im + s * R * p};
    over_lanes<A, T>(s, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
      Complex<F> x[R];
      load_apart<R>(x, from, t, far);
      transform<R>(x, turn, [&](int k, Complex<F> r) __attribute__((always_inline)) {
        if (k != 0) r = times(r, w[2 * k - 2], w[2 * k - 1]);
        store_complex(to, k * s + t, r);
      });
    });
  }
}

/// over_lanes without the loops of narrower vectors where there is nothing for them: next to one butterfly's arithmetic
/// they took half of the time.
template <class A, class T, class Body>
[[gnu::always_inline]] inline void over_whole_vectors(int64_t n, const Body& body) {
  using Wide = math::Batch<T, A>;
  for (int64_t t = 0; t < n; t += Wide::lanes) body(Wide(), t);
}

struct Butterfly {
  int64_t block, p;
};

/// body(F(), first element of all lanes, lane, butterfly) for the lanes of each butterfly of a pass.
template <class A, int R, class T, class Body>
[[gnu::always_inline]] inline void over_butterflies(const BlockPass<T>& a, const Body& body) {
  auto all = [&](auto over) __attribute__((always_inline)) {
    for (int64_t block = 0; block < a.blocks; ++block) {
      for (int64_t p = 0; p < a.m; ++p) {
        const int64_t first = (block * R * a.m + p) * a.lanes;
        const Planes<T> x{a.x.re + first, a.x.im + first};
        over(a.lanes,
             [&]<class F>(F, int64_t t) __attribute__((always_inline)) { body(F(), x, t, Butterfly{block, p}); });
      }
    }
  };
  if (a.lanes % math::Batch<T, A>::lanes == 0) {
    all([](int64_t n, const auto& step) __attribute__((always_inline)) { over_whole_vectors<A, T>(n, step); });
  } else {
    all([](int64_t n, const auto& step) __attribute__((always_inline)) { over_lanes<A, T>(n, step); });
  }
}

template <class A, int R, class T>
void radix_down(const BlockPass<T>& pass) {
  const BlockPass<T> a = pass;  // what is stored could be the pass itself
  const PartsOfTurn<R, T> turn(a.matrix);
  const int64_t far = a.lanes * a.m;
  over_butterflies<A, R>(a, [&]<class F>(F, Planes<T> place, int64_t t, Butterfly b) __attribute__((always_inline)) {
    const T* w = a.twiddles + 2 * (R - 1) * b.p;
    Complex<F> x[R];
    load_apart<R>(x, place, t, far);
    transform<R>(x, turn, [&](int k, Complex<F> r) __attribute__((always_inline)) {
      if (k != 0) r = times(r, w[2 * k - 2], w[2 * k - 1]);
      store_complex(place, t + k * far, r);
    });
  });
}

template <class A, int R, class T>
void radix_up(const BlockPass<T>& pass) {
  const BlockPass<T> a = pass;  // what is stored could be the pass itself
  const PartsOfTurn<R, T> turn(a.matrix);
  const int64_t far = a.lanes * a.m;
  over_butterflies<A, R>(a, [&]<class F>(F, Planes<T> place, int64_t t, Butterfly b) __attribute__((always_inline)) {
    const T* w = a.twiddles + 2 * (R - 1) * b.p;
    Complex<F> x[R];
    load_apart<R>(x, place, t, far);
#pragma clang loop unroll(full)
    for (int k = 1; k < R; ++k) x[k] = times(x[k], w[2 * k - 2], w[2 * k - 1]);
    transform<R>(x, turn,
                 [&](int j, Complex<F> r) __attribute__((always_inline)) { store_complex(place, t + j * far, r); });
  });
}

template <class A, int R, class T>
void radix_through(const BlockPass<T>& pass) {
  const BlockPass<T> a = pass;  // what is stored could be the pass itself
  const PartsOfTurn<R, T> turn(a.matrix);
  over_butterflies<A, R>(a, [&]<class F>(F, Planes<T> place, int64_t t, Butterfly b) __attribute__((always_inline)) {
    const T* factors = a.twiddles + 2 * R * b.block;
    Complex<F> x[R], turned[R];  // real and imaginary parts exchanged: the way back
    load_apart<R>(x, place, t, a.lanes);
    transform<R>(x, turn, [&](int k, Complex<F> r) __attribute__((always_inline)) {
      r = times(r, factors[2 * k], factors[2 * k + 1]);
      turned[k] = {r.im, r.re};
    });
    transform<R>(turned, turn, [&](int j, Complex<F> r) __attribute__((always_inline)) {
      store_complex(place, t + j * a.lanes, Complex<F>{r.im, r.re});
    });
  });
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
        store_complex(y, k * s + t, times(Complex<F>{re, im}, w[2 * k], w[2 * k + 1]));
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
        re[k - 1] = fma(xr, c, -(xi * d));
        im[k - 1] = fma(xr, d, xi * c);
        all = all + re[k - 1];
      }
      store_lanes(y + t, all);
#pragma clang loop unroll(full)
      for (int j = 1; j <= H; ++j) {
        F even = first, odd = like(first, 0);
#pragma clang loop unroll(full)
        for (int k = 1; k <= H; ++k) {
          even = fma(like(even, turn.cosine[j * k % R]), re[k - 1], even);
          odd = fma(like(odd, turn.sine[j * k % R]), im[k - 1], odd);
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
      cr[n] = fma(cosine, pair.sum_re, cr[n]);
      ci[n] = fma(cosine, pair.sum_im, ci[n]);
      er[n] = fma(sine, pair.difference_re, er[n]);
      ei[n] = fma(sine, pair.difference_im, ei[n]);
    }
  }
#pragma clang loop unroll(full)
  for (int n = 0; n < N; ++n) {
    const int near = k + n, mirror = radix - k - n;
    store_complex(y, near * a.s, times(Complex<F>{cr[n] + ei[n], ci[n] - er[n]}, w[2 * near - 2], w[2 * near - 1]));
    store_complex(y, mirror * a.s,
                  times(Complex<F>{cr[n] - ei[n], ci[n] + er[n]}, w[2 * mirror - 2], w[2 * mirror - 1]));
  }
}

/// Any odd radix, of which the compiler knows nothing: as `transform` does it, by the rows of a matrix.
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
        const int64_t near = t + (j + 1) * far, mirror = t + (radix - 1 - j) * far;
        pairs[j] = mirrored_pair(complex_at<const T, F>(x, near), complex_at<const T, F>(x, mirror));
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

/// run.operator()<R>() for the R of Radices that is `radix`; whether there is one.
template <int... Radices, class Run>
bool with_radix(int radix, Run run) {
  return ((radix == Radices && (run.template operator()<Radices>(), true)) || ...);
}

/// The same for those of complex elements.
template <class Run>
bool with_complex_radix(int radix, Run run) {
  return with_radix<2, 3, 4, 5, 7, 11, 13>(radix, run);
}

template <class A, class T>
void any_radix(int by, const RadixPass<T>& a) {
  if (!with_complex_radix(by, [&]<int R>() { radix<A, R>(a); })) radix_by_matrix<A>(by, a);
}

template <class A, class T>
void any_real_radix(int by, const RadixPass<T>& a) {
  with_radix<3, 5, 7>(by, [&]<int R>() { radix_real<A, R>(a); });
}
template <class A, class T>
void any_radix_to_real(int by, const RadixPass<T>& a) {
  with_radix<3, 5, 7>(by, [&]<int R>() { radix_to_real<A, R>(a); });
}

template <class A, class T>
void any_radix_down(int by, const BlockPass<T>& a) {
  with_complex_radix(by, [&]<int R>() { radix_down<A, R>(a); });
}
template <class A, class T>
void any_radix_up(int by, const BlockPass<T>& a) {
  with_complex_radix(by, [&]<int R>() { radix_up<A, R>(a); });
}
template <class A, class T>
void any_radix_through(int by, const BlockPass<T>& a) {
  with_complex_radix(by, [&]<int R>() { radix_through<A, R>(a); });
}

}  // namespace
}  // namespace hlojit

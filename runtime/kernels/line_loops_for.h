// The loops of line_loops.h for the instruction set A. Included by the file of each set, which is compiled for it.
#pragma once

#include <algorithm>

#include "runtime/kernels/radix_passes.h"

namespace hlojit {
namespace {

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
      store_complex(here, t, times(complex_at<T, F>(here, t), factors[2 * k], factors[2 * k + 1]));
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
      store_lanes(x.re + at, fma(re, c, -(im * d)));
      store_lanes(x.im + at, fma(re, d, im * c));
    });
  }
}

template <class A, class T>
void take(Planes<T> x, const int64_t* from, int64_t count, Planes<T> y, int64_t lanes) {
  over_lanes<A, T>(lanes, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
    constexpr int kSums = 4;  // side by side: a quarter of the roundings one after the other
    Complex<F> sums[kSums];
    for (auto& sum : sums) sum = {like(F(), 0), like(F(), 0)};
    for (int64_t k = 0; k < count; k += kSums) {
#pragma clang loop unroll(full)
      for (int64_t j = 0; j < kSums; ++j) {
        if (k + j >= count) break;
        const Complex<F> element = complex_at<T, F>(x, from[k + j] * lanes + t);
        sums[j] = {sums[j].re + element.re, sums[j].im + element.im};
        store_complex(y, (k + j) * lanes + t, element);
      }
    }
    store_complex(y, count * lanes + t,
                  Complex<F>{(sums[0].re + sums[1].re) + (sums[2].re + sums[3].re),
                             (sums[0].im + sums[1].im) + (sums[2].im + sums[3].im)});
  });
}

template <class A, class T>
void give(Planes<T> x, const int64_t* to, int64_t count, Planes<T> y, int64_t lanes) {
  over_lanes<A, T>(lanes, [&]<class F>(F, int64_t t) __attribute__((always_inline)) {
    const Complex<F> first = complex_at<T, F>(y, t);
    for (int64_t k = 0; k < count; ++k) {
      const Complex<F> element = complex_at<T, F>(x, k * lanes + t);
      store_complex(y, to[k] * lanes + t, Complex<F>{element.re + first.re, element.im + first.im});
    }
  });
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
      store_lanes(x.re + to + v, fma(odd_re, c, fma(-odd_im, d, even_re)));
      store_lanes(x.im + to + v, fma(odd_re, d, fma(odd_im, c, even_im)));
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
      const F odd_re = fma(turned_re, c, turned_im * d), odd_im = fma(turned_im, c, -(turned_re * d));
      store_lanes(z.re + here + v, even_re - odd_im);
      store_lanes(z.im + here + v, even_im + odd_re);
    });
  }
}

template <class A, class T>
constexpr LineLoops<T> loops_for() {
  return {&any_radix<A, T>,
          &any_real_radix<A, T>,
          &any_radix_to_real<A, T>,
          &any_radix_down<A, T>,
          &any_radix_up<A, T>,
          &any_radix_through<A, T>,
          &scale<A, T>,
          &multiply<A, T>,
          &multiply_each<A, T>,
          &take<A, T>,
          &give<A, T>,
          &separate<A, T>,
          &join<A, T>};
}

}  // namespace
}  // namespace hlojit

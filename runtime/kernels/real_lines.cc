// See real_lines.h.
#include "runtime/kernels/real_lines.h"

#include <algorithm>

namespace hlojit {
namespace {

template <class C>
[[gnu::always_inline]] inline void separate(Planes<C> z, Planes<C> x, const C* roots, int64_t n, int64_t lanes) {
  constexpr C half = C{0.5};
  for (int64_t k = 0; k <= n; ++k) {
    const C c = roots[2 * k], d = roots[2 * k + 1];
    const int64_t here = (k == n ? 0 : k) * lanes, mirror = (k == 0 ? 0 : n - k) * lanes, to = k * lanes;
#pragma clang loop vectorize(assume_safety)
    for (int64_t v = 0; v < lanes; ++v) {
      const C even_re = (z.re[here + v] + z.re[mirror + v]) * half,
              even_im = (z.im[here + v] - z.im[mirror + v]) * half;
      const C odd_re = (z.im[here + v] + z.im[mirror + v]) * half, odd_im = (z.re[mirror + v] - z.re[here + v]) * half;
      x.re[to + v] = even_re + (odd_re * c - odd_im * d);
      x.im[to + v] = even_im + (odd_re * d + odd_im * c);
    }
  }
}

template <class C>
[[gnu::always_inline]] inline void join(Planes<C> x, Planes<C> z, const C* roots, int64_t n, int64_t lanes) {
  constexpr C half = C{0.5};
  std::fill(x.im, x.im + lanes, C{});
  std::fill(x.im + n * lanes, x.im + (n + 1) * lanes, C{});
  for (int64_t k = 0; k < n; ++k) {
    const C c = roots[2 * k], d = roots[2 * k + 1];
    const int64_t here = k * lanes, mirror = (n - k) * lanes;
#pragma clang loop vectorize(assume_safety)
    for (int64_t v = 0; v < lanes; ++v) {
      const C here_re = x.re[here + v], here_im = x.im[here + v];
      const C mirror_re = x.re[mirror + v], mirror_im = x.im[mirror + v];
      const C even_re = (here_re + mirror_re) * half, even_im = (here_im - mirror_im) * half;
      const C turned_re = (here_re - mirror_re) * half, turned_im = (here_im + mirror_im) * half;
      const C odd_re = turned_re * c + turned_im * d, odd_im = turned_im * c - turned_re * d;
      z.re[here + v] = even_re - odd_im;
      z.im[here + v] = even_im + odd_re;
    }
  }
}

}  // namespace

#define HLOJIT_EACH_WIDTH __attribute__((target_clones("default", "avx2", "avx512f")))
HLOJIT_EACH_WIDTH void separate_halves(Planes<float> z, Planes<float> x, const float* roots, int64_t n, int64_t lanes) {
  separate(z, x, roots, n, lanes);
}
HLOJIT_EACH_WIDTH void separate_halves(Planes<double> z, Planes<double> x, const double* roots, int64_t n,
                                       int64_t lanes) {
  separate(z, x, roots, n, lanes);
}
HLOJIT_EACH_WIDTH void join_halves(Planes<float> x, Planes<float> z, const float* roots, int64_t n, int64_t lanes) {
  join(x, z, roots, n, lanes);
}
HLOJIT_EACH_WIDTH void join_halves(Planes<double> x, Planes<double> z, const double* roots, int64_t n, int64_t lanes) {
  join(x, z, roots, n, lanes);
}

}  // namespace hlojit

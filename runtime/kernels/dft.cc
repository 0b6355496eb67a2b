// See dft.h.
#include "runtime/kernels/dft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "runtime/kernels/convolved_dft.h"

namespace hlojit {
namespace {

constexpr int kRadices[] = {4, 2, 3, 5, 7, 11, 13};

/// One pass: `s` consecutive elements (lanes times the factors done), `m` twiddle groups.
template <class T>
struct Pass {
  const T *xr, *xi;
  T *yr, *yi;
  int64_t s, m;
  const T* w;
};

/// a * (c + i d) into y.
template <class T>
[[gnu::always_inline]] inline void put(T* re, T* im, T ar, T ai, T c, T d) {
  *re = ar * c - ai * d;
  *im = ar * d + ai * c;
}

template <class T>
[[gnu::always_inline]] inline void radix2(const Pass<T>& a) {
  for (int64_t p = 0; p < a.m; ++p) {
    const T c = a.w[2 * p], d = a.w[2 * p + 1];
    const T *x0 = a.xr + a.s * p, *x1 = x0 + a.s * a.m, *z0 = a.xi + a.s * p, *z1 = z0 + a.s * a.m;
    T *y = a.yr + a.s * 2 * p, *u = a.yi + a.s * 2 * p;
#pragma clang loop vectorize(assume_safety)
    for (int64_t t = 0; t < a.s; ++t) {
      y[t] = x0[t] + x1[t];
      u[t] = z0[t] + z1[t];
      put(y + a.s + t, u + a.s + t, x0[t] - x1[t], z0[t] - z1[t], c, d);
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void radix4(const Pass<T>& a) {
  const int64_t s = a.s, far = a.s * a.m;
  for (int64_t p = 0; p < a.m; ++p) {
    const T* w = a.w + 6 * p;
    const T *x = a.xr + s * p, *z = a.xi + s * p;
    T *y = a.yr + s * 4 * p, *u = a.yi + s * 4 * p;
#pragma clang loop vectorize(assume_safety)
    for (int64_t t = 0; t < s; ++t) {
      const T sr = x[t] + x[t + 2 * far], si = z[t] + z[t + 2 * far];
      const T dr = x[t] - x[t + 2 * far], di = z[t] - z[t + 2 * far];
      const T er = x[t + far] + x[t + 3 * far], ei = z[t + far] + z[t + 3 * far];
      const T fr = z[t + far] - z[t + 3 * far], fi = x[t + 3 * far] - x[t + far];  // times -i
      y[t] = sr + er;
      u[t] = si + ei;
      put(y + s + t, u + s + t, dr + fr, di + fi, w[0], w[1]);
      put(y + 2 * s + t, u + 2 * s + t, sr - er, si - ei, w[2], w[3]);
      put(y + 3 * s + t, u + 3 * s + t, dr - fr, di - fi, w[4], w[5]);
    }
  }
}

/// Odd radices: elements j and R - j enter by their sum and difference, results k and R - k share
/// sums.
template <int R, class T>
[[gnu::always_inline]] inline void radix_odd(const Pass<T>& a) {
  constexpr int H = (R - 1) / 2;
  T cosine[R], sine[R];
  for (int k = 0; k < R; ++k) {
    cosine[k] = static_cast<T>(std::cos(2 * std::numbers::pi * k / R));
    sine[k] = static_cast<T>(std::sin(2 * std::numbers::pi * k / R));
  }
  const int64_t s = a.s, far = a.s * a.m;
  for (int64_t p = 0; p < a.m; ++p) {
    const T* w = a.w + 2 * (R - 1) * p;
    const T *x = a.xr + s * p, *z = a.xi + s * p;
    T *y = a.yr + s * R * p, *u = a.yi + s * R * p;
#pragma clang loop vectorize(assume_safety)
    for (int64_t t = 0; t < s; ++t) {
      T pr[H], pi[H], qr[H], qi[H];
      T r0 = x[t], i0 = z[t];
#pragma clang loop unroll(full)
      for (int j = 0; j < H; ++j) {
        const int64_t near = t + (j + 1) * far, mirror = t + (R - 1 - j) * far;
        pr[j] = x[near] + x[mirror];
        pi[j] = z[near] + z[mirror];
        qr[j] = x[near] - x[mirror];
        qi[j] = z[near] - z[mirror];
        r0 += pr[j];
        i0 += pi[j];
      }
      y[t] = r0;
      u[t] = i0;
#pragma clang loop unroll(full)
      for (int k = 1; k <= H; ++k) {
        T cr = x[t], ci = z[t], er = 0, ei = 0;
#pragma clang loop unroll(full)
        for (int j = 0; j < H; ++j) {
          const int at = (j + 1) * k % R;
          cr += cosine[at] * pr[j];
          ci += cosine[at] * pi[j];
          er += sine[at] * qr[j];
          ei += sine[at] * qi[j];
        }
        put(y + k * s + t, u + k * s + t, cr + ei, ci - er, w[2 * k - 2], w[2 * k - 1]);
        put(y + (R - k) * s + t, u + (R - k) * s + t, cr - ei, ci + er, w[2 * (R - k) - 2], w[2 * (R - k) - 1]);
      }
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void any_radix(int radix, const Pass<T>& a) {
  switch (radix) {
    case 2: return radix2(a);
    case 3: return radix_odd<3>(a);
    case 4: return radix4(a);
    case 5: return radix_odd<5>(a);
    case 7: return radix_odd<7>(a);
    case 11: return radix_odd<11>(a);
    default: return radix_odd<13>(a);
  }
}

// The same source for each width of vectors; without contraction all give the same bits.
#define HLOJIT_EACH_WIDTH __attribute__((target_clones("default", "avx2", "avx512f")))
HLOJIT_EACH_WIDTH void run_pass(int radix, const Pass<float>& a) { any_radix(radix, a); }
HLOJIT_EACH_WIDTH void run_pass(int radix, const Pass<double>& a) { any_radix(radix, a); }

}  // namespace

std::pair<double, double> unit_root(int64_t k, int64_t n) {
  const int64_t quarter = 4 * (k % n) / n, rest = 4 * (k % n) - quarter * n;
  const double angle = static_cast<double>(rest) / static_cast<double>(n) * (std::numbers::pi / 2);
  const double c = std::cos(angle), s = std::sin(angle);
  switch (quarter) {
    case 0: return {c, -s};
    case 1: return {-s, -c};
    case 2: return {-c, s};
    default: return {s, c};
  }
}

std::vector<std::pair<double, double>> unit_roots(int64_t n) {
  std::vector<std::pair<double, double>> roots(static_cast<size_t>(n));
  const int64_t turn = n % 4 == 0 ? n / 4 : n;  // the other quarters are this one turned
  for (int64_t k = 0; k < n; ++k) {
    const auto at = static_cast<size_t>(k), before = static_cast<size_t>(k - turn);
    roots[at] = k < turn ? unit_root(k, n) : std::pair{roots[before].second, -roots[before].first};
  }
  return roots;
}

template <class T>
bool Dft<T>::is_smooth(int64_t n) {
  for (int r : kRadices) {
    while (n % r == 0) n /= r;
  }
  return n == 1;
}

template <class T>
Dft<T>::Dft(int64_t n) : room_(n) {
  const std::vector<std::pair<double, double>> roots = unit_roots(n);  // those of what divides n are among them
  int64_t rest = n;
  while (rest > 1) {
    const auto* radix = std::ranges::find_if(kRadices, [&](int r) { return rest % r == 0; });
    if (radix == std::end(kRadices)) break;
    Stage stage{*radix, rest / *radix, {}};
    stage.twiddles.reserve(static_cast<size_t>(2 * stage.m * (*radix - 1)));
    for (int64_t p = 0; p < stage.m; ++p) {
      for (int64_t k = 1; k < *radix; ++k) {
        auto [c, d] = roots[static_cast<size_t>(p * k * (n / rest))];
        stage.twiddles.push_back(static_cast<T>(c));
        stage.twiddles.push_back(static_cast<T>(d));
      }
    }
    rest = stage.m;
    stages_.push_back(std::move(stage));
  }
  if (rest == 1) return;
  convolution_ = std::make_unique<ConvolvedDft<T>>(rest);
  room_ = n / rest * convolution_->room();
}

template <class T>
Dft<T>::~Dft() = default;

template <class T>
Planes<T> Dft<T>::run(Planes<T> x, Planes<T> y, int64_t lanes) const {
  int64_t s = lanes;
  for (const Stage& stage : stages_) {
    run_pass(stage.radix, Pass<T>{x.re, x.im, y.re, y.im, s, stage.m, stage.twiddles.data()});
    s *= stage.radix;
    std::swap(x, y);
  }
  // What is left of the length is behind no other factor: the elements of all the lines side by side are its lanes.
  return convolution_ ? convolution_->run(x, y, s) : x;
}

template class Dft<float>;
template class Dft<double>;

}  // namespace hlojit

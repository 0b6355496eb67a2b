// See convolved_dft.h.
#include "runtime/kernels/convolved_dft.h"

#include <algorithm>

namespace hlojit {
namespace {

constexpr int kQuickFactor = 13, kFairFactor = 31;  // a line twice as long is worse than one of the latter

int64_t smooth_from(int64_t n) {
  while (!Dft<double>::has_factors_up_to(kQuickFactor, n)) ++n;
  return n;
}

int64_t times(int64_t a, int64_t b, int64_t n) { return static_cast<int64_t>(static_cast<__int128>(a) * b % n); }

/// 1, g, g^2, ... of n - 1 different residues; empty if n is not prime.
std::vector<int64_t> powers_of_a_generator(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return {};
  }
  for (int64_t g = 2;; ++g) {
    std::vector<int64_t> powers{1};
    for (int64_t p = g; p != 1; p = times(p, g, n)) powers.push_back(p);
    if (static_cast<int64_t>(powers.size()) == n - 1) return powers;
  }
}

std::vector<int64_t> order_of(int64_t n) {
  return Dft<double>::has_factors_up_to(kFairFactor, n - 1) ? powers_of_a_generator(n) : std::vector<int64_t>{};
}

template <class T>
void copy_element(Planes<T> from, int64_t j, Planes<T> to, int64_t k, int64_t lanes) {
  std::copy_n(from.re + j * lanes, lanes, to.re + k * lanes);
  std::copy_n(from.im + j * lanes, lanes, to.im + k * lanes);
}

}  // namespace

template <class T>
ConvolvedDft<T>::ConvolvedDft(int64_t n)
    : n_(n), order_(order_of(n)), inner_(order_.empty() ? smooth_from(2 * n - 1) : n - 1) {
  const int64_t length = inner_.room();
  std::vector<T> re(static_cast<size_t>(length)), im(re), other_re(re), other_im(re);
  auto set = [&](int64_t at, double c, double d) {
    re[static_cast<size_t>(at)] = static_cast<T>(c);
    im[static_cast<size_t>(at)] = static_cast<T>(d);
  };
  const auto roots = unit_roots(order_.empty() ? 2 * n : n);
  for (int64_t p = 0; !order_.empty() && p < length; ++p) {  // w^(g^-p)
    auto [c, d] = roots[static_cast<size_t>(order_[static_cast<size_t>((length - p) % length)])];
    set(p, c, d);
  }
  for (int64_t k = 0; order_.empty() && k < n; ++k) {
    auto [c, d] = roots[static_cast<size_t>(times(k, k, 2 * n))];
    chirp_.push_back(static_cast<T>(c));
    chirp_.push_back(static_cast<T>(d));
    set(k, c, -d);
    set((length - k) % length, c, -d);
  }
  Planes<T> f = inner_.run({re.data(), im.data()}, {other_re.data(), other_im.data()}, 1);
  for (int64_t k = 0; k < length; ++k) {
    filter_.push_back(f.re[k] / static_cast<T>(length));
    filter_.push_back(f.im[k] / static_cast<T>(length));
  }
}

template <class T>
Planes<T> ConvolvedDft<T>::run(Planes<T> x, Planes<T> y, int64_t lanes) const {
  return order_.empty() ? by_chirp(x, y, lanes) : by_powers(x, y, lanes);
}

// Result q of the convolution is, but for x[0], the one at g^-q. Both planes have an element more than the convolution:
// that of y keeps x[0], then the sum of all.
template <class T>
Planes<T> ConvolvedDft<T>::by_powers(Planes<T> x, Planes<T> y, int64_t lanes) const {
  const int64_t length = n_ - 1;
  for (int64_t p = 0; p < length; ++p) copy_element(x, order_[static_cast<size_t>(p)], y, p, lanes);
  copy_element(x, 0, y, length, lanes);
  Planes<T> f = inner_.run(y, x, lanes), other = f.re == x.re ? y : x;
  T *first_re = y.re + length * lanes, *first_im = y.im + length * lanes;
  std::vector<T> sum(f.re, f.re + lanes);
  sum.insert(sum.end(), f.im, f.im + lanes);
  line_loops<T>().multiply(f, filter_.data(), length, lanes);
  for (int64_t v = 0; v < lanes; ++v) {  // what is added to element 0 here is added to all behind the way back
    f.re[v] += first_re[v];
    f.im[v] += first_im[v];
    first_re[v] += sum[static_cast<size_t>(v)];
    first_im[v] += sum[static_cast<size_t>(lanes + v)];
  }
  Planes<T> back = inner_.run({f.im, f.re}, {other.im, other.re}, lanes);
  Planes<T> c{back.im, back.re}, result = c.re == x.re ? y : x;
  copy_element(y, length, result, 0, lanes);
  for (int64_t q = 0; q < length; ++q) {
    copy_element(c, q, result, order_[static_cast<size_t>((length - q) % length)], lanes);
  }
  return result;
}

template <class T>
Planes<T> ConvolvedDft<T>::by_chirp(Planes<T> x, Planes<T> y, int64_t lanes) const {
  const int64_t length = inner_.room();
  line_loops<T>().multiply(x, chirp_.data(), n_, lanes);
  std::fill(x.re + n_ * lanes, x.re + length * lanes, T{});
  std::fill(x.im + n_ * lanes, x.im + length * lanes, T{});
  Planes<T> f = inner_.run(x, y, lanes), other = f.re == x.re ? y : x;
  line_loops<T>().multiply(f, filter_.data(), length, lanes);
  Planes<T> back = inner_.run({f.im, f.re}, {other.im, other.re}, lanes);
  Planes<T> result{back.im, back.re};
  line_loops<T>().multiply(result, chirp_.data(), n_, lanes);
  return result;
}

template class ConvolvedDft<float>;
template class ConvolvedDft<double>;

}  // namespace hlojit

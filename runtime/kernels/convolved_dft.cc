// See convolved_dft.h.
#include "runtime/kernels/convolved_dft.h"

#include <algorithm>
#include <utility>

namespace hlojit {
namespace {

using Line = std::vector<std::pair<double, double>>;

constexpr int kQuickFactor = 7;

bool is_smooth(int64_t n, int largest) { return Dft<double>::has_factors_up_to(largest, n); }

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

/// The same from the last one down but for 1, which stays first, and 0 behind them.
std::vector<int64_t> inverses_of(const std::vector<int64_t>& powers) {
  std::vector<int64_t> inverses(powers);
  if (!powers.empty()) {
    std::reverse(inverses.begin() + 1, inverses.end());
    inverses.push_back(0);
  }
  return inverses;
}

/// w^(g^-p)
Line roots_in_order(int64_t n, const std::vector<int64_t>& inverses) {
  const Line roots = unit_roots(n);
  Line line;
  for (int64_t p = 0; p < n - 1; ++p) line.push_back(roots[static_cast<size_t>(inverses[static_cast<size_t>(p)])]);
  return line;
}

/// w^(k^2 / 2), k < n.
Line chirp_of(int64_t n) {
  const Line roots = unit_roots(2 * n);
  Line chirp;
  for (int64_t k = 0; k < n; ++k) chirp.push_back(roots[static_cast<size_t>(times(k, k, 2 * n))]);
  return chirp;
}

/// Their conjugates, for negative k too.
Line conjugates_on_both_sides(const Line& chirp) {
  const size_t n = chirp.size();
  size_t length = 2 * n - 1;
  while (!is_smooth(static_cast<int64_t>(length), kQuickFactor)) ++length;
  Line line(length);
  for (size_t k = 0; k < n; ++k) line[k] = line[(length - k) % length] = {chirp[k].first, -chirp[k].second};
  return line;
}

}  // namespace

template <class T>
ConvolvedDft<T>::ConvolvedDft(int64_t n)
    : n_(n),
      from_(is_smooth(n - 1, Convolution<T>::kLargestFactor) ? powers_of_a_generator(n) : std::vector<int64_t>{}),
      to_(inverses_of(from_)),
      convolution_(from_.empty() ? conjugates_on_both_sides(chirp_of(n)) : roots_in_order(n, to_)) {
  if (!from_.empty()) return;
  for (auto [c, d] : chirp_of(n)) {
    chirp_.push_back(static_cast<T>(c));
    chirp_.push_back(static_cast<T>(d));
  }
}

template <class T>
Planes<T> ConvolvedDft<T>::run(Planes<T> x, Planes<T> y, int64_t lanes) const {
  if (!from_
           .empty()) {  // the sum of all, behind the convolution's elements, is result 0 but for x[0], as each other is
    line_loops<T>().take(x, from_.data(), n_ - 1, y, lanes);
    const Planes<T> c = convolution_.run(y, {x.re + lanes, x.im + lanes}, lanes);  // x[0] stays
    if (c.re != y.re) {
      std::copy_n(c.re, (n_ - 1) * lanes, y.re);
      std::copy_n(c.im, (n_ - 1) * lanes, y.im);
    }
    line_loops<T>().give(y, to_.data(), n_, x, lanes);
    return x;
  }
  const int64_t padding = (convolution_.length() - n_) * lanes;
  line_loops<T>().multiply(x, chirp_.data(), n_, lanes);
  std::fill_n(x.re + n_ * lanes, padding, T{});
  std::fill_n(x.im + n_ * lanes, padding, T{});
  const Planes<T> c = convolution_.run(x, y, lanes);
  line_loops<T>().multiply(c, chirp_.data(), n_, lanes);
  return c;
}

template class ConvolvedDft<float>;
template class ConvolvedDft<double>;

}  // namespace hlojit

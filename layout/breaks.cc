// Where the floordiv and mod atoms of an expression wrap, as a function of one variable.
//
// floordiv(c*v + k, w) has slope c/w; with c = w*q + r it is q*v + floordiv(r*v + k, w), which
// steps |r|/g times in every w/g values of v, g = gcd(r, w). The other terms shift k by what they
// are modulo w; every such shift counts. A variable below another atom is reached through it: a
// wrap of mod(e, W) or floordiv(e, a) at u is a wrap of e.
#include <algorithm>
#include <numeric>

#include "layout/digits.h"
#include "layout/tiling.h"

namespace hlojit {
namespace {

using AtomKind = IndexExpr::AtomKind;

// More wraps than this in one period make no useful loops; the atom then keeps its division. Where
// other variables move the wraps, each variable is cut in as many pieces, and they multiply.
constexpr int64_t kMaxWraps = 64;
constexpr int64_t kMaxMovingWraps = 8;

class BreakFinder {
 public:
  BreakFinder(int id, std::vector<Break>& out) : id_(id), out_(out) {}

  // Adds the breaks of floordiv(sum, width), equally of mod(sum, width).
  void of_quotient(const IndexExpr& sum, int64_t width) {
    for (const IndexExpr::Term& t : sum.terms()) {
      bool direct = t.atom->kind == AtomKind::kVar;
      if (direct ? t.atom->var != id_ : !t.atom->operand->depends_on(id_)) continue;
      of_term(sum, t, width);
    }
  }

 private:
  void of_term(const IndexExpr& sum, const IndexExpr::Term& term, int64_t width) {
    int64_t r = mod(term.coefficient, width);
    if (r > width - r) r -= width;  // the sign with fewer steps
    if (r == 0) return;
    int64_t steep = r < 0 ? -r : r;
    int64_t g = std::gcd(steep, width), period = width / g;
    int64_t steps = steep / g;

    // Values of the other terms modulo width: first + any multiple of `grain`.
    __int128 lo = sum.constant(), hi = sum.constant();
    int64_t grain = width;
    for (const IndexExpr::Term& t : sum.terms()) {
      if (&t == &term) continue;
      grain = std::gcd(grain, t.coefficient);
      __int128 p = static_cast<__int128>(t.coefficient) * t.atom->range.lo;
      __int128 q = static_cast<__int128>(t.coefficient) * t.atom->range.hi;
      lo += std::min(p, q);
      hi += std::max(p, q);
    }
    int64_t shifts = width / grain;
    if (hi - lo < width) shifts = std::min(shifts, static_cast<int64_t>(hi - lo) / grain + 1);
    int64_t first = static_cast<int64_t>(lo % width);
    int64_t allowed = shifts > 1 ? kMaxMovingWraps : kMaxWraps;
    if (shifts > allowed || steps > allowed || shifts * steps > allowed) return;

    bool moved = moves_;
    moves_ |= shifts > 1;
    for (int64_t s = 0; s < shifts; ++s) {
      int64_t k = first + s * grain;
      for (int64_t m = 0; m < steps; ++m) {
        // First value past a step of floordiv(r*u + k, width).
        int64_t u = r > 0 ? -floordiv(-(m * width - k), r) : floordiv(k - m * width, steep) + 1;
        at(*term.atom, mod(u, period), period);
      }
    }
    moves_ = moved;
  }

  // Something wraps where the atom's value is `u` modulo `period`.
  void at(const IndexExpr::Atom& atom, int64_t u, int64_t period) {
    switch (atom.kind) {
      case AtomKind::kVar: add({.width = period, .offset = -u}); return;
      case AtomKind::kFloorDiv: {
        int64_t wide;
        if (__builtin_mul_overflow(atom.width, period, &wide)) return;
        of_quotient(*atom.operand - u * atom.width, wide);
        return;
      }
      case AtomKind::kMod: below_mod(atom, u, period); return;
    }
  }

  void below_mod(const IndexExpr::Atom& atom, int64_t u, int64_t period) {
    if (atom.width % period == 0) return of_quotient(*atom.operand - u, period);
    // The count restarts at every multiple of the mod's width.
    const IndexExpr& e = *atom.operand;
    if (u == 0 && e.terms().size() == 1 && e.coefficient(id_) == 1) {
      return add({.width = period, .offset = e.constant(), .within = atom.width});
    }
    if ((atom.width - u) / period > kMaxWraps) return;
    for (int64_t p = u; p < atom.width; p += period) of_quotient(e - p, atom.width);
  }

  void add(Break b) {
    b.offset = mod(b.offset, b.within > 0 ? b.within : b.width);
    b.moves = moves_;
    if (b.width > 1 && std::ranges::find(out_, b) == out_.end()) out_.push_back(b);
  }

  int id_;
  std::vector<Break>& out_;
  bool moves_ = false;  // the break under construction depends on other variables
};

}  // namespace

std::vector<Break> breaks_of(const IndexExpr& expr, int id) {
  std::vector<Break> out;
  BreakFinder finder(id, out);
  for (const auto& atom : expr.div_mod_atoms()) finder.of_quotient(*atom->operand, atom->width);
  return out;
}

}  // namespace hlojit

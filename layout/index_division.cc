// The simplifier of symbolic index arithmetic.
//
// Dividing a sum S by w:
//
//   1. Every coefficient is split as w*q + r; the w*q leave the division as q. Of r two values
//      serve, one positive and one negative: (9k) / 8 = k + k/8, and (a + 2) / 3 with a in [0,2)
//      is a once a is read as 3a - 2a, for 2 - 2a stays in [0,3). If for some choice the remaining
//      sum stays between two neighbouring multiples of w, nothing is left to divide.
//   2. If that holds for a divisor g of w instead, S / w = (S / g) / (w / g), a smaller problem
//      whose sum has fewer terms: (4a + b) / 8 = a / 2 for b in [0,4).
//   3. A division of a division, other terms beside it, is one division; a mod inside is moved outside.
//   4. Near a single multiple of w, a divisor of w is as good: (a + 64) / 96 = a / 32 for a in [0,64).
//   5. Else it becomes an atom.
//
// mod follows from the same splits, as S - w * (S / w). Adding rejoins c*mod(e,w) + c*w*(e/w) =
// c*e, which makes a reshape of a reshape vanish. Every rule holds for all integers.
#include <algorithm>
#include <functional>
#include <numeric>

#include "layout/error.h"
#include "layout/index_atoms.h"
#include "layout/index_expr.h"
#include "layout/tiling.h"

namespace hlojit {

using Builder = IndexExprBuilder;
using namespace index_atoms;

namespace {

// A sum taken apart as  width * quotient + rest.
struct Split {
  IndexExpr quotient;
  IndexExpr rest;
};

// As IndexExpr, but open: filled in the order of the terms it comes from, and therefore sorted.
struct Sum {
  int64_t constant = 0;
  std::vector<Term> terms;
  void add(const AtomPtr& atom, int64_t coefficient) {
    if (coefficient != 0) terms.push_back({atom, coefficient});
  }
  IndexExpr done() && { return Builder::make(constant, std::move(terms)); }
};

// Splits so that 0 <= rest < width for all values of the variables; nullopt if no choice of
// remainders achieves it.
std::optional<Split> split_exactly(const IndexExpr& e, int64_t width) {
  constexpr size_t kMaxChoices = 6;
  struct Part {
    size_t term;
    int64_t quotient, remainder;
  };
  Part uneven[kMaxChoices];
  size_t count = 0;
  std::span<const Term> terms = e.terms();
  for (size_t i = 0; i < terms.size(); ++i) {
    int64_t c = terms[i].coefficient;
    if (c % width == 0) continue;
    if (count == kMaxChoices) return std::nullopt;
    uneven[count++] = {i, c / width, c % width};
  }
  for (unsigned choice = 0; choice < (1u << count); ++choice) {
    Range r{e.constant(), e.constant()};
    for (size_t p = 0; p < count; ++p) {
      int64_t m = uneven[p].remainder;
      if (choice >> p & 1) m -= m > 0 ? width : -width;
      r = sum(r, scaled(terms[uneven[p].term].atom->range, m));
    }
    int64_t q = floordiv(r.lo, width);
    if (q != floordiv(r.hi, width)) continue;
    Sum quotient{.constant = q, .terms = {}}, rest{.constant = e.constant() - q * width, .terms = {}};
    size_t p = 0;
    for (size_t i = 0; i < terms.size(); ++i) {
      int64_t c = terms[i].coefficient;
      if (p < count && uneven[p].term == i) {
        int64_t m = uneven[p].remainder, f = uneven[p].quotient;
        if (choice >> p & 1) {
          f += m > 0 ? 1 : -1;
          m -= m > 0 ? width : -width;
        }
        quotient.add(terms[i].atom, f);
        rest.add(terms[i].atom, m);
        ++p;
      } else {
        quotient.add(terms[i].atom, c / width);
      }
    }
    return Split{std::move(quotient).done(), std::move(rest).done()};
  }
  return std::nullopt;
}

// Splits off what is a multiple of the width, whatever the ranges: coefficients truncated, the
// constant brought into [0, width).
Split split_multiples(const IndexExpr& e, int64_t width) {
  int64_t q = floordiv(e.constant(), width);
  Sum quotient{.constant = q, .terms = {}}, rest{.constant = e.constant() - q * width, .terms = {}};
  for (const Term& t : e.terms()) {
    quotient.add(t.atom, t.coefficient / width);
    rest.add(t.atom, t.coefficient % width);
  }
  return {std::move(quotient).done(), std::move(rest).done()};
}

// Proper divisors of width that some of the coefficients share, largest first.
std::vector<int64_t> shared_divisors(const IndexExpr& e, int64_t width) {
  constexpr size_t kMaxDivisors = 16;
  std::vector<int64_t> found;
  for (const Term& t : e.terms()) {
    size_t known = found.size();
    for (size_t i = 0; i <= known && found.size() < kMaxDivisors; ++i) {
      int64_t g = std::gcd(i < known ? found[i] : width, t.coefficient);
      if (g > 1 && g < width && std::ranges::find(found, g) == found.end()) found.push_back(g);
    }
  }
  std::ranges::sort(found, std::greater<>());
  return found;
}

// The first divisor g of width by which e splits exactly, with the split.
std::optional<std::pair<int64_t, Split>> split_by_divisor(const IndexExpr& e, int64_t width) {
  for (int64_t g : shared_divisors(e, width)) {
    if (std::optional<Split> s = split_exactly(e, g)) return std::pair{g, *std::move(s)};
  }
  return std::nullopt;
}

// The atom of an expression that is that atom plus a constant.
const Atom* sole_atom(const IndexExpr& e) {
  return e.terms().size() == 1 && e.terms()[0].coefficient == 1 ? e.terms()[0].atom.get() : nullptr;
}

// The one division among the terms, if it stands there once.
const Atom* sole_division(const IndexExpr& e) {
  const Atom* found = nullptr;
  for (const Term& t : e.terms()) {
    if (t.atom->kind != AtomKind::kFloorDiv) continue;
    if (found || t.coefficient != 1) return nullptr;
    found = t.atom.get();
  }
  return found;
}

void check_width(int64_t width) {
  if (width <= 0) throw Error(ErrorKind::kInvalid, "division by a width that is not positive");
}

// Some variable below an atom.
int any_variable(const Atom& atom) {
  const Atom* a = &atom;
  while (a->kind != AtomKind::kVar) a = a->operand->terms().front().atom.get();
  return a->var;
}

// Does `high` divide a sum of which `low` is the rest, though it may be written as that of another? (Of 3 * mod(v, 25),
// divided by 25, the rest is mod(3 * v, 25).)
bool divides_same(const Atom& high, const Atom& low) {
  if (high.kind != AtomKind::kFloorDiv || high.width != low.width) return false;
  const IndexExpr rest = mod(*high.operand, high.width);
  const Atom* atom = sole_atom(rest);
  return atom && rest.constant() == 0 && compare(*atom, low) == 0;
}

// The sum without two of its terms. (By subtraction each of these would look for what rejoins in all that is left, and
// so on: exponential in the digits of a position.)
IndexExpr without(const IndexExpr& e, const Term& one, const Term& other) {
  Sum left{.constant = e.constant(), .terms = {}};
  for (const Term& t : e.terms()) {
    if (&t != &one && &t != &other) left.terms.push_back(t);
  }
  return std::move(left).done();
}

}  // namespace

std::optional<IndexExpr> index_atoms::rejoin(const IndexExpr& e) {
  std::span<const Term> terms = e.terms();
  for (const Term& low : terms) {
    if (low.atom->kind != AtomKind::kMod) continue;
    int64_t c = low.coefficient, width = low.atom->width;
    int64_t high_coefficient;
    if (__builtin_mul_overflow(c, width, &high_coefficient)) continue;
    const IndexExpr& base = *low.atom->operand;
    std::optional<IndexExpr> quotient;  // base / width, if some term has the coefficient it needs
    for (const Term& high : terms) {
      if (high.coefficient != high_coefficient || &high == &low) continue;
      // The partner divides what low takes the remainder of, so it has the same variables.
      if (high.atom->kind == AtomKind::kVar) continue;
      if (!high.atom->operand->depends_on(any_variable(*low.atom))) continue;
      if (divides_same(*high.atom, *low.atom)) {
        return without(e, low, high) + *high.atom->operand * c;
      }
      if (!quotient) quotient = floordiv(base, width);
      const Atom* q = sole_atom(*quotient);
      if (q == nullptr) break;
      if (compare(*q, *high.atom) == 0) {
        return without(e, low, high) + (base - IndexExpr(quotient->constant()) * width) * c;
      }
      if (high.atom->kind != AtomKind::kMod) continue;
      // mod(R, w) + w * mod(R/w + T, v) = mod(R + w*T, w*v)
      const IndexExpr& upper = *high.atom->operand;
      bool has = std::ranges::any_of(upper.terms(),
                                     [&](const Term& t) { return t.coefficient == 1 && compare(*t.atom, *q) == 0; });
      if (!has) continue;
      IndexExpr rest = upper - *quotient;
      return without(e, low, high) + mod(base + rest * width, width * high.atom->width) * c;
    }
  }
  return std::nullopt;
}

IndexExpr floordiv(const IndexExpr& a, int64_t width) {
  check_width(width);
  if (width == 1) return a;
  if (a.is_constant()) return floordiv(a.constant(), width);
  if (std::optional<Split> s = split_exactly(a, width)) return std::move(s->quotient);
  if (auto by = split_by_divisor(a, width)) {
    return floordiv(by->second.quotient, width / by->first);
  }
  auto [quotient, rest] = split_multiples(a, width);
  if (const Atom* inner = sole_division(rest)) {
    int64_t wide;
    if (!__builtin_mul_overflow(inner->width, width, &wide)) {
      // (e/a + c) / w = (e + a*c) / (a*w)
      IndexExpr others = rest - Builder::of(make_atom(AtomKind::kFloorDiv, *inner->operand, inner->width));
      return quotient + floordiv(*inner->operand + others * inner->width, wide);
    }
  }
  // Where the rest steps over the width once, and stays near it, a divisor of it tells the step: (v + 64) / 96 = v / 32
  // for v in [0,64), as the digits beside it are told.
  const int64_t near = std::gcd(rest.constant(), width);
  if (near < width && rest.range().lo >= width - near && rest.range().hi < width + near) {
    return quotient + floordiv(rest - IndexExpr(width - near), near);
  }
  if (const Atom* sole = sole_atom(rest)) {
    if (sole->kind == AtomKind::kMod && rest.constant() == 0 && sole->width % width == 0) {
      return quotient + mod(floordiv(*sole->operand, width), sole->width / width);
    }
  }
  return quotient + Builder::of(make_atom(AtomKind::kFloorDiv, rest, width));
}

IndexExpr mod(const IndexExpr& a, int64_t width) {
  check_width(width);
  if (width == 1) return 0;
  if (a.is_constant()) return mod(a.constant(), width);
  if (std::optional<Split> s = split_exactly(a, width)) return std::move(s->rest);
  if (auto by = split_by_divisor(a, width)) {
    return mod(by->second.quotient, width / by->first) * by->first + by->second.rest;
  }
  IndexExpr rest = split_multiples(a, width).rest;
  // k*mod(e, v) counts as k*e where k*v is a multiple of the width.
  for (const Term& t : rest.terms()) {
    if (t.atom->kind != AtomKind::kMod) continue;
    if (static_cast<__int128>(t.coefficient) * t.atom->width % width != 0) continue;
    return mod(rest + (*t.atom->operand - Builder::of(t.atom)) * t.coefficient, width);
  }
  return Builder::of(make_atom(AtomKind::kMod, rest, width));
}

}  // namespace hlojit

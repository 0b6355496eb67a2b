// The simplifier of symbolic index arithmetic.
//
// A sum is kept sorted and merged; only floordiv and mod need thought. Dividing S by w:
//
//   1. Every coefficient is split as w*q + r; the w*q leave the division as q. Of r two values
//      serve, one positive and one negative: (9k) / 8 = k + k/8, but (4a + 2) / 3 with a in [0,2)
//      is a + (a + 2)/3 = a only once 4a is read as 3a + a and 2 kept. If for some choice the
//      remaining sum stays between two neighbouring multiples of w, nothing is left to divide.
//   2. If that holds for a divisor g of w instead, S / w = (S / g) / (w / g), a smaller problem
//      whose sum has fewer terms: (4a + b) / 8 = a / 2 for b in [0,4).
//   3. A division of a division is one division; a mod inside is moved outside.
//   4. Else it becomes an atom.
//
// mod follows from the same splits, as S - w * (S / w). Adding rejoins c*mod(e,w) + c*w*(e/w) =
// c*e, which makes a reshape of a reshape vanish. Every rule holds for all integers.
#include "layout/index_expr.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "layout/error.h"
#include "layout/tiling.h"

namespace hlojit {
namespace {

using Atom = IndexExpr::Atom;
using AtomKind = IndexExpr::AtomKind;
using Term = IndexExpr::Term;
using AtomPtr = std::shared_ptr<const Atom>;

// Ranges only bound; at the ends of int64 they stop instead of wrapping.
int64_t clamp(__int128 v) {
  constexpr __int128 kMax = std::numeric_limits<int64_t>::max();
  constexpr __int128 kMin = std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(std::clamp(v, kMin, kMax));
}

Range scaled(Range r, int64_t c) {
  __int128 a = static_cast<__int128>(r.lo) * c, b = static_cast<__int128>(r.hi) * c;
  return {clamp(std::min(a, b)), clamp(std::max(a, b))};
}

Range sum(Range a, Range b) {
  return {clamp(static_cast<__int128>(a.lo) + b.lo), clamp(static_cast<__int128>(a.hi) + b.hi)};
}

Range range_of(int64_t constant, std::span<const Term> terms) {
  Range r{constant, constant};
  for (const Term& t : terms) r = sum(r, scaled(t.atom->range, t.coefficient));
  return r;
}

size_t mix(size_t h, size_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29); }

int compare(const IndexExpr& a, const IndexExpr& b);

int compare(const Atom& a, const Atom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == AtomKind::kVar) return a.var == b.var ? 0 : (a.var < b.var ? -1 : 1);
  if (a.width != b.width) return a.width < b.width ? -1 : 1;
  if (a.hash != b.hash) return a.hash < b.hash ? -1 : 1;
  return compare(*a.operand, *b.operand);
}

int compare(const IndexExpr& a, const IndexExpr& b) {
  std::span<const Term> s = a.terms(), t = b.terms();
  if (s.size() != t.size()) return s.size() < t.size() ? -1 : 1;
  for (size_t i = 0; i < s.size(); ++i) {
    if (int c = compare(*s[i].atom, *t[i].atom)) return c;
    if (s[i].coefficient != t[i].coefficient) return s[i].coefficient < t[i].coefficient ? -1 : 1;
  }
  return a.constant() == b.constant() ? 0 : (a.constant() < b.constant() ? -1 : 1);
}

AtomPtr make_var(int id, Range range) {
  size_t hash = mix(0x51, static_cast<size_t>(id));
  return std::make_shared<const Atom>(Atom{.kind = AtomKind::kVar,
                                           .var = id,
                                           .operand = nullptr,
                                           .width = 0,
                                           .range = range,
                                           .hash = hash});
}

AtomPtr make_atom(AtomKind kind, const IndexExpr& operand, int64_t width) {
  Range r = operand.range();
  if (kind == AtomKind::kFloorDiv) {
    r = {floordiv(r.lo, width), floordiv(r.hi, width)};
  } else {
    r = {0, width - 1};
  }
  size_t hash = mix(mix(operand.hash(), static_cast<size_t>(kind)), static_cast<size_t>(width));
  return std::make_shared<const Atom>(Atom{.kind = kind,
                                           .var = -1,
                                           .operand = std::make_shared<const IndexExpr>(operand),
                                           .width = width,
                                           .range = r,
                                           .hash = hash});
}

// A sum taken apart as  width * quotient + rest.
struct Split {
  IndexExpr quotient;
  IndexExpr rest;
};

// As IndexExpr, but with the parts open; rest and quotient are built in term order, so they stay
// sorted without further work.
struct Sum {
  int64_t constant = 0;
  std::vector<Term> terms;
  void add(const AtomPtr& atom, int64_t coefficient) {
    if (coefficient != 0) terms.push_back({atom, coefficient});
  }
};

}  // namespace

// Builds expressions from sorted terms without going through operator+.
struct IndexExprBuilder {
  static IndexExpr make(int64_t constant, std::vector<Term> terms) {
    IndexExpr e(constant);
    e.terms_ = std::move(terms);
    return e;
  }
  static IndexExpr make(Sum sum) { return make(sum.constant, std::move(sum.terms)); }
  static IndexExpr of(AtomPtr atom) { return make(0, {{std::move(atom), 1}}); }
};
using Builder = IndexExprBuilder;

namespace {

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
    Sum quotient{.constant = q, .terms = {}},
        rest{.constant = e.constant() - q * width, .terms = {}};
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
    return Split{Builder::make(std::move(quotient)), Builder::make(std::move(rest))};
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
  return {Builder::make(std::move(quotient)), Builder::make(std::move(rest))};
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

void check_width(int64_t width) {
  if (width <= 0) throw Error(ErrorKind::kInvalid, "division by a width that is not positive");
}

// Some variable below an atom.
int any_variable(const Atom& atom) {
  const Atom* a = &atom;
  while (a->kind != AtomKind::kVar) a = a->operand->terms().front().atom.get();
  return a->var;
}

// One rejoining step; nullopt if no pair of terms belongs together.
std::optional<IndexExpr> rejoin(const IndexExpr& e) {
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
      if (!quotient) quotient = floordiv(base, width);
      const Atom* q = sole_atom(*quotient);
      if (q == nullptr) break;
      IndexExpr others = e - Builder::of(low.atom) * c - Builder::of(high.atom) * high.coefficient;
      if (compare(*q, *high.atom) == 0) {
        return others + (base - IndexExpr(quotient->constant()) * width) * c;
      }
      if (high.atom->kind != AtomKind::kMod) continue;
      // mod(R, w) + w * mod(R/w + T, v) = mod(R + w*T, w*v)
      const IndexExpr& upper = *high.atom->operand;
      bool has = std::ranges::any_of(upper.terms(), [&](const Term& t) {
        return t.coefficient == 1 && compare(*t.atom, *q) == 0;
      });
      if (!has) continue;
      IndexExpr rest = upper - *quotient;
      return others + mod(base + rest * width, width * high.atom->width) * c;
    }
  }
  return std::nullopt;
}

}  // namespace

IndexExpr IndexExpr::var(int id, Range range) {
  if (range.lo == range.hi) return IndexExpr(range.lo);
  return Builder::of(make_var(id, range));
}

Range IndexExpr::range() const { return range_of(constant_, terms_); }

bool IndexExpr::is_affine() const {
  return std::ranges::all_of(terms_, [](const Term& t) { return t.atom->kind == AtomKind::kVar; });
}

bool IndexExpr::depends_on(int id) const {
  return std::ranges::any_of(terms_, [&](const Term& t) {
    return t.atom->kind == AtomKind::kVar ? t.atom->var == id : t.atom->operand->depends_on(id);
  });
}

std::optional<int64_t> IndexExpr::coefficient(int id) const {
  int64_t found = 0;
  for (const Term& t : terms_) {
    if (t.atom->kind == AtomKind::kVar) {
      if (t.atom->var == id) found = t.coefficient;
    } else if (t.atom->operand->depends_on(id)) {
      return std::nullopt;
    }
  }
  return found;
}

namespace {

void collect_variables(const IndexExpr& e, std::vector<int>& out) {
  for (const Term& t : e.terms()) {
    if (t.atom->kind == AtomKind::kVar) {
      out.push_back(t.atom->var);
    } else {
      collect_variables(*t.atom->operand, out);
    }
  }
}

void collect_div_mod(const IndexExpr& e, std::vector<AtomPtr>& out) {
  for (const Term& t : e.terms()) {
    if (t.atom->kind == AtomKind::kVar) continue;
    collect_div_mod(*t.atom->operand, out);
    bool known =
        std::ranges::any_of(out, [&](const AtomPtr& a) { return compare(*a, *t.atom) == 0; });
    if (!known) out.push_back(t.atom);
  }
}

}  // namespace

std::vector<int> IndexExpr::variables() const {
  std::vector<int> out;
  collect_variables(*this, out);
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

std::vector<AtomPtr> IndexExpr::div_mod_atoms() const {
  std::vector<AtomPtr> out;
  collect_div_mod(*this, out);
  return out;
}

IndexExpr IndexExpr::substitute(std::span<const std::optional<IndexExpr>> values) const {
  IndexExpr out(constant_);
  for (const Term& t : terms_) {
    const Atom& a = *t.atom;
    if (a.kind == AtomKind::kVar) {
      bool given = a.var >= 0 && static_cast<size_t>(a.var) < values.size() && values[a.var];
      out = out + (given ? *values[a.var] : Builder::of(t.atom)) * t.coefficient;
    } else {
      IndexExpr operand = a.operand->substitute(values);
      IndexExpr value =
          a.kind == AtomKind::kMod ? mod(operand, a.width) : floordiv(operand, a.width);
      out = out + value * t.coefficient;
    }
  }
  return out;
}

int64_t IndexExpr::evaluate(std::span<const int64_t> values) const {
  int64_t out = constant_;
  for (const Term& t : terms_) {
    const Atom& a = *t.atom;
    if (a.kind == AtomKind::kVar) {
      out += t.coefficient * values[a.var];
    } else {
      int64_t v = a.operand->evaluate(values);
      out += t.coefficient *
             (a.kind == AtomKind::kMod ? hlojit::mod(v, a.width) : hlojit::floordiv(v, a.width));
    }
  }
  return out;
}

std::string IndexExpr::to_string() const {
  std::string out;
  for (const Term& t : terms_) {
    int64_t c = t.coefficient;
    if (!out.empty()) out += c < 0 ? " - " : " + ";
    if (out.empty() && c < 0) out += '-';
    if (c != 1 && c != -1) out += std::to_string(c < 0 ? -c : c) + '*';
    const Atom& a = *t.atom;
    if (a.kind == AtomKind::kVar) {
      out += 'v' + std::to_string(a.var);
    } else {
      out += a.kind == AtomKind::kMod ? "mod(" : "floordiv(";
      out += a.operand->to_string() + ", " + std::to_string(a.width) + ')';
    }
  }
  if (out.empty()) return std::to_string(constant_);
  if (constant_ > 0) out += " + " + std::to_string(constant_);
  if (constant_ < 0) out += " - " + std::to_string(constant_).substr(1);
  return out;
}

size_t IndexExpr::hash() const {
  size_t h = mix(0x17, static_cast<size_t>(constant_));
  for (const Term& t : terms_) h = mix(mix(h, t.atom->hash), static_cast<size_t>(t.coefficient));
  return h;
}

bool IndexExpr::operator==(const IndexExpr& other) const { return compare(*this, other) == 0; }

IndexExpr operator+(const IndexExpr& a, const IndexExpr& b) {
  if (b.terms_.empty() || a.terms_.empty()) {
    IndexExpr out = a.terms_.empty() ? b : a;
    out.constant_ = a.constant_ + b.constant_;
    return out;
  }
  IndexExpr out(a.constant_ + b.constant_);
  out.terms_.reserve(a.terms_.size() + b.terms_.size());
  auto i = a.terms_.begin(), j = b.terms_.begin();
  bool has_mod = false;
  while (i != a.terms_.end() || j != b.terms_.end()) {
    int order = i == a.terms_.end() ? 1 : j == b.terms_.end() ? -1 : compare(*i->atom, *j->atom);
    Term t = order <= 0 ? *i : *j;
    if (order == 0) t.coefficient += j->coefficient;
    if (order <= 0) ++i;
    if (order >= 0) ++j;
    if (t.coefficient == 0) continue;
    has_mod |= t.atom->kind == AtomKind::kMod;
    out.terms_.push_back(std::move(t));
  }
  if (has_mod) {
    if (std::optional<IndexExpr> joined = rejoin(out)) return *std::move(joined);
  }
  return out;
}

IndexExpr operator*(const IndexExpr& a, int64_t factor) {
  if (factor == 0) return IndexExpr(0);
  IndexExpr out = a;
  out.constant_ *= factor;
  for (Term& t : out.terms_) t.coefficient *= factor;
  return out;
}

IndexExpr operator-(const IndexExpr& a, const IndexExpr& b) { return a + b * -1; }

IndexExpr floordiv(const IndexExpr& a, int64_t width) {
  check_width(width);
  if (width == 1) return a;
  if (a.is_constant()) return floordiv(a.constant(), width);
  if (std::optional<Split> s = split_exactly(a, width)) return std::move(s->quotient);
  if (auto by = split_by_divisor(a, width)) {
    return floordiv(by->second.quotient, width / by->first);
  }
  auto [quotient, rest] = split_multiples(a, width);
  if (const Atom* sole = sole_atom(rest)) {
    int64_t wide;
    if (sole->kind == AtomKind::kFloorDiv && !__builtin_mul_overflow(sole->width, width, &wide)) {
      // (e/a + c) / w = (e + a*c) / (a*w)
      return quotient + floordiv(*sole->operand + rest.constant() * sole->width, wide);
    }
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

IndexExpr linear_index(const Shape& shape, std::span<const IndexExpr> coordinates) {
  return row_major(apply_tiles(shape, coordinates));
}

IndexExpr linearize(std::span<const int64_t> dims, std::span<const IndexExpr> coordinates) {
  IndexExpr out;
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    out = out + coordinates[d] * stride;
    stride = saturating_product(stride, dims[d]);
  }
  return out;
}

std::vector<IndexExpr> delinearize(std::span<const int64_t> dims, const IndexExpr& position) {
  std::vector<IndexExpr> out(dims.size());
  if (std::ranges::find(dims, 0) != dims.end()) return out;  // no element, any index will do
  // The most major dimension of size above 1 takes the whole quotient: it is in bounds by contract.
  size_t major = 0;
  while (major < dims.size() && dims[major] == 1) ++major;
  IndexExpr rest = position;
  for (size_t d = dims.size(); d-- > major;) {
    if (dims[d] == 1) continue;
    out[d] = d == major ? rest : mod(rest, dims[d]);
    if (d > major) rest = floordiv(rest, dims[d]);
  }
  return out;
}

std::vector<IndexExpr> reshape_coordinates(std::span<const int64_t> operand_dims,
                                           std::span<const int64_t> result_dims,
                                           std::span<const IndexExpr> result_coordinates) {
  std::vector<IndexExpr> out(operand_dims.size());
  auto empty = [](std::span<const int64_t> dims) {
    return std::ranges::find(dims, 0) != dims.end();
  };
  if (empty(operand_dims) && empty(result_dims)) return out;
  size_t i = 0, j = 0;
  while (i < operand_dims.size() || j < result_dims.size()) {
    size_t i0 = i, j0 = j;
    int64_t a = i < operand_dims.size() ? operand_dims[i++] : 1;
    int64_t b = j < result_dims.size() ? result_dims[j++] : 1;
    while (a != b) {
      bool grow_operand = a < b;
      if (grow_operand ? i == operand_dims.size() : j == result_dims.size()) {
        throw Error(ErrorKind::kInvalid, "reshape between arrays of different element counts");
      }
      (grow_operand ? a : b) *= grow_operand ? operand_dims[i++] : result_dims[j++];
    }
    IndexExpr position =
        linearize(result_dims.subspan(j0, j - j0), result_coordinates.subspan(j0, j - j0));
    std::vector<IndexExpr> part = delinearize(operand_dims.subspan(i0, i - i0), position);
    std::ranges::move(part, out.begin() + static_cast<std::ptrdiff_t>(i0));
  }
  return out;
}

}  // namespace hlojit

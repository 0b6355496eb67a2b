// Index expressions as values: sums kept sorted and merged, and the questions one asks of them.
// Division is index_division.cc.
#include "layout/index_expr.h"

#include <algorithm>

#include "layout/index_atoms.h"
#include "layout/tiling.h"

namespace hlojit {

using Builder = IndexExprBuilder;
using namespace index_atoms;

namespace {

Range range_of(int64_t constant, std::span<const Term> terms) {
  Range r{constant, constant};
  for (const Term& t : terms) r = sum(r, scaled(t.atom->range, t.coefficient));
  return r;
}

size_t mix(size_t h, size_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29); }

AtomPtr make_var(int id, Range range) {
  size_t hash = mix(0x51, static_cast<size_t>(id));
  return std::make_shared<const Atom>(
      Atom{.kind = AtomKind::kVar, .var = id, .operand = nullptr, .width = 0, .range = range, .hash = hash});
}

}  // namespace

namespace index_atoms {

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

}  // namespace index_atoms

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
    bool known = std::ranges::any_of(out, [&](const AtomPtr& a) { return compare(*a, *t.atom) == 0; });
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

int IndexExpr::sole_variable() const {
  if (constant_ != 0 || terms_.size() != 1 || terms_[0].coefficient != 1) return -1;
  return terms_[0].atom->kind == AtomKind::kVar ? terms_[0].atom->var : -1;
}

std::vector<AtomPtr> IndexExpr::div_mod_atoms() const {
  std::vector<AtomPtr> out;
  collect_div_mod(*this, out);
  return out;
}

IndexExpr IndexExpr::substitute(std::span<const Substitution> values) const {
  // Most replace nothing: the numbers of a block in addresses that know none of them.
  if (std::ranges::none_of(values, [&](const Substitution& v) { return depends_on(v.var); })) return *this;
  IndexExpr out(constant_);
  for (const Term& t : terms_) {
    const Atom& a = *t.atom;
    if (a.kind == AtomKind::kVar) {
      auto given = std::ranges::find(values, a.var, &Substitution::var);
      out = out + (given != values.end() ? given->value : Builder::of(t.atom)) * t.coefficient;
    } else {
      IndexExpr operand = a.operand->substitute(values);
      IndexExpr value = a.kind == AtomKind::kMod ? mod(operand, a.width) : floordiv(operand, a.width);
      out = out + value * t.coefficient;
    }
  }
  return out;
}

IndexExpr IndexExpr::substitute(int id, const IndexExpr& value) const {
  const Substitution one[] = {{id, value}};
  return substitute(one);
}

std::vector<IndexExpr> substitute(std::span<const IndexExpr> list, std::span<const IndexExpr::Substitution> values) {
  std::vector<IndexExpr> out;
  for (const IndexExpr& e : list) out.push_back(e.substitute(values));
  return out;
}

std::vector<IndexExpr> substitute(std::span<const IndexExpr> list, int id, const IndexExpr& value) {
  const IndexExpr::Substitution one[] = {{id, value}};
  return substitute(list, one);
}

int64_t IndexExpr::evaluate(std::span<const int64_t> values) const {
  int64_t out = constant_;
  for (const Term& t : terms_) {
    const Atom& a = *t.atom;
    if (a.kind == AtomKind::kVar) {
      out += t.coefficient * values[a.var];
    } else {
      int64_t v = a.operand->evaluate(values);
      out += t.coefficient * (a.kind == AtomKind::kMod ? hlojit::mod(v, a.width) : hlojit::floordiv(v, a.width));
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

bool IndexExpr::operator==(const IndexExpr& other) const {
  return constant_ == other.constant_ && compare(*this, other) == 0;  // neighbours differ in their constants alone
}

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

}  // namespace hlojit

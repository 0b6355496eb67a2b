// The inside of IndexExpr, shared by its two halves: index_expr.cc (sums, questions) and
// index_division.cc (floordiv and mod). Nobody else includes this.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "layout/index_expr.h"

namespace hlojit::index_atoms {

using Atom = IndexExpr::Atom;
using AtomKind = IndexExpr::AtomKind;
using Term = IndexExpr::Term;
using AtomPtr = std::shared_ptr<const Atom>;

// Ranges only bound; at the ends of int64 they stop instead of wrapping.
inline int64_t clamp(__int128 v) {
  constexpr __int128 kMax = std::numeric_limits<int64_t>::max();
  constexpr __int128 kMin = std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(std::clamp(v, kMin, kMax));
}

inline Range scaled(Range r, int64_t c) {
  __int128 a = static_cast<__int128>(r.lo) * c, b = static_cast<__int128>(r.hi) * c;
  return {clamp(std::min(a, b)), clamp(std::max(a, b))};
}

inline Range sum(Range a, Range b) {
  return {clamp(static_cast<__int128>(a.lo) + b.lo), clamp(static_cast<__int128>(a.hi) + b.hi)};
}

/// Structural order, by which terms are sorted: < 0, 0 or > 0.
int compare(const Atom& a, const Atom& b);
int compare(const IndexExpr& a, const IndexExpr& b);

/// floordiv(operand, width) or mod(operand, width) as it stands.
AtomPtr make_atom(AtomKind kind, const IndexExpr& operand, int64_t width);

/// Joins a mod with the floordiv or mod of the same sum that continues it; nullopt if there is
/// none.
std::optional<IndexExpr> rejoin(const IndexExpr& e);

}  // namespace hlojit::index_atoms

namespace hlojit {

/// Builds expressions from sorted terms without going through operator+.
struct IndexExprBuilder {
  static IndexExpr make(int64_t constant, std::vector<IndexExpr::Term> terms) {
    IndexExpr e(constant);
    e.terms_ = std::move(terms);
    return e;
  }
  static IndexExpr of(index_atoms::AtomPtr atom) { return make(0, {{std::move(atom), 1}}); }
};

}  // namespace hlojit

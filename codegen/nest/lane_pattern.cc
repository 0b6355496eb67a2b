// See lane_pattern.h.
#include "codegen/nest/lane_pattern.h"

#include <algorithm>
#include <cstdlib>

#include "layout/tiling.h"

namespace hlojit::codegen {
namespace {

using AtomKind = IndexExpr::AtomKind;

int64_t at_lane(const IndexExpr& of_lane, int64_t lane);

int64_t at_lane(const IndexExpr::Atom& atom, int64_t lane) {
  if (atom.kind == AtomKind::kVar) return lane;
  const int64_t x = at_lane(*atom.operand, lane);
  return atom.kind == AtomKind::kMod ? mod(x, atom.width) : floordiv(x, atom.width);
}

// Of an expression in which no other variable occurs.
int64_t at_lane(const IndexExpr& of_lane, int64_t lane) {
  int64_t sum = of_lane.constant();
  for (const IndexExpr::Term& t : of_lane.terms()) sum += t.coefficient * at_lane(*t.atom, lane);
  return sum;
}

}  // namespace

std::optional<LanePattern> lane_pattern(const IndexExpr& address, int lane, int lanes) {
  LanePattern pattern{address.substitute(lane, 0), std::vector<int64_t>(static_cast<size_t>(lanes), 0)};
  for (const IndexExpr::Term& t : address.terms()) {
    const bool variable = t.atom->kind == AtomKind::kVar;
    if (variable ? t.atom->var != lane : !t.atom->operand->depends_on(lane)) continue;
    if (!variable && t.atom->operand->variables().size() > 1) return std::nullopt;
    const int64_t first = at_lane(*t.atom, 0);
    for (int l = 0; l < lanes; ++l)
      pattern.offsets[static_cast<size_t>(l)] += t.coefficient * (at_lane(*t.atom, l) - first);
  }
  const int64_t least = std::ranges::min(pattern.offsets);
  pattern.base = pattern.base + IndexExpr(least);
  for (int64_t& offset : pattern.offsets) offset -= least;
  return pattern;
}

std::optional<BetweenWraps> between_wraps(const IndexExpr& address, int lane, int lanes) {
  // Of vectors, so many lie between two wraps for one that does not: a branch that is not foreseen takes as long as
  // some lanes.
  constexpr int64_t kVectorsToWrap = 6;
  BetweenWraps found;
  for (const IndexExpr::Term& t : address.terms()) {
    if (t.atom->kind == AtomKind::kVar) {
      found.step += t.atom->var == lane ? t.coefficient : 0;
      continue;
    }
    const IndexExpr& inner = *t.atom->operand;
    const int64_t width = t.atom->width;
    if (!inner.depends_on(lane)) continue;
    const auto inside = between_wraps(inner, lane, lanes);
    if (!inside) return std::nullopt;
    const int64_t span = std::abs(inside->step) * (lanes - 1);
    if (kVectorsToWrap * span > width) return std::nullopt;
    found.guards.insert(found.guards.end(), inside->guards.begin(), inside->guards.end());
    found.guards.push_back(
        {mod(inner.substitute(lane, 0), width), inside->step < 0 ? span : 0, inside->step > 0 ? width - span : width});
    if (t.atom->kind == AtomKind::kMod) found.step += t.coefficient * inside->step;
  }
  return found;
}

std::vector<int64_t> windows_of(std::vector<int64_t> offsets, int64_t size) {
  std::ranges::sort(offsets);
  std::vector<int64_t> starts;
  for (int64_t at : offsets) {
    if (starts.empty() || at >= starts.back() + size) starts.push_back(at);
  }
  return starts;
}

}  // namespace hlojit::codegen

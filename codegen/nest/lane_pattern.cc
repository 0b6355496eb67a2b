// See lane_pattern.h.
#include "codegen/nest/lane_pattern.h"

#include <algorithm>

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

std::vector<int64_t> windows_of(std::vector<int64_t> offsets, int64_t size) {
  std::ranges::sort(offsets);
  std::vector<int64_t> starts;
  for (int64_t at : offsets) {
    if (starts.empty() || at >= starts.back() + size) starts.push_back(at);
  }
  return starts;
}

}  // namespace hlojit::codegen

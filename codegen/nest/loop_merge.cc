// See loop_merge.h.
#include "codegen/nest/loop_merge.h"

#include <algorithm>
#include <utility>

#include "compiler/plan/kernel.h"

namespace hlojit::codegen {
namespace {

constexpr int kMostOperations = 1000;

bool plain(const LoopPiece& p) {
  auto fixed = [](const LoopDigit& l) { return !l.clip && !l.steps; };
  return p.has_lanes && p.unroll.var < 0 && std::ranges::all_of(p.loops, fixed);
}

bool alike(const LoopPiece& a, const LoopPiece& b) {
  auto equal = [](const LoopDigit& x, const LoopDigit& y) { return x.extent == y.extent && x.written == y.written; };
  return plain(a) && plain(b) && std::ranges::equal(a.loops, b.loops, equal) && a.apart == b.apart &&
         a.looked_up == b.looked_up;
}

/// The coordinates of `other` in terms of the loops of `piece`.
Coords in_loops_of(const LoopPiece& piece, const LoopPiece& other) {
  std::vector<IndexExpr::Substitution> values;
  for (size_t k = 0; k < piece.loops.size(); ++k)
    values.push_back({other.loops[k].var, IndexExpr::var(piece.loops[k].var, piece.loops[k].extent)});
  return substitute(other.coords, values);
}

}  // namespace

std::vector<LoopPiece> merge_pieces(std::vector<LoopPiece> pieces,
                                    const std::function<void(AccessWalk&, const Coords&)>& walk, VarSource& vars) {
  using Element = std::pair<const Instruction*, IndexExpr>;
  auto reads = [&](const LoopPiece& p, const Coords& at) {
    AccessWalk w(vars);
    walk(w, at);
    std::vector<Element> elements;
    for (const Access& a : w.accesses()) {
      const bool there = a.parameter && !a.random && a.address.depends_on(p.loops.back().var);
      if (there) elements.emplace_back(a.parameter, a.address);
    }
    return elements;
  };
  std::vector<LoopPiece> merged;
  std::vector<Element> known;  // what the last of them reads
  for (LoopPiece& p : pieces) {
    if (!merged.empty() && alike(merged.back(), p)) {
      LoopPiece& last = merged.back();
      Coords at = in_loops_of(last, p);
      const std::vector<Element> more = reads(last, at);
      const bool shares = std::ranges::any_of(more, [&](const Element& a) { return std::ranges::count(known, a) > 0; });
      if (shares && last.together < kMostPartsTogether && std::max(last.operations, p.operations) <= kMostOperations) {
        std::ranges::move(at, std::back_inserter(last.coords));
        known.insert(known.end(), more.begin(), more.end());
        last.operations = std::max(last.operations, p.operations);
        ++last.together;
        continue;
      }
    }
    known = plain(p) ? reads(p, p.coords) : std::vector<Element>();
    merged.push_back(std::move(p));
  }
  return merged;
}

}  // namespace hlojit::codegen

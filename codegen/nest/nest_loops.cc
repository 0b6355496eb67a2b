// The loops of a piece as IR: scalar digits outside, the lane digit innermost as full vectors followed by
// what is left at narrower widths.
#include <algorithm>
#include <bit>

#include "codegen/nest/element_emitter.h"

namespace hlojit::codegen {

std::vector<int> ElementEmitter::widths(const LoopPiece& piece, int wide, int native) const {
  if (!piece.has_lanes) return {1};
  const LoopDigit& lane = piece.loops.back();
  int w = lanes_for(lane.extent, wide), n = std::min(native, w);
  std::vector<int> all = {w};
  bool exact = !lane.clip && lane.extent % w == 0;
  if (n < w && !exact) {
    all.push_back(n);
    exact = !lane.clip && lane.extent % w % n == 0;
  }
  if (!exact && all.back() > 1) all.push_back(1);
  return all;
}

ElementEmitter::Carried ElementEmitter::loops(Scope& scope, const LoopPiece& piece, size_t first,
                                              const std::vector<int>& widths, Carried carried, const Body& body) {
  std::function<Carried(Scope&, size_t, Carried)> nest = [&](Scope& s, size_t k, Carried c) -> Carried {
    if (k == piece.loops.size()) return body(s, piece.coords, 0, 1, c);
    const LoopDigit& loop = piece.loops[k];
    llvm::Value* trip = trip_count(loop, loop.clip ? loop.clip->so_far : IndexExpr(0), s);
    auto* fixed = llvm::dyn_cast<llvm::ConstantInt>(trip);
    if (!(piece.has_lanes && k + 1 == piece.loops.size())) {
      if (fixed && fixed->isOne()) {
        bind(loop.var, s, s.builder.getInt64(0));
        return nest(s, k + 1, std::move(c));
      }
      auto inner = open_loop(s, trip, 1, "i", c);
      bind(loop.var, *inner, inner->counter);
      Carried next = nest(*inner, k + 1, Carried(inner->carried.begin(), inner->carried.end()));
      return close_loop(s, std::move(inner), next);
    }
    // The lane digit: as many vectors as fit, then what is left at narrower widths.
    IndexExpr start(0);
    llvm::Value* left = trip;
    for (size_t w = 0; w < widths.size(); ++w) {
      int lanes = widths[w];
      // After wider vectors less than one of them is left: a tight range keeps addresses free of wraps.
      int64_t most = w == 0 ? loop.extent / lanes : (widths[w - 1] - 1) / lanes;
      llvm::IRBuilder<>& b = s.builder;
      llvm::Value* count = lanes == 1 ? left : b.CreateLShr(left, static_cast<uint64_t>(std::countr_zero(static_cast<unsigned>(lanes))));
      auto* known = llvm::dyn_cast<llvm::ConstantInt>(count);
      if (known && known->isZero()) continue;
      std::unique_ptr<Scope> inner;
      Scope* at = &s;
      IndexExpr position = start;
      if (!(known && known->isOne())) {
        inner = open_loop(s, count, 1, lanes > 1 ? "v" : "t", c);
        at = inner.get();
        int counter = vars_.fresh();
        bind(counter, *at, inner->counter);
        position = position + IndexExpr::var(counter, std::max<int64_t>(1, most)) * lanes;
        c.assign(inner->carried.begin(), inner->carried.end());
      }
      if (lanes > 1) {
        int lane = vars_.fresh();
        bound_[lane] = {at, nullptr, lanes};
        position = position + IndexExpr::var(lane, lanes);
      }
      std::vector<std::optional<IndexExpr>> values(static_cast<size_t>(loop.var) + 1);
      values.back() = position;
      Coords coords;
      for (const IndexExpr& e : piece.coords) coords.push_back(e.substitute(values));
      Carried next = body(*at, coords, static_cast<int>(w), lanes, c);
      c = inner ? close_loop(s, std::move(inner), next) : next;
      if (w + 1 < widths.size()) {
        if (auto* n = llvm::dyn_cast<llvm::ConstantInt>(left)) {
          auto total = static_cast<int64_t>(n->getZExtValue());
          start = start + IndexExpr(total / lanes * lanes);
          left = s.builder.getInt64(static_cast<uint64_t>(total % lanes));
        } else {
          start = start + symbol(s, count, Range{0, most}) * lanes;
          left = s.builder.CreateAnd(left, s.builder.getInt64(static_cast<uint64_t>(lanes - 1)));
        }
      }
    }
    return c;
  };
  return nest(scope, first, std::move(carried));
}

}  // namespace hlojit::codegen

// See loop_order.h. Which digits have lanes is chosen in loop_lanes.cc, which are taken in blocks in loop_blocks.cc.
#include "codegen/nest/loop_order.h"

#include <algorithm>

namespace hlojit::codegen {
namespace {

bool clip_needs(const LoopDigit& inner, const LoopDigit& outer) {
  return inner.clip && inner.clip->so_far.depends_on(outer.var);
}

}  // namespace

void substitute_in(std::vector<LoopDigit>& loops, std::span<const IndexExpr::Substitution> values) {
  for (LoopDigit& l : loops) {
    if (l.clip) l.clip->so_far = l.clip->so_far.substitute(values);
    if (l.steps) l.steps->first = l.steps->first.substitute(values);
  }
}

LoopOrder::LoopOrder(std::span<const DimPiece* const> pieces, std::span<const int> dim_vars,
                     std::span<const Access> all, VarSource& vars)
    : vars_(vars) {
  for (const DimPiece* piece : pieces) {
    IndexExpr sum(piece->start);
    for (const Digit& digit : piece->digits) {
      LoopDigit loop{vars.fresh(), digit.extent, std::nullopt, std::nullopt};
      if (digit.clipped) loop.clip = Clip{sum, piece->limit, digit.stride, 1};
      sum = sum + IndexExpr::var(loop.var, digit.extent) * digit.stride;
      if (digit.extent > 1 || digit.clipped) loops.push_back(loop);
    }
    coords.push_back(sum);
  }
  for (size_t d = 0; d < pieces.size(); ++d) dims_.push_back({dim_vars[d], coords[d]});
  for (Access a : all) {
    a.address = a.address.substitute(dims_);
    a.looked_up = substitute(a.looked_up, dims_);
    accesses.push_back(std::move(a));
  }
}

void LoopOrder::substitute_all(std::span<const IndexExpr::Substitution> values) {
  for (Access& a : accesses) {
    a.address = a.address.substitute(values);
    a.looked_up = substitute(a.looked_up, values);
  }
  coords = substitute(coords, values);
  for (IndexExpr::Substitution& d : dims_) d.value = d.value.substitute(values);
  substitute_in(loops, values);
}

// Outer and inner are one loop if every address advances evenly across their border.
bool LoopOrder::mergeable(const LoopDigit& outer, const LoopDigit& inner) const {
  if (inner.clip || inner.steps || outer.steps) return false;
  for (const LoopDigit& l : loops) {
    if (clip_needs(l, outer) || clip_needs(l, inner)) return false;
  }
  for (const Access& a : accesses) {
    auto o = a.address.coefficient(outer.var);
    auto i = a.address.coefficient(inner.var);
    if (!o || !i || *o != *i * inner.extent) return false;
  }
  return true;
}

void LoopOrder::merge_digits() {
  for (size_t k = 0; k + 1 < loops.size();) {
    LoopDigit outer = loops[k], inner = loops[k + 1];
    if (!mergeable(outer, inner)) {
      ++k;
      continue;
    }
    merge(k, k + 1);
    if (k > 0) --k;
  }
}

// One loop for both, where the outer one is; the inner one is not clipped.
void LoopOrder::merge(size_t at_outer, size_t at_inner) {
  const LoopDigit outer = loops[at_outer], inner = loops[at_inner];
  LoopDigit merged{vars_.fresh(), outer.extent * inner.extent, outer.clip, std::nullopt};
  if (merged.clip) merged.clip->factor *= inner.extent;
  IndexExpr m = IndexExpr::var(merged.var, merged.extent);
  loops[at_outer] = merged;
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(at_inner));
  substitute_all(
      std::vector<IndexExpr::Substitution>{{outer.var, floordiv(m, inner.extent)}, {inner.var, mod(m, inner.extent)}});
}

// The access whose memory order decides the loop order: the first write, else the widest read.
const Access* LoopOrder::leader() const {
  const Access* best = nullptr;
  for (const Access& a : accesses) {
    if (a.write) return &a;
    if (a.bytes == 0 || a.random) continue;
    if (!best || a.address.range().hi > best->address.range().hi) best = &a;
  }
  return best;
}

void LoopOrder::order() {
  const Access* lead = leader();
  if (!lead) return;
  auto weight = [&](const LoopDigit& l) {
    const int64_t s = lead->address.coefficient(l.var).value_or(INT64_MAX);
    return s == INT64_MAX ? s : s < 0 ? -s : s;
  };
  std::ranges::stable_sort(loops, std::greater{}, weight);
  // A clipped digit stays inside the digits its trip count depends on.
  for (size_t k = 0; k < loops.size(); ++k) {
    for (size_t j = k + 1; j < loops.size(); ++j) {
      if (!clip_needs(loops[k], loops[j])) continue;
      std::rotate(loops.begin() + static_cast<std::ptrdiff_t>(k), loops.begin() + static_cast<std::ptrdiff_t>(j),
                  loops.begin() + static_cast<std::ptrdiff_t>(j) + 1);
      k = static_cast<size_t>(-1);
      break;
    }
  }
}

// No other digit's trip count depends on it.
bool LoopOrder::can_be_innermost(const LoopDigit& l) const {
  return std::ranges::none_of(loops, [&](const LoopDigit& o) { return o.var != l.var && clip_needs(o, l); });
}

}  // namespace hlojit::codegen

// See row_parts.h.
#include "codegen/nest/row_parts.h"

#include <algorithm>
#include <utility>

namespace hlojit::codegen {
namespace {

// How many of the piece's loops are around its lanes.
size_t rows_of(const LoopPiece& p) { return p.loops.size() - (p.has_lanes ? 1 : 0); }

bool plain(const LoopPiece& p) {
  auto fixed = [](const LoopDigit& l) { return !l.clip && !l.steps && l.written == Written::kIfShort; };
  return p.unroll.var < 0 && !p.apart && !p.across && !p.looked_up && p.together == 1 &&
         std::ranges::all_of(p.loops, fixed);
}

// The coordinates of `other` in terms of the loops that it has in common with `piece`; empty if its elements lie in
// other rows.
Coords in_rows_of(const LoopPiece& piece, const LoopPiece& other) {
  const size_t rows = rows_of(piece);
  if (rows != rows_of(other)) return {};
  std::vector<IndexExpr::Substitution> values;
  for (size_t k = 0; k < rows; ++k) {
    if (piece.loops[k].extent != other.loops[k].extent) return {};
    values.push_back({other.loops[k].var, IndexExpr::var(piece.loops[k].var, piece.loops[k].extent)});
  }
  Coords at = substitute(other.coords, values);
  const int lane = piece.loops.back().var;
  for (size_t d = 0; d < at.size(); ++d) {
    const IndexExpr& x = piece.coords[d];
    // Along the row they begin elsewhere, in all others they are the same.
    const IndexExpr from = other.has_lanes ? at[d].substitute(other.loops.back().var, 0) : at[d];
    if (!(x.depends_on(lane) ? (from - x.substitute(lane, 0)).is_constant() : from == x)) return {};
  }
  return at;
}

}  // namespace

std::vector<RowParts> parts_of_rows(std::vector<LoopPiece> pieces, bool together) {
  std::vector<RowParts> groups;
  if (!together) {
    for (LoopPiece& p : pieces) groups.push_back({{}, {std::move(p)}});
    return groups;
  }
  // Those with lanes first: who has none is compared with them.
  std::ranges::stable_partition(pieces, &LoopPiece::has_lanes);
  for (LoopPiece& p : pieces) {
    RowParts* with = nullptr;
    Coords at;
    for (RowParts& g : groups) {
      const LoopPiece& first = g.parts.front();
      if (with || !plain(p) || !plain(first) || !first.has_lanes || rows_of(first) == 0) continue;
      at = in_rows_of(first, p);
      if (!at.empty()) with = &g;
    }
    if (!with) {
      groups.push_back({{}, {std::move(p)}});
      continue;
    }
    const LoopPiece& first = with->parts.front();
    std::copy_n(first.loops.begin(), rows_of(first), p.loops.begin());
    p.coords = std::move(at);
    with->parts.push_back(std::move(p));
  }
  for (RowParts& g : groups) {
    if (g.parts.size() == 1) continue;
    const LoopPiece& first = g.parts.front();
    for (size_t k = 0; k < rows_of(first); ++k) {
      g.rows.loops.push_back(first.loops[k]);
      g.rows.coords.push_back(IndexExpr::var(first.loops[k].var, first.loops[k].extent));
    }
    g.rows.operations = 0;
    for (const LoopPiece& p : g.parts) g.rows.operations += p.operations;
  }
  return groups;
}

IndexExpr RowParts::in_row(const IndexExpr& x, const Coords& at) const { return substitute(Coords{x}, row_at(at))[0]; }

LoopPiece RowParts::in_row(LoopPiece part, const Coords& at) const {
  part.loops.erase(part.loops.begin(), part.loops.begin() + std::ssize(at));
  part.coords = substitute(part.coords, row_at(at));
  return part;
}

std::vector<IndexExpr::Substitution> RowParts::row_at(const Coords& at) const {
  std::vector<IndexExpr::Substitution> values;
  const std::vector<LoopDigit>& common = parts.front().loops;
  for (size_t k = 0; k < at.size(); ++k) values.push_back({common[k].var, at[k]});
  return values;
}

}  // namespace hlojit::codegen

// Boxes beside each other in the same rows, such as a border and what lies inside of it, gone through row by row: a
// task has all of its rows, and finds what one part of a row shares with the next in the first cache.
#pragma once

#include <vector>

#include "codegen/nest/loop_plan.h"

namespace hlojit::codegen {

struct RowParts {
  /// The loops that all parts have in common, and what these count as coordinates; none of a part alone.
  LoopPiece rows;
  std::vector<LoopPiece> parts;  ///< each with these loops first, then its lanes or none

  /// What of a part is in one row, whose coordinates in `rows` these are: its lanes.
  LoopPiece in_row(LoopPiece part, const Coords& at) const;
  IndexExpr in_row(const IndexExpr& x, const Coords& at) const;

 private:
  std::vector<IndexExpr::Substitution> row_at(const Coords& at) const;
};

/// The pieces, those that have equal rows together (if any are to be), each of the others alone.
std::vector<RowParts> parts_of_rows(std::vector<LoopPiece> pieces, bool together);

}  // namespace hlojit::codegen

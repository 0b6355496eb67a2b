// How many lanes the bodies of a piece's innermost loop have, and what becomes of what is left behind the last full
// vector.
//
// It is the last vector once more, moved back so that it ends where the digit ends: it computes some elements twice,
// which a kernel that does not overwrite what it reads cannot notice: the loop's start is clamped, there is no second
// body. (Less than one machine vector has a narrower one instead, if one does it: 3 elements are 2 and 1.) Where moving
// back is not allowed (a clipped digit, a result in its operand's memory, stores past the cache that must be aligned)
// narrower vectors follow, then scalars; or, where these have much to do, a vector under a mask. (Not else: what is
// read next out of the lines of a store under a mask waits until it is done.) Rows that begin within a line may be gone
// through from line to line instead.
#pragma once

#include <optional>
#include <vector>

#include "codegen/nest/loop_plan.h"
#include "layout/index_expr.h"

namespace hlojit::codegen {

/// What becomes of what is left behind the vectors of a loop's last width.
enum class Rest {
  kNone,       ///< nothing is left: if it may be, the last width is 1
  kMovedBack,  ///< one more vector, moved back to the end of the digit; there is one width
  kMasked,     ///< one more under a mask (of maps whose lanes may be left out, lines.h)
};

/// Lane counts that the bodies of a loop have, in order.
struct LaneWidths {
  std::vector<int> widths;
  Rest rest = Rest::kNone;
  /// > 0: the vector that is moved back is one of so many lanes, a body of its own (of maps only).
  int last = 0;
  /// What is carried may take an element twice: of the vector that is moved back no lane is left out.
  bool twice = false;
  /// > 0: wider bodies are so many lanes at a time, one after the other, not as one value (of maps only).
  int at_a_time = 0;
  /// So many elements before the digit the first vector begins: rows that are gone through from line to line (lines.h;
  /// of maps only). One width.
  std::optional<IndexExpr> into_line = std::nullopt;
};

/// What the last vector may be where elements may be computed twice.
enum class Last {
  kAsOthers,   ///< moved back: two widths were two of each carry, and two to combine at the end
  kShortRows,  ///< a narrower one in rows of less than a native vector
  kNarrower,   ///< the same, and behind few vectors
};

/// One width, two where the last vector is narrower, if elements may be computed twice; else wide, then native, then 1,
/// as far as the piece's extent needs them.
LaneWidths lane_widths(const LoopPiece& piece, int wide, int native, bool overlap, Last last = Last::kShortRows);
/// The same where no element may be computed twice: what is left of a native vector is halves, quarters and so on, each
/// at most once.
LaneWidths halving_widths(const LoopPiece& piece, int wide, int native);
/// The same where no element may be computed twice and nothing is carried, of a digit whose extent is known: wide, then
/// native, then what is left of such a vector, under a mask if there are `masks` and that is worth one.
LaneWidths narrowing_widths(const LoopPiece& piece, int wide, int native, bool masks);

}  // namespace hlojit::codegen

// Rows that begin within a line of the cache.
//
// A vector stored across the end of a line takes the cache two steps, and so does one that is loaded: rows of 203
// floats were written at two thirds of the speed of rows of 208 (Sapphire Rapids, in the second cache: 3.0 us for
// 35,000 floats, 2.1). Where a vector is as long as a line that is every vector of most rows. Such rows are gone
// through from line to line instead, and of the first vector and the last one a mask says which lanes belong to the
// row. (A Zen 4 gains less, and beyond its second cache nothing: a column spread over 171x203 2.0 us, 1.4, a scaled row
// 2.8, 2.6; padding 1024x1023 by three would take 1.15 times as long.)
#pragma once

#include <functional>
#include <optional>

#include "codegen/nest/accesses.h"
#include "codegen/nest/loop_plan.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

/// Little is done with an element beside moving it: no sums, nothing looked up.
bool waits_for_memory(const AccessWalk& walk);

/// Lanes along the piece's last digit may be left out: what is read and written lies along them, forwards or backwards,
/// each element for itself.
bool may_leave_out_lanes(const LoopPiece& piece, const AccessWalk& walk);

/// How many elements a row of the piece begins behind a whole number of vectors of `lanes`, in the memory of what is
/// written. Null where all rows begin with a vector; where it would not pay: rows of few vectors, much to be done with
/// each element, all of it in the first cache; and where a lane that does not belong to the row could not be left out:
/// what is read and written lies along the lanes, each element for itself.
/// `walk` fills an AccessWalk for coordinates of the domain.
std::optional<IndexExpr> elements_into_line(const LoopPiece& piece,
                                            const std::function<void(AccessWalk&, const Coords&)>& walk,
                                            VarSource& vars, int lanes, const TargetInfo& target);

}  // namespace hlojit::codegen

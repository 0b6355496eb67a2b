// Planned loops cut further, for what the plan did not know: tasks for the cores, steps written out, sums in levels.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/nest/loop_plan.h"

namespace hlojit::codegen {

/// The piece with its loop number k done once, at this value of the counter.
LoopPiece at_step(const LoopPiece& piece, size_t k, int64_t step);

/// The piece without what is beyond `limit` along dimension `d`, `so_far` of which lies before the piece. False where
/// lanes, blocks or other dimensions have a part in its loops: those are planned for one length.
bool end_early(LoopPiece& piece, size_t d, IndexExpr so_far, int64_t limit);

/// The piece with its innermost loop in groups of `count` steps that are written out; what is left of it, too, is a
/// piece of its own.
std::vector<LoopPiece> in_groups(LoopPiece piece, int64_t count, VarSource& vars);

/// The piece with its lanes in blocks of at most `most` native vectors, the last moved back to the digit's end, where
/// that is less to compute than vectors of 2^n lanes each, or as much in fewer turns.
void put_lanes_in_blocks(LoopPiece& piece, int native, int most, VarSource& vars);

/// The piece with its lanes in strips of at most `most` native vectors, each of which goes through `rows` steps of the
/// loop around the lanes before the next: what is the same for all steps stays in registers. Neighbouring strips, and
/// neighbouring blocks of steps, may compute some elements both. False where these loops are not of fixed lengths.
bool put_rows_in_strips(LoopPiece& piece, int native, int64_t most, int64_t rows, VarSource& vars);

/// How many parallel tasks work of `ns` nanoseconds is worth: at least 1.
int64_t chunks_for(int64_t ns);

/// Splits the outermost loops so that about `chunks` equal parts can run in parallel. Returns how many
/// leading loops of the piece are then chunk loops; their extents' product is the chunk count.
/// Never splits the reduction of one value. `grain`: a split loop keeps multiples of it inside; no
/// vector along it has more lanes.
/// `overlap`: neighbouring chunks may compute some elements both; the last one, which does, begins at a multiple of so
/// many. 0: none may.
/// `apart`: whether steps along a loop's variable, if it has one, lie lines of the caches apart in what is written.
/// Other loops are not cut where one of these can be: two cores that write one line by turns take many times as long.
size_t split_for_chunks(LoopPiece& piece, int64_t chunks, int64_t grain, VarSource& vars, int64_t overlap = 0,
                        const std::function<bool(int)>& apart = nullptr);

/// Cuts the piece's loops into levels of at most `most` steps each, so that a sum over them can be made of
/// partial sums of that length, combined level by level: its error grows with `most` and the number of
/// levels, not with the number of terms. Returns the positions at which a level begins (`loops[k]` and
/// what is inside it), without the outermost. `lanes`: elements a step of the lane digit.
std::vector<size_t> cut_chains(LoopPiece& piece, int lanes, int64_t most, VarSource& vars);

}  // namespace hlojit::codegen

// Planned loops cut further, for what the plan did not know: tasks for the cores, steps written out, sums in levels.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/nest/accesses.h"
#include "codegen/nest/loop_plan.h"
#include "compiler/plan/target_info.h"

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

/// What all rows read, such as what channels are scaled by, is loaded once for many of them. (A normalisation of
/// f32[3675,84] on a Zen 4, five loads a vector: 45 us, 27; XLA:CPU 35. Half as wide vectors are loaded two at a time:
/// 1.1 times as long by strips. Nor does it pay for two of six loads where the rows are several strips: scaled and
/// shifted ones of 300 took 1.16 times as long. Loads are not what a transcendental waits for: with an exponential
/// behind them rows of 224 took 12.6 us, 15.8 by strips; with an erf 18.4 and 25.2. By so many rows as the first cache
/// holds; by four at least where it does not hold what they share: 1024x2048, four loads a vector, one core and two of
/// a Zen 4, 560 and 236 us, 320 and 139; by AVX2's registers 545 and 320 on one.) False where it would not pay. `walk`:
/// reads and writes at an element of the piece.
bool put_shared_in_strips(LoopPiece& piece, const std::function<void(AccessWalk&, const Coords&)>& walk, int native,
                          const TargetInfo& target, VarSource& vars);

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

/// Of the piece's loops, those of which two parts share hardly a line of what is written: steps that are lines apart,
/// the longest steps, lanes side by side, blocks that are long rows together. (Sines of 3000x3 coordinates at six
/// scales, a task a coordinate: 84 us with two threads, 40 by rows, 47 with one. Sums of three for 300 rays by 30
/// triangles, a task fifteen of those: 75 us, 20 with one thread. Blocks of 16 of rows of 53: 147 us, 35; one
/// thread 50.)
std::function<bool(int)> writes_apart(const LoopPiece& piece,
                                      const std::function<void(AccessWalk&, const Coords&)>& walk, VarSource& vars);

/// Cuts the piece's loops into levels of at most `most` steps each, so that a sum over them can be made of
/// partial sums of that length, combined level by level: its error grows with `most` and the number of
/// levels, not with the number of terms. Returns the positions at which a level begins (`loops[k]` and
/// what is inside it), without the outermost. `lanes`: elements a step of the lane digit.
std::vector<size_t> cut_chains(LoopPiece& piece, int lanes, int64_t most, VarSource& vars);

}  // namespace hlojit::codegen

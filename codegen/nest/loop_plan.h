// Loop planning: which loops a domain becomes, in which order, and on which of them the lanes go.
// No LLVM here: a plan is a list of pieces (boxes) with digits, all addresses affine in them.
//
//   f32[256,256]{1,0:T(8,128)} copied to row-major: dims d0, d1 are cut at 8 and 128;
//   digits (d0/8, d1/128, d0%8, d1%128), the last one carries the lanes.
//
// Steps: cut every dimension at the breaks of all addresses; merge neighbouring digits whose strides
// continue in every address; order the rest by the result's memory; pick the lane digit as the one
// that moves most bytes at stride 1.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "codegen/nest/accesses.h"
#include "layout/digits.h"

namespace hlojit::codegen {

/// trip = min(extent, ceildiv(limit - so_far, stride) * factor)
struct Clip {
  IndexExpr so_far;  ///< over outer digits
  int64_t limit = 0;
  int64_t stride = 1;
  int64_t factor = 1;
};

/// The variable takes min((first + counter) * step, last) instead of the counter: blocks of `step`, the last
/// one moved back so that it ends where the digit ends.
struct Steps {
  IndexExpr first;  ///< over outer digits
  int64_t step = 1;
  int64_t last = 0;
};

struct LoopDigit {
  int var = -1;
  int64_t extent = 1;
  std::optional<Clip> clip;
  std::optional<Steps> steps;
  bool written_out = false;  ///< its steps stand one after the other, however much is inside
};

/// Blocks of an operand that is contiguous along another digit than the lanes: `unroll` consecutive
/// values of that digit are handled together and transposed in registers.
struct Unroll {
  int var = -1;  ///< the digit's variable: innermost but the lanes
  int64_t count = 1;
};

struct LoopPiece {
  std::vector<LoopDigit> loops;  ///< outermost first; the lane digit, if any, is last
  bool has_lanes = false;
  bool apart = false;  ///< the lanes of some operand do not lie side by side: they are moved one by one
  Coords coords;       ///< the domain's coordinates in terms of the loop variables
  Unroll unroll;
  int operations = 1;  ///< that one element takes, or one of each unrolled; memory accesses included
};

/// The piece with its loop number k done once, at this value of the counter.
LoopPiece at_step(const LoopPiece& piece, size_t k, int64_t step);

/// The piece with its innermost loop in groups of `count` steps that are written out; what is left of it, too, is a
/// piece of its own.
std::vector<LoopPiece> in_groups(LoopPiece piece, int64_t count, VarSource& vars);

struct LoopPlanOptions {
  bool lanes = true;  ///< may a digit carry lanes?
  /// Lanes wanted at most (a power of two); a shorter digit gets fewer.
  int max_lanes = 8;
  int unroll = 0;         ///< > 0: transposing blocks of this many are allowed (without lanes: groups)
  bool in_order = false;  ///< elements are met in row-major order of the domain
  bool overlap = false;   ///< blocks may compute some elements twice
  int outer_lane = -1;    ///< a variable bound outside that takes lanes
};

/// A read of up to so many elements apart takes whole vectors and shuffles; wider apart a gather is cheaper.
inline constexpr int64_t kFewStrides = 4;

/// Plans loops over a domain of sizes `dims`. `walk` fills an AccessWalk for given coordinates; outer
/// variables (already bound) may occur in its addresses and stay as they are.
std::vector<LoopPiece> plan_loops(std::span<const int64_t> dims, VarSource& vars,
                                  const std::function<void(AccessWalk&, const Coords&)>& walk,
                                  const LoopPlanOptions& options);

/// Lanes a digit of this extent gets: the largest power of two <= both.
int lanes_for(int64_t extent, int max_lanes);

/// How many parallel tasks work of `ns` nanoseconds is worth: at least 1.
int64_t chunks_for(int64_t ns);

/// Splits the outermost loops so that about `chunks` equal parts can run in parallel. Returns how many
/// leading loops of the piece are then chunk loops; their extents' product is the chunk count.
/// Never splits the reduction of one value. `grain`: a split loop keeps multiples of it inside.
/// `overlap`: neighbouring chunks may compute some elements both.
size_t split_for_chunks(LoopPiece& piece, int64_t chunks, int64_t grain, VarSource& vars, bool overlap = false);

/// Cuts the piece's loops into levels of at most `most` steps each, so that a sum over them can be made of
/// partial sums of that length, combined level by level: its error grows with `most` and the number of
/// levels, not with the number of terms. Returns the positions at which a level begins (`loops[k]` and
/// what is inside it), without the outermost. `lanes`: elements a step of the lane digit.
std::vector<size_t> cut_chains(LoopPiece& piece, int lanes, int64_t most, VarSource& vars);

}  // namespace hlojit::codegen

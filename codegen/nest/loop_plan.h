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

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <iterator>
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

/// Whether a loop's steps stand one after the other: if all that they do is short, however much it is, or never.
enum class Written { kIfShort, kOut, kAsLoop };

struct LoopDigit {
  int var = -1;
  int64_t extent = 1;
  std::optional<Clip> clip;
  std::optional<Steps> steps;
  Written written = Written::kIfShort;
};

/// Blocks: consecutive values of another digit than the lanes' are handled together. They are transposed in registers
/// where an operand is contiguous along that digit, and what their reductions read in common is read once.
struct Unroll {
  int var = -1;  ///< the digit's variable: innermost but the lanes
  int64_t count = 1;
  int64_t part = 1;          ///< so many at a time, in a loop, where they need not all be in registers together
  int64_t step = 1;          ///< from one to the next
  int64_t last = INT64_MAX;  ///< none goes beyond

  int64_t value(int64_t k) const { return std::min(k * step, last); }
};

struct LoopPiece {
  std::vector<LoopDigit> loops;  ///< outermost first; the lane digit, if any, is last
  bool has_lanes = false;
  bool apart = false;      ///< the lanes of some operand do not lie side by side: they are moved one by one
  bool across = false;     ///< the lanes run across rows that are shorter than a vector (LoopOrder::lay_across)
  bool pairs = false;      ///< lanes are in pairs (codegen/number/codec.h) where there are enough
  bool guarded = false;    ///< elements ask where they are
  bool looked_up = false;  ///< each lane of some operand lies where another value says
  /// A vector along the lanes waits for none before it: a core takes up the next while one is being computed. (Not
  /// where each is a sum of its own, for which many are in flight.)
  bool side_by_side = false;
  Coords coords;     ///< the domain's coordinates in terms of the loop variables
  int together = 1;  ///< elements a step, whose coordinates follow each other in `coords` (merge_pieces)
  Unroll unroll;
  int side = 0;        ///< of blocks that are squares, in elements
  int operations = 1;  ///< that one element takes, or one of each unrolled; memory accesses included

  /// Lanes along a digit of which it is known how long it is, and no blocks.
  bool known_lanes() const { return has_lanes && unroll.var < 0 && !loops.back().clip && !loops.back().steps; }

  /// Those of element n of a step, out of all that a loop over the piece gives.
  Coords element(const Coords& at, int n) const {
    const auto rank = std::ssize(at) / together;
    return Coords(at.begin() + n * rank, at.begin() + (n + 1) * rank);
  }
};

struct LoopPlanOptions {
  bool lanes = true;  ///< may a digit carry lanes?
  /// Lanes wanted at most (a power of two); a shorter digit gets fewer.
  int max_lanes = 8;
  int unroll = 0;         ///< > 0: transposing blocks of this many are allowed (without lanes: groups)
  int64_t in_parts = 0;   ///< transposing blocks are worked on in parts if all that is touched is at most so many bytes
  bool in_order = false;  ///< elements are met in row-major order of the domain
  int in_turn = 0;        ///< so many values that alternate in the result may be a block, if that is more
  bool overlap = false;   ///< blocks may compute some elements twice
  int outer_lane = -1;    ///< a variable bound outside that takes lanes
  int alternating = 0;    ///< of groups: so many rows that alternate in memory are one
  bool across = false;    ///< lanes may run across rows that are shorter than a vector
  bool packs = false;     ///< vectors of the result are wanted, however its elements are gathered
  bool interleaves = false;  ///< the few values that alternate in the result beside the lanes are a block
  bool pairs = false;        ///< lanes may be in pairs
  bool scattered = false;    ///< elements of which none has a neighbour in memory may be taken one by one
  int shared = 0;            ///< > 0: blocks of this many values whose reductions read the same elements
};

/// A read of up to so many elements apart takes whole vectors and shuffles; wider apart a gather is cheaper.
inline constexpr int64_t kFewStrides = 4;

/// Rows of up to so many elements are loaded by vectors for as many rows, and their elements put side by side.
inline constexpr int64_t kShortRow = 16;

/// Of lanes in a known pattern the runs of memory, of a vector each, that are loaded; in more a gather is as cheap.
inline constexpr int64_t kMostWindows = 8;

/// Rows of up to so many bytes that lie where indices say are loaded whole, as integers or as a vector of words, and
/// put side by side. (Wider elements are transposed.)
inline constexpr int64_t kMostFoundBytes = 8, kMostFoundInWords = 16;
inline int64_t most_found_bytes(int64_t bytes_of_element) {
  return bytes_of_element == 4 ? kMostFoundInWords : kMostFoundBytes;
}

/// So many elements are read as one integer, and one of them shifted out.
inline bool in_group(int64_t stride, int64_t bytes) {
  return stride > 1 && stride * bytes <= 8 && std::has_single_bit(static_cast<uint64_t>(stride * bytes));
}

/// Plans loops over a domain of sizes `dims`. `walk` fills an AccessWalk for given coordinates; outer
/// variables (already bound) may occur in its addresses and stay as they are.
std::vector<LoopPiece> plan_loops(std::span<const int64_t> dims, VarSource& vars,
                                  const std::function<void(AccessWalk&, const Coords&)>& walk,
                                  const LoopPlanOptions& options);

}  // namespace hlojit::codegen

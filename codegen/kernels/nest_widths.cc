// See nest_widths.h.
#include "codegen/kernels/nest_widths.h"

#include <algorithm>
#include <bit>

#include "codegen/nest/lines.h"

namespace hlojit::codegen {

LaneWidths NestWidths::of(const LoopPiece& piece) const {
  LaneWidths widths = in_row(piece);
  if (facts_.masks && packs_masks(piece)) widths.at_a_time = native_;
  return widths;
}

// Without mask registers the conditions of a vector wider than the machine's are packed into bytes for each step and
// unpacked again. Results that are conditions are packed anyway.
bool NestWidths::packs_masks(const LoopPiece& piece) const {
  const bool maps = plan_.kind == KernelKind::kNest && piece.unroll.var < 0;
  return maps && !facts_.gives_masks && target_.isa() != Isa::kAvx512;
}

// (A mask costs a machine without registers for them more than a few elements one by one.)
bool NestWidths::leaves_out_lanes(const LoopPiece& piece) const {
  if (target_.isa() != Isa::kAvx512 || facts_.shares_bytes || piece.together > 1) return false;
  AccessWalk accesses(vars_);
  facts_.visit(accesses, piece.coords);
  return may_leave_out_lanes(piece, accesses);
}

// Of a block each value has its vectors.
LaneWidths NestWidths::in_row(const LoopPiece& piece) const {
  if (plan_.kind == KernelKind::kRows) return {{1}};
  if (piece.across) return {{static_cast<int>(piece.loops.back().extent)}};
  const bool blocked = piece.unroll.var >= 0;
  const int wide = std::max(native_, wide_ / static_cast<int>(std::bit_ceil(static_cast<unsigned>(piece.together))));
  // (Three sums of a matrix each in four vectors spill: 8 ms to compile became 20.)
  const int shared = piece.unroll.count > kShared ? native_ : std::max(native_, wide / kShared);
  if (blocked && facts_.pulls) return lane_widths(piece, shared, native_, overlap_);
  if (blocked) {
    // Squares are as wide as they are high; what is interleaved may be of any width.
    const int words = piece.side, lanes = piece.unroll.count < words ? std::max(native_, words) : words;
    return lane_widths(piece, lanes, lanes, overlap_);
  }
  const bool rows = piece.looked_up && facts_.finds_rows;  // a pointer a lane
  constexpr int kWrittenOut = 32;  // lanes, of which twice as many take LLVM twice as long and nothing less to run
  const bool few = piece.looked_up && !facts_.pulls && facts_.few_gathers();
  // The steps of a scan wait for each other, however the lanes are put together.
  const bool apart = piece.apart && plan_.kind != KernelKind::kScan;
  const int most = apart || rows ? native_ : few ? std::max(native_, std::min(wide, kWrittenOut)) : wide;
  if (plan_.kind == KernelKind::kNest && !overlap_ && piece.known_lanes())
    return narrowing_widths(piece, most, native_, leaves_out_lanes(piece));
  return lane_widths(piece, most, native_, overlap_, Last::kNarrower);
}

}  // namespace hlojit::codegen

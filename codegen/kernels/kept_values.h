// Where values lie that one stage of a nest makes for another: rows of scratch, or a result's own buffer.
#pragma once

#include "codegen/kernels/row_block.h"
#include "codegen/kernels/scratch.h"
#include "codegen/kernels/stages.h"

namespace hlojit::codegen {

/// The outer elements that are at hand at once.
struct AtHand {
  int64_t rows;           ///< of a piece's unrolled block
  int tile;               ///< columns side by side
  const IndexExpr& lane;  ///< which of these the coordinates being emitted are
};

/// Gives them their places. Keeps references to the stages, the block and the lane.
void place_kept_values(KernelBuilder& kernel, const KernelPlan& plan, const Stages& stages, Scratch& scratch,
                       const RowBlock& block, const AtHand& at_hand);

/// Of results that later stages load again, these alone.
void place_reread_results(KernelBuilder& kernel, const KernelPlan& plan);

}  // namespace hlojit::codegen

// How many lanes the bodies of a nest's pieces have: codegen/nest/lane_widths.h, asked by what is known of the kernel.
#pragma once

#include <optional>

#include "codegen/kernels/nest_facts.h"
#include "codegen/nest/lane_widths.h"

namespace hlojit::codegen {

/// Results side by side whose reductions read the same elements. (Of four, more have a part beyond a border.)
inline constexpr int kShared = 2;

class NestWidths {
 public:
  /// Keeps references to all but the numbers. `native`: lanes of a native vector; `wide`: of those that are computed
  /// side by side. `overlap`: elements may be computed twice.
  NestWidths(const KernelPlan& plan, const NestFacts& facts, const Target& target, VarSource& vars, int native,
             int wide, bool overlap)
      : plan_(plan), facts_(facts), target_(target), vars_(vars), native_(native), wide_(wide), overlap_(overlap) {}

  /// Of a piece that is not gone through by lines.
  LaneWidths of(const LoopPiece& piece) const;

 private:
  LaneWidths in_row(const LoopPiece& piece) const;
  bool packs_masks(const LoopPiece& piece) const;
  bool leaves_out_lanes(const LoopPiece& piece) const;

  const KernelPlan& plan_;
  const NestFacts& facts_;
  const Target& target_;
  VarSource& vars_;
  const int native_, wide_;
  const bool overlap_;
};

}  // namespace hlojit::codegen

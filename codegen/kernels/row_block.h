// Rows of few vectors wait for what a stage makes of each of them (a maximum, a sum, what is divided by it) longer than
// for their elements. So a block of rows goes through a stage before any of them goes through the next: chains of
// different rows do not wait for each other. (Softmax of 171x203 floats, one core of a Zen 5: 9.6 us row by row, 6.7
// by blocks of eight.)
#pragma once

#include <map>
#include <vector>

#include "codegen/kernels/scratch.h"
#include "codegen/kernels/stages.h"

namespace hlojit::codegen {

class RowBlock {
 public:
  /// Keeps references to both.
  RowBlock(const KernelPlan& plan, const Stages& stages) : plan_(plan), stages_(stages) {}

  /// Rows worth taking together if so many bytes are touched for each: as many as the first cache holds twice.
  static int64_t most_rows(const TargetInfo& target, int64_t bytes_of_row);

  /// The innermost loop of the piece as one of blocks of at most so many rows, and one of the rows of a block. False
  /// where it is too short, or does not always end at the same row.
  bool cut(LoopPiece& piece, int64_t most, VarSource& vars);
  /// The loop over the rows of a block, the innermost, becomes this one's.
  void take(LoopPiece& piece);

  /// Places for what the stages' reductions give, as long as the block's stages go by.
  void place_results(Scratch& scratch);
  /// All stages of the block at `at`, the coordinates that the loops around it give.
  void run(KernelBuilder& kernel, Scope& scope, const Coords& at, bool overlap);

  /// Rows of a block; 1: there are none.
  int64_t count() const { return rows_; }
  /// Of the block, the one at hand.
  const IndexExpr& row() const { return row_; }

 private:
  struct OfRows {
    BufferRef buffer;
    DType type;
  };
  void load_results(ElementEmitter& e, Scope& scope, const Stage& stage, const Coords& row);
  void store_results(ElementEmitter& e, Scope& scope, const Stage& stage);

  const KernelPlan& plan_;
  const Stages& stages_;
  int64_t rows_ = 1;
  IndexExpr row_{0};
  LoopPiece block_;
  std::map<const Instruction*, std::vector<OfRows>> results_;  // of reductions
};

}  // namespace hlojit::codegen

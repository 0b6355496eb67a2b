// Stages of rows as loops: where it pays (rows_together in compiler/plan/stages.h) over a few rows at a time, all of
// which go through a stage before any goes through the next.
#pragma once

#include <map>
#include <vector>

#include "codegen/kernels/scratch.h"
#include "codegen/kernels/stages.h"

namespace hlojit::codegen {

/// How many rows of the piece, cut into so many tasks, may go through the stages together; `bytes`: of all arrays read
/// and written.
int64_t rows_of_block(const KernelPlan& plan, const TargetInfo& target, const LoopPiece& piece, int64_t tasks,
                      int64_t bytes);

class RowBlock {
 public:
  /// Keeps references to both.
  RowBlock(const KernelPlan& plan, const Stages& stages) : plan_(plan), stages_(stages) {}

  /// The innermost loop of the piece, over rows, as one of blocks of at most so many and one of the rows of a block,
  /// which is to be taken out when the others have been cut into tasks. False where there are too few.
  bool cut(LoopPiece& piece, int64_t most, VarSource& vars);
  void take(LoopPiece& piece);

  /// Places for what the stages' reductions give, as long as a block's stages go by.
  void place_results(Scratch& scratch);
  /// Stages from `first` to `end` of the block (or the row) at `at`, the coordinates that the loops around it give.
  void run(KernelBuilder& kernel, Scope& scope, const Coords& at, size_t first, size_t end, bool overlap);

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

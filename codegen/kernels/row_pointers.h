// Rows of a product that are found by pointers, so that what a convolution reads of its input need not be copied, nor
// the rows of a dot that lie in tiles.
//
// What lies together shares a pointer (RowsInPlace in compiler/plan/operands_in_place.h), and a table says where it is;
// what is in the padding points to zeros.
//
//                 a pointer for                   leads to                   the table
//   by position   a row, at an element of the     its features:              [row][stretch of the depth], of the
//                 window, or in a tile            `stretch` of the depth     block; made once
//                 a line of rows where they     the first one's             [line of rows][stretch]
//                 are read at once
//   by step       neighbouring rows, at a step    those `together`:          [group of rows][step], of a slice of the
//                 of the depth                    features, too              depth; made for each
//
// Of a tile all of whose rows are in the padding at an element of the window nothing is multiplied there: beside the
// table lie sets of those that are not, a bit each. (3x3 about 28x28 by 128 features dilated by two, a Zen 4:
// 0.95 of the time.)
//
// An entry is 8 bytes where packing would copy all of the features, once more for every element of the window.
#pragma once

#include "codegen/kernels/micro_kernel.h"
#include "codegen/kernels/packing.h"
#include "codegen/kernels/scratch.h"
#include "compiler/plan/operands_in_place.h"

namespace hlojit::codegen {

/// The pointers of a task's block of rows.
class RowPointers {
 public:
  /// Takes room for the table, and for zeros. `operand`: the rows'.
  RowPointers(ProductReads& reads, const RowsInPlace& rows, const Blocks& blocks, const BufferRef& operand,
              Scratch& scratch);

  /// Each row has its own: a tile may begin anywhere.
  bool by_position() const { return stretch_ > 0; }

  /// Makes what all slices share, for the block from row `m0` on.
  void begin(Scope& root, const IndexExpr& m0);
  /// Makes what is of the slice from `k0` on. `rows`: how many the block has.
  void begin_slice(Scope& scope, const IndexExpr& m0, const IndexExpr& k0, llvm::Value* rows);
  /// The tile from this row of the block on, in that slice. `terms`: elements of the depth that are one of the
  /// micro-kernel's.
  TileRows tile(Scope& scope, const IndexExpr& row, const IndexExpr& k0, int64_t terms) const;

 private:
  int64_t zero_bytes() const;
  /// Runs `entries` for each of `count` lines of the table, of `most` that there may be.
  void each_line(Scope& scope, llvm::Value* count, int64_t most,
                 const std::function<void(Scope&, const IndexExpr& line)>& entries);
  Read read_at(const Coords& row, const IndexExpr& depth);
  /// There may be tiles with all rows in the padding: above or below an image, of lines as long as a tile.
  bool tiles_reach_out();
  /// Those of the tile from this row of the block on, in the slice from `k0` on: one at least.
  llvm::Value* stretches(Scope& scope, const IndexExpr& row, const IndexExpr& k0) const;
  /// Stores where a row is at this depth, in lanes, at that place of the table; which of them are no padding, null if
  /// all.
  llvm::Value* store(Scope& scope, const Coords& row, const IndexExpr& depth, const IndexExpr& place, int lanes);
  llvm::Value* address(Scope& scope, const Read& read, llvm::Value* inside, int lanes) const;

  ProductReads& reads_;
  ElementEmitter& e_;
  const Blocks& blocks_;
  const BufferRef& operand_;
  int64_t stretch_, together_, apart_;
  int64_t entries_;  // of a line
  const bool skips_;
  llvm::Value *table_, *zeros_, *sets_ = nullptr;
  IndexExpr origin_{0};             // the operand, as a number
  llvm::Value* nothing_ = nullptr;  // the zeros
};

}  // namespace hlojit::codegen

// Rows of a product that are found by pointers, so that what a convolution reads of its input need not be copied.
//
// A row is a position of the window, and for each element of the window its features lie together. A table says where,
// row by row; what is in the padding points to zeros. An entry is 8 bytes where packing would copy all of the
// features, once more for every element of the window.
#pragma once

#include "codegen/kernels/packing.h"
#include "codegen/kernels/scratch.h"

namespace hlojit::codegen {

/// The table of a block.
struct RowPointers {
  /// Takes room for a table of `rows`, and for a stretch of zeros. `bytes`: of an element.
  RowPointers(const MatrixProduct& product, int64_t stretch, int64_t rows, int64_t bytes, Scratch& scratch);

  int64_t stretch;  ///< elements that an entry points to
  int64_t taps;     ///< entries of a row
  int64_t rows;
  int64_t bytes;
  llvm::Value *table, *zeros;
};

/// What the addresses of a product's rows are made by.
struct RowReads {
  ElementEmitter& emitter;
  VarSource& vars;
  ProductReads& reads;
  const MatrixProduct& product;
};

/// Fills the table for `count` rows from `m0` on; rows behind the product's last one repeat it. `operand`: the rows'.
void fill(const RowPointers& pointers, Scope& scope, const BufferRef& operand, const IndexExpr& m0, llvm::Value* count,
          const RowReads& from);

}  // namespace hlojit::codegen

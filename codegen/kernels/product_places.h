// Where a product's operands are read and its sums put: decided before any of it is emitted.
//
// An operand is read where it lies, found by pointers, or packed. Sums go to the result at once where that is the
// product as it is summed, else to scratch. Where rows, columns or blocks do not share out evenly, the last begins so
// early that it is whole, if what is read and what is written allow that; else what is beyond the end is computed
// and left. Of columns that is part of a vector at most: the last panel is as wide as they need. (A Zen 4, 64x64 by 100
// columns: 0.81 of the time in 64 and 40 of them.)
#pragma once

#include <optional>

#include "codegen/kernels/function.h"
#include "codegen/kernels/packing.h"
#include "codegen/kernels/scratch.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/operands_in_place.h"

namespace hlojit::codegen {

/// Where a product stage stands.
struct ProductSite {
  Coords batch;
  IndexExpr m0{0}, n0{0};       ///< first row and column of the block
  std::optional<RowTile> left;  ///< the rows' operand, where an earlier stage left it
  std::optional<RowTile> sums;  ///< the whole block's sums are left here; none: they go through the epilogue
  bool once = false;            ///< no result may be stored twice
};

/// A product stage as its blocks cut it. What it is given outlives it.
struct ProductStage {
  ProductStage(const KernelPlan& plan, const Stage& stage, const EmitOptions& options);

  const KernelPlan& plan;
  const Stage& stage;
  const EmitOptions& options;
  const Instruction& dot;
  const Blocks& blocks;
  int vector_bytes;
  MatrixProduct product;
  MatrixProduct packed;  ///< as it is packed
  DType type;            ///< of the sums
  int lanes;             ///< of a vector of them
  const MultiplyAddForm& form;
  DType packed_type;

  /// Packed bytes of the left side are 128 too large.
  bool biased() const { return blocks.multiply_add == MultiplyAdd::kBytes; }
  PackedForm packed_form() const { return {packed_type, form.terms, form.step, biased(), blocks.depth, vector_bytes}; }
  int64_t packed_depth() const { return packed_form().packed_depth(); }
  int64_t slices() const { return ceil_div(product.k, blocks.depth); }
  /// Of a block.
  int64_t panels() const { return blocks.columns / blocks.tile_columns; }
  int64_t tiles() const { return blocks.rows / blocks.tile_rows; }
  /// The only panel is wider than the product, by part of a vector that need not be stored: one instruction with
  /// masks. With lanes along the depth sums of columns are made one by one.
  bool stores_part() const;
};

struct ProductPlaces {
  std::optional<OperandStrides> left, right;   ///< of operands read where they lie
  RowsInPlace rows;                            ///< else how the rows' may be
  bool in_panels = false;                      ///< the columns' lies as the micro-kernel reads it
  bool by_rows = false;                        ///< the left block is packed row by row
  int64_t group = 1;                           ///< panels packed together
  int64_t last_columns = 0;                    ///< of the last panel, in whole vectors or halves
  int64_t columns = 0;                         ///< of all panels; more than there are: the last begins so early
  bool moves_rows = false;                     ///< the last tile of rows begins so early that it is whole
  bool moves_up = false;                       ///< the last block of rows is packed from so early on that it is
  std::optional<int64_t> result_stride;        ///< between rows of the result, where sums are put at once
  bool rows_end = false, columns_end = false;  ///< within a tile whose sums are not
};

ProductPlaces choose_places(const ProductStage& stage, const ProductSite& site, const ProductReads& reads,
                            const KernelBuilder& kernel);

}  // namespace hlojit::codegen

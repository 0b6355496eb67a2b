// One product stage of a kernel: a dot or a convolution, for the block of rows and columns that a task has.
//
// The contracting dims are walked in slices; for each slice and each few panels of columns the right
// operand is packed (a nest through its access relation: any layout, producers fused in), then the register
// tile runs down the rows. Operands that are plain arrays with constant strides are read in place. After
// the last slice each tile goes through the epilogue, the elementwise consumers on their way to the result,
// or the sums stay in scratch for the stages that follow.
#pragma once

#include <optional>

#include "codegen/kernels/function.h"
#include "codegen/kernels/scratch.h"
#include "compiler/plan/kernel.h"

namespace hlojit::codegen {

/// Where a product stage stands.
struct ProductSite {
  Coords batch;
  IndexExpr m0{0}, n0{0};       ///< first row and column of the block
  std::optional<RowTile> left;  ///< the rows' operand, where an earlier stage left it
  std::optional<RowTile> sums;  ///< the whole block's sums are left here; none: they go through the epilogue
  bool once = false;            ///< no result may be stored twice
};

/// Emits stage `number` of the plan into the kernel's root scope. Of `scratch` it uses what is free, and leaves
/// it free again.
void emit_product(KernelBuilder& kernel, const KernelPlan& plan, size_t number, const ProductSite& site,
                  Scratch& scratch);

}  // namespace hlojit::codegen

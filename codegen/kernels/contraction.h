// One product stage of a kernel: a dot or a convolution, for the block of rows and columns that a task has.
//
// The contracting dims are walked in slices; for each slice and each few panels of columns the right
// operand is packed (a nest through its access relation: any layout, producers fused in), then the register
// tile runs down the rows. Operands that are plain arrays with constant strides are read in place. After
// the last slice each tile goes through the epilogue, the elementwise consumers on their way to the result,
// or the sums stay in scratch for the stages that follow.
#pragma once

#include "codegen/kernels/product_places.h"
#include "codegen/kernels/scratch.h"
#include "compiler/plan/kernel.h"

namespace hlojit::codegen {

/// Emits stage `number` of the plan into the kernel's root scope. Of `scratch` it uses what is free, and leaves
/// it free again.
void emit_product(KernelBuilder& kernel, const KernelPlan& plan, size_t number, const ProductSite& site,
                  Scratch& scratch);

}  // namespace hlojit::codegen

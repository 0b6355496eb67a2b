// Contraction kernels: packed panels and register tiles for dots and convolutions large enough to pay for them.
//
// The result is cut into blocks, one a task. A task walks the contracting dims in slices; for each
// slice and each panel of columns it packs the right operand's panel (a nest through the operand's
// index map: any layout, producers fused in), then runs the register tile down the rows. The left
// operand is read in place when it is a plain array with constant strides, else packed too. After the
// last slice each tile goes through the epilogue: the fused elementwise consumers, stored in any layout.
#pragma once

#include <optional>

#include "codegen/kernels/kernel.h"

namespace hlojit::codegen {

/// The fusion as its plan's blocks say; `plan.blocks` must be there.
KernelFunction emit_contraction(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan,
                                const OverlapMatrix& overlap, const EmitOptions& options);

}  // namespace hlojit::codegen

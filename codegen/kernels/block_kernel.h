// Kernels with product stages: see block_kernel.cc.
#pragma once

#include "codegen/kernels/kernel.h"

namespace hlojit::codegen {

/// The fusion as its plan says; the plan has a product stage. `cost_ns`: of all chunks together.
KernelFunction emit_block_kernel(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan,
                                 const Surroundings& around, const EmitOptions& options, int64_t cost_ns);

}  // namespace hlojit::codegen

// scatter: updates combined into places that only run time knows. See scatter.cc.
#pragma once

#include "codegen/kernels/kernel.h"

namespace hlojit::codegen {

/// Emits the fusion of a scatter, whose results already hold the operands.
KernelFunction emit_scatter(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan,
                            const Surroundings& around, const EmitOptions& options, VarSource& vars);

}  // namespace hlojit::codegen

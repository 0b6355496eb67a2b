// Kernels without product stages: see nest_kernel.cc.
#pragma once

#include "codegen/kernels/kernel.h"

namespace hlojit::codegen {

/// The fusion as its plan says: an outer nest over which its stages run in order. `cost_ns`: of all functions together.
std::vector<KernelFunction> emit_nest(const NextModule& module, const Instruction& fusion, const KernelPlan& plan,
                                      const Surroundings& around, const EmitOptions& options, VarSource& vars,
                                      int64_t cost_ns);

}  // namespace hlojit::codegen

// Kernels: a fusion becomes one or a few native functions of kernel_abi.h's form, one a piece of its
// domain. The plan (compiler/plan/kernel.h) says which kind; all kinds share ElementEmitter.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/kernel_source.h"
#include "codegen/nest/element_emitter.h"
#include "compiler/plan/kernel.h"

namespace hlojit::codegen {

/// One emitted function.
struct KernelFunction {
  llvm::Function* function = nullptr;
  KernelWork work{};
};

/// Where the next function is emitted: all may be in one module, or each in one of its own.
using NextModule = std::function<llvm::Module&()>;

/// Emits the fusion's functions, to be called in order.
std::vector<KernelFunction> emit_kernel(const NextModule& module, const Instruction& fusion, const Surroundings& around,
                                        const EmitOptions& options);

}  // namespace hlojit::codegen

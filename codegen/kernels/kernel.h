// Kernels: a fusion becomes one or a few native functions of kernel_abi.h's form, one a piece of its
// domain. The plan (compiler/plan/kernel.h) says which kind; all kinds share ElementEmitter.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/nest/element_emitter.h"
#include "compiler/plan/kernel.h"

namespace hlojit::codegen {

/// One emitted function.
struct KernelFunction {
  llvm::Function* function = nullptr;
  int64_t chunks = 1;
  int64_t scratch_bytes = 0;
  int64_t cost_ns = 0;   ///< of all chunks together
  bool in_order = true;  ///< chunk by chunk, the results are made from the first in memory to the last
};

/// Where the next function is emitted: all may be in one module, or each in one of its own.
using NextModule = std::function<llvm::Module&()>;

/// Emits the fusion's functions, to be called in order.
std::vector<KernelFunction> emit_kernel(const NextModule& module, const Instruction& fusion, const Surroundings& around,
                                        const EmitOptions& options);

}  // namespace hlojit::codegen

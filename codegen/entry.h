// The whole-module function: control flow as basic blocks, kernels as calls, buffers by the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/jit.h"
#include "codegen/options.h"
#include "compiler/plan/buffers.h"

namespace hlojit::codegen {

/// What a planned module needs at run time besides its code.
struct ModuleCode {
  IrModule ir;                 ///< defines `entry` (kernel_abi.h)
  std::vector<IrModule> more;  ///< further kernels that `ir` calls, to be linked with it
  int64_t arena_bytes = 0;     ///< temporaries and serial scratch
  int64_t kernels = 0;         ///< fusions emitted
};

/// Name of the function with abi::Entry's type.
inline constexpr char kEntryName[] = "hlojit_entry";

/// Emits IR for a planned module. Throws Error(kUnsupported) for what no kernel can do.
ModuleCode emit_module(const Module& module, const BufferPlan& buffers, const EmitOptions& options);

}  // namespace hlojit::codegen

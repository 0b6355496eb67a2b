// The whole-module function: control flow as basic blocks, kernels as calls, buffers by the plan.
#pragma once

#include <cstdint>

#include "codegen/jit.h"
#include "codegen/kernel_source.h"
#include "compiler/plan/buffers.h"

namespace hlojit::codegen {

/// What entry code needs at run time besides its kernels.
struct EntryFacts {
  int64_t arena_bytes = 0;  ///< temporaries, lists of buffers, serial scratch
  int64_t kernels = 0;      ///< fusions that are called, or inlined
  bool inlines = false;     ///< loops hold code of kernels: worth optimising
};

/// Name of the function with abi::Entry's type.
inline constexpr char kEntryName[] = "hlojit_entry";

/// Emits entry code into `ir`; the kernels' symbols are declared there if `kernels` has not put them there.
/// Throws Error(kUnsupported) for what cannot be compiled.
EntryFacts emit_entry(llvm::Module& ir, const Module& module, const BufferPlan& buffers, KernelSource& kernels,
                      const EmitOptions& options);

}  // namespace hlojit::codegen

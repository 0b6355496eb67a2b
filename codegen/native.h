// From a planned module to code: as one LLVM module to be read, or callable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/entry.h"
#include "codegen/kernel_abi.h"
#include "codegen/kernel_units.h"

namespace hlojit::codegen {

/// Entry and its kernels in one LLVM module, named after the fusions, optimised: what compile_module makes
/// callable.
IrModule emit_module(const Module& module, const BufferPlan& buffers, const EmitOptions& options);

/// A module's code, loaded. Movable; unloads when destroyed what nobody else uses.
struct NativeCode {
  std::vector<std::shared_ptr<const KernelUnit>> kernels;  ///< distinct ones
  std::string entry_key, entry_object;                     ///< as the store has it
  JitCode code;
  abi::Entry entry = nullptr;
  EntryFacts facts;
  int64_t units_compiled = 0;  ///< of the kernels and entry; the others were kept
  double emit_ms = 0, jit_ms = 0, link_ms = 0;

  /// Puts all of it into the store.
  void keep_in(ObjectStore& store) const;
};

/// `store` may be null. Compiles on up to `threads` threads, the caller included.
NativeCode compile_module(const Module& module, const BufferPlan& buffers, const EmitOptions& options,
                          ObjectStore* store, int threads);

}  // namespace hlojit::codegen

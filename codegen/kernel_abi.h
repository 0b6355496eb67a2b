// The only contract between native code and the runtime: what JITted code is called with and the few
// functions it may call. Plain C data, fixed offsets, every function noexcept and returning a status
// (an exception through JITted frames would end the process).
#pragma once

#include <cstdint>

namespace hlojit::abi {

/// Status of kernels and of entry: 0 or one of these; the runtime keeps the text.
enum Status : int32_t { kOk = 0, kFailed = 1, kStopped = 2 };

struct Context;

/// One chunk of a kernel. `buffers`: operands then results of the fusion, leaf by leaf; `scratch`:
/// Kernel-private memory of the size its call asked for, 64-byte aligned (null if 0).
using Kernel = int32_t (*)(void* const* buffers, const int64_t* scalars, int64_t chunk, void* scratch) noexcept;

/// Runs kernel(buffers, scalars, c, scratch) for c in [0, chunks), in any order and on any thread,
/// each with `scratch_bytes` of its own. `cost_ns` is the price of the whole region: the runtime
/// decides by it alone whether waking the pool pays. Returns the status of the lowest failing chunk.
using ParallelFor = int32_t (*)(Context*, Kernel, void* const* buffers, const int64_t* scalars, int64_t chunks,
                                int64_t scratch_bytes, int64_t cost_ns) noexcept;

/// A step: what native code hands to the runtime (sort, factorisations, custom calls). `buffers`: leaves
/// of the operands, then of the result. `kernel`: code emitted for the step (a sort's merge), or null.
/// Returns kOk, or kFailed; the text stays with the runtime.
struct Step {
  int32_t (*run)(Context*, const void* state, void* const* buffers, Kernel kernel) noexcept;  // offset 0
  const void* state;                                                                          // offset 8
};

/// Per-call state; JITted code reads the members at these offsets.
struct Context {
  const char* constants = nullptr;     // offset 0: the module's constant blob
  ParallelFor parallel_for = nullptr;  // offset 8
  const Step* steps = nullptr;         // offset 16: by number (compiler/analysis/steps.h)
  void* runtime = nullptr;             // offset 24: the runtime's own
  const bool* stop = nullptr;          // offset 32: once true, loops, regions and steps end with kStopped; never null
};

/// The native function of a module. `params`: a pointer a leaf, aligned to the element; `results`: a
/// pointer a leaf, 64-byte aligned; `arena`: arena_bytes, 64-byte aligned.
using Entry = int32_t (*)(Context*, void* const* params, void* const* results, char* arena) noexcept;

}  // namespace hlojit::abi

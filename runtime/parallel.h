// Parallel regions on oneTBB. Chunks are fixed by shape, so where they run is free: a region goes to the
// pool only when its price beats waking a worker, else it runs in order on the caller.
#pragma once

#include <cstdint>
#include <memory>

#include "codegen/kernel_abi.h"

namespace hlojit {

/// A pool of `threads` threads, the caller included (more than cores is obeyed).
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  int threads() const { return threads_; }
  /// One pool a thread count, shared by the process.
  static std::shared_ptr<ThreadPool> get(int threads);

  int32_t run(abi::Kernel kernel, void* const* buffers, const int64_t* scalars, int64_t chunks,
              int64_t scratch_bytes, int64_t cost_ns) noexcept;

 private:
  struct Impl;
  int threads_;
  std::unique_ptr<Impl> impl_;
};

/// abi::ParallelFor: Context::runtime is the call's ThreadPool.
int32_t parallel_for(abi::Context* context, abi::Kernel kernel, void* const* buffers, const int64_t* scalars,
                     int64_t chunks, int64_t scratch_bytes, int64_t cost_ns) noexcept;

/// Default rounding and no flush-to-zero while it lives: a caller's floating-point mode must not reach kernels.
class FloatMode {
 public:
  FloatMode() noexcept;
  ~FloatMode();

 private:
  unsigned saved_;
};

}  // namespace hlojit

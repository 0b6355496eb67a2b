// Parallel regions on oneTBB. Chunks are fixed by shape, so where they run is free: a region goes to the
// pool only when its price beats waking a worker, else it runs in order on the caller.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <vector>

#include "codegen/kernel_abi.h"
#include "hlojit/hlojit.h"
#include "runtime/run_state.h"

namespace hlojit {

/// Of the machine. Asked once: the C library reads a file of the kernel's each time, 20 us of the 1.3
/// ms that the smallest program takes to compile.
int cores();

/// A pool of `threads` threads, the caller included; of one if the system refuses them (a limit on processes).
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  /// The caller's threads, of which there are `threads`.
  ThreadPool(int threads, ParallelFor callers);
  ~ThreadPool();
  /// How many it has in fact.
  int threads() const { return threads_; }
  /// The caller's if it has one; else one pool a thread count (0: one a core), shared by the process.
  static std::shared_ptr<ThreadPool> get(int threads, const ParallelFor& callers = {});

  /// As abi::ParallelFor; kStopped if `*stop` came true before some chunk began.
  int32_t run(abi::Kernel kernel, void* const* buffers, const int64_t* scalars, int64_t chunks, int64_t scratch_bytes,
              int64_t cost_ns, const bool* stop = &kNeverStop) noexcept;

 private:
  struct Impl;
  int threads_;
  ParallelFor callers_;
  std::unique_ptr<Impl> impl_;
};

/// f(c) for c in [0, chunks) on the pool, as abi::ParallelFor would; f may throw (the error of the lowest
/// chunk is thrown on).
template <class F>
void run_chunks(ThreadPool& pool, int64_t chunks, int64_t cost_ns, F&& f) {
  struct Work {
    std::remove_reference_t<F>* f;
    std::vector<std::exception_ptr> errors;
  } work{&f, std::vector<std::exception_ptr>(static_cast<size_t>(chunks))};
  void* self = &work;
  auto run = [](void* const* buffers, const int64_t*, int64_t chunk, void*) noexcept -> int32_t {
    auto& w = *static_cast<Work*>(buffers[0]);
    try {
      (*w.f)(chunk);
      return abi::kOk;
    } catch (...) {
      w.errors[static_cast<size_t>(chunk)] = std::current_exception();
      return abi::kFailed;
    }
  };
  if (pool.run(run, &self, nullptr, chunks, 0, cost_ns) == abi::kOk) return;
  for (const std::exception_ptr& e : work.errors) {
    if (e) std::rethrow_exception(e);
  }
}

/// abi::ParallelFor: Context::runtime is the call's RunState.
int32_t parallel_for(abi::Context* context, abi::Kernel kernel, void* const* buffers, const int64_t* scalars,
                     int64_t chunks, int64_t scratch_bytes, int64_t cost_ns) noexcept;

}  // namespace hlojit

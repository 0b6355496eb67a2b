// See parallel.h.
#include "runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "runtime/float_mode.h"
#include "runtime/fork.h"
#include "runtime/grant_threads.h"
#include "runtime/pool.h"
#include "runtime/run_state.h"

namespace hlojit {
namespace {

// Waking a worker that sleeps costs 20-45 us, one that still spins 2; a region must be worth it. Regions that follow
// each other closely wake it once for all: the second of them does, whether the first was worth it alone or not.
constexpr int64_t kAwakeNs = 8'000;
constexpr int64_t kAsleepNs = 60'000;
constexpr int64_t kStaysAwakeNs = 100'000;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Scratch of a task: kept by its thread between regions.
struct Scratch {
  std::shared_ptr<void> block;
  size_t bytes = 0;
  void* get(size_t n) {
    if (n > bytes) {
      block = pool_allocate(n);
      bytes = n;
    }
    return n == 0 ? nullptr : block.get();
  }
};
thread_local Scratch scratch;

}  // namespace

// Each caller at a time has an arena of its own, as an arena that is full would queue it behind the
// others; workers go where there is work. Callers beyond the thread count run alone.
struct ThreadPool::Impl {
  const int threads;
  std::atomic<int64_t> last_use{0};
  ThreadHome home;

  explicit Impl(int threads) : threads(threads) {}

  tbb::task_arena* take() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      if (std::ssize(arenas_) >= threads) return nullptr;
      idle_.push_back(arenas_.emplace_back(std::make_unique<tbb::task_arena>(working_threads(threads))).get());
    }
    tbb::task_arena* arena = idle_.back();
    idle_.pop_back();
    return arena;
  }
  void give(tbb::task_arena* arena) {
    std::lock_guard lock(mutex_);
    idle_.push_back(arena);  // has room: it was there
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<tbb::task_arena>> arenas_;
  std::vector<tbb::task_arena*> idle_;
};

ThreadPool::ThreadPool(int threads) : threads_(grant_threads(threads)), impl_(std::make_unique<Impl>(threads_)) {}
ThreadPool::ThreadPool(int threads, ParallelFor callers)
    : threads_(threads), callers_(callers), impl_(std::make_unique<Impl>(threads)) {}
ThreadPool::~ThreadPool() = default;

std::shared_ptr<ThreadPool> ThreadPool::get(int threads, const ParallelFor& callers) {
  static std::mutex mutex;
  static auto* pools = new std::map<int, std::shared_ptr<ThreadPool>>;  // outlives static destruction
  if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (callers.call) return std::make_shared<ThreadPool>(threads, callers);
  std::lock_guard lock(mutex);
  auto& p = (*pools)[threads];
  if (!p) p = std::make_shared<ThreadPool>(threads);
  return p;
}

int32_t ThreadPool::run(abi::Kernel kernel, void* const* buffers, const int64_t* scalars, int64_t chunks,
                        int64_t scratch_bytes, int64_t cost_ns, const bool* stop) noexcept {
  const volatile bool& stopped = *stop;  // set by another thread
  auto bytes = static_cast<size_t>(scratch_bytes);
  bool pays = false;
  if (threads_ > 1 && chunks > 1 && cost_ns > kAwakeNs) {
    int64_t now = now_ns(), last = impl_->last_use.exchange(now, std::memory_order_relaxed);
    pays = cost_ns > kAsleepNs || now - last < kStaysAwakeNs;
  }
  tbb::task_arena* arena = nullptr;
  try {
    if (pays && !callers_.call && !impl_->home.lost()) arena = impl_->take();
    if (!pays || (!callers_.call && !arena)) {
      void* own = scratch.get(bytes);
      for (int64_t c = 0; c < chunks; ++c) {
        if (stopped) return abi::kStopped;
        if (int32_t status = kernel(buffers, scalars, c, own)) return status;
      }
      return abi::kOk;
    }
    // The lowest failing chunk decides, whatever order they ran in.
    std::atomic<int64_t> failed{chunks};
    std::atomic<int32_t> status_of_lowest{abi::kOk};
    std::mutex mutex;
    const bool flush = FloatMode::flushes();
    auto task = [&](int64_t c) {
      if (c > failed.load(std::memory_order_relaxed)) return;
      FloatMode mode(flush);
      int32_t status = stopped ? abi::kStopped : kernel(buffers, scalars, c, scratch.get(bytes));
      if (status == abi::kOk) return;
      std::lock_guard lock(mutex);
      if (c < failed) {
        failed = c;
        status_of_lowest = status;
      }
    };
    if (callers_.call) {
      std::atomic<int64_t> begun{0};
      auto counted = [&](int64_t c) {
        begun.fetch_add(1, std::memory_order_relaxed);
        task(c);
      };
      auto f = [](void* argument, int64_t c) { (*static_cast<decltype(counted)*>(argument))(c); };
      callers_.call(callers_.context, chunks, f, &counted);
      return begun == chunks ? status_of_lowest.load() : abi::kFailed;
    }
    impl_->home.settle();
    arena->execute([&] { tbb::this_task_arena::isolate([&] { tbb::parallel_for(int64_t{0}, chunks, task); }); });
    impl_->give(arena);
    impl_->last_use.store(now_ns(), std::memory_order_relaxed);
    return status_of_lowest;
  } catch (...) {
    if (arena) impl_->give(arena);
    return abi::kFailed;  // scratch could not be had
  }
}

int32_t parallel_for(abi::Context* context, abi::Kernel kernel, void* const* buffers, const int64_t* scalars,
                     int64_t chunks, int64_t scratch_bytes, int64_t cost_ns) noexcept {
  ThreadPool& pool = *static_cast<RunState*>(context->runtime)->pool;
  return pool.run(kernel, buffers, scalars, chunks, scratch_bytes, cost_ns, context->stop);
}

}  // namespace hlojit

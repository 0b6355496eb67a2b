// See parallel.h.
#include "runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/float_mode.h"
#include "runtime/fork.h"
#include "runtime/grant_threads.h"
#include "runtime/pool.h"
#include "runtime/run_state.h"
#include "runtime/team.h"

namespace hlojit {
namespace {

// Waking a worker that sleeps costs 20-45 us, one that still spins 0.3; a region must be worth it. Regions that follow
// each other closely wake it once for all: the second of them does, whether the first was worth it alone or not.
constexpr int64_t kAwakeNs = 2'500;
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

// Each caller at a time has a team of its own; the scheduler's threads go where there is work. Callers beyond the
// thread count run alone.
struct ThreadPool::Impl {
  const int threads;
  std::atomic<int64_t> last_use{0};
  ThreadHome home;

  explicit Impl(int threads) : threads(threads) {}

  /// None if all are taken, or there is no memory for another.
  Team* take() noexcept try {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      if (std::ssize(teams_) >= threads) return nullptr;
      idle_.push_back(teams_.emplace_back(std::make_unique<Team>(threads)).get());
    }
    Team* team = idle_.back();
    idle_.pop_back();
    return team;
  } catch (...) {
    return nullptr;
  }
  void give(Team* team) {
    std::lock_guard lock(mutex_);
    idle_.push_back(team);  // has room: it was there
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Team>> teams_;
  std::vector<Team*> idle_;
};

int cores() {
  static const int known = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return known;
}

ThreadPool::ThreadPool(int threads) : threads_(grant_threads(threads)), impl_(std::make_unique<Impl>(threads_)) {}
ThreadPool::ThreadPool(int threads, ParallelFor callers)
    : threads_(threads), callers_(callers), impl_(std::make_unique<Impl>(threads)) {}
ThreadPool::~ThreadPool() = default;

std::shared_ptr<ThreadPool> ThreadPool::get(int threads, const ParallelFor& callers) {
  static std::mutex mutex;
  static auto* pools = new std::map<int, std::shared_ptr<ThreadPool>>;  // outlives static destruction
  if (threads <= 0) threads = cores();
  if (callers.call) return std::make_shared<ThreadPool>(threads, callers);
  std::lock_guard lock(mutex);
  auto& p = (*pools)[threads];
  if (!p) p = std::make_shared<ThreadPool>(threads);
  return p;
}

namespace {

// One region: what its chunks share.
class Region {
 public:
  Region(abi::Kernel kernel, void* const* buffers, const int64_t* scalars, int64_t chunks, size_t scratch_bytes,
         const bool* stop)
      : kernel_(kernel),
        buffers_(buffers),
        scalars_(scalars),
        scratch_bytes_(scratch_bytes),
        stop_(stop),
        failed_(chunks) {}

  /// On whichever thread. Chunks behind one that failed are left out. (The mode is set once for all of them: 4,099
  /// products of 13x13, a chunk each, took 260 us instead of 150.)
  void work(int64_t first, int64_t last) noexcept {
    FloatMode mode(flush_);
    for (int64_t c = first; c < last && c <= failed_.load(std::memory_order_relaxed); ++c) {
      if (const int32_t status = status_of(c); status != abi::kOk) fail(c, status);
    }
  }
  /// In order on this one.
  int32_t run_alone(int64_t chunks) noexcept {
    for (int64_t c = 0; c < chunks; ++c) {
      if (const int32_t status = status_of(c)) return status;
    }
    return abi::kOk;
  }
  /// The lowest failing chunk decides, whatever order they ran in.
  int32_t status() const { return status_; }

  static void work_on(void* region, int64_t first, int64_t last) noexcept {
    static_cast<Region*>(region)->work(first, last);
  }

 private:
  int32_t status_of(int64_t chunk) noexcept {
    if (*stop_) return abi::kStopped;
    try {
      return kernel_(buffers_, scalars_, chunk, scratch.get(scratch_bytes_));
    } catch (...) {
      return abi::kFailed;  // scratch could not be had
    }
  }
  void fail(int64_t chunk, int32_t status) {
    std::lock_guard lock(mutex_);
    if (chunk >= failed_) return;
    failed_ = chunk;
    status_ = status;
  }

  const abi::Kernel kernel_;
  void* const* const buffers_;
  const int64_t* const scalars_;
  const size_t scratch_bytes_;
  const volatile bool* const stop_;  // set by another thread
  const bool flush_ = FloatMode::flushes();
  std::atomic<int64_t> failed_;
  int32_t status_ = abi::kOk;
  std::mutex mutex_;
};

int32_t on_threads_of(const ParallelFor& callers, Region& region, int64_t chunks) noexcept {
  struct Counted {
    Region& region;
    std::atomic<int64_t> begun{0};
  } counted{region};
  auto work = [](void* argument, int64_t c) {
    auto& own = *static_cast<Counted*>(argument);
    own.begun.fetch_add(1, std::memory_order_relaxed);
    own.region.work(c, c + 1);
  };
  try {
    callers.call(callers.context, chunks, work, &counted);
  } catch (...) {
    return abi::kFailed;
  }
  return counted.begun == chunks ? region.status() : abi::kFailed;
}

}  // namespace

int32_t ThreadPool::run(abi::Kernel kernel, void* const* buffers, const int64_t* scalars, int64_t chunks,
                        int64_t scratch_bytes, int64_t cost_ns, const bool* stop) noexcept {
  Region region(kernel, buffers, scalars, chunks, static_cast<size_t>(scratch_bytes), stop);
  if (threads_ == 1 || chunks == 1 || cost_ns <= kAwakeNs) return region.run_alone(chunks);
  // The time between regions counts, not how long one took for which nobody was woken.
  const bool pays = cost_ns > kAsleepNs || now_ns() - impl_->last_use.load(std::memory_order_relaxed) < kStaysAwakeNs;
  Team* team = pays && !callers_.call && !impl_->home.lost() ? impl_->take() : nullptr;
  int32_t status = abi::kOk;
  if (pays && callers_.call) {
    status = on_threads_of(callers_, region, chunks);
  } else if (team) {
    impl_->home.settle();
    team->call();
    team->run(chunks, cost_ns, Region::work_on, &region);
    impl_->give(team);
    status = region.status();
  } else {
    status = region.run_alone(chunks);
  }
  impl_->last_use.store(now_ns(), std::memory_order_relaxed);
  return status;
}

int32_t parallel_for(abi::Context* context, abi::Kernel kernel, void* const* buffers, const int64_t* scalars,
                     int64_t chunks, int64_t scratch_bytes, int64_t cost_ns) noexcept {
  ThreadPool& pool = *static_cast<RunState*>(context->runtime)->pool;
  return pool.run(kernel, buffers, scalars, chunks, scratch_bytes, cost_ns, context->stop);
}

}  // namespace hlojit

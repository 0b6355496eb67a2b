// Helpers that stay awake between parallel regions. A program is a row of kernels of some microseconds each: to hand
// one to oneTBB's scheduler and to learn of its end takes two. So the scheduler's threads are kept at hand instead: a
// helper is one of its tasks, looks for chunks of the region that is open, and goes home when for a while there was
// none.
#pragma once

#include <tbb/task_arena.h>

#include <atomic>
#include <cstdint>

namespace hlojit {

/// Of one caller at a time.
class Team {
 public:
  /// Work on a chunk.
  using Task = void (*)(void* context, int64_t chunk) noexcept;

  /// `threads`: the caller's among them.
  explicit Team(int threads);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Whether a helper is there.
  bool awake() const { return here_.load(std::memory_order_relaxed) > 0; }
  /// Calls those that are not; does not wait for them.
  void call() noexcept;
  /// task(context, c) for c in [0, chunks), by the caller from the first on and by whoever helps from the last.
  void run(int64_t chunks, Task task, void* context) noexcept;

 private:
  void help();
  /// Takes a group of chunks of the region that is open, and works on it. False if there is none.
  bool take(bool last);

  const int helpers_;
  tbb::task_arena arena_;
  std::atomic<int> called_{0}, here_{0};

  // What is left of the region: its number, its first group, the one behind its last. Whoever changes this word from
  // what he saw has read the region's own task below: the next one is written when all groups are done only, and its
  // word is another.
  alignas(64) std::atomic<uint64_t> left_{0};
  std::atomic<int64_t> chunks_{0}, groups_{0};
  std::atomic<Task> task_{nullptr};
  std::atomic<void*> context_{nullptr};
  alignas(64) std::atomic<int64_t> done_{0};
};

}  // namespace hlojit

// Helpers that stay awake between parallel regions. A program is a row of kernels of some microseconds each: to hand
// one to oneTBB's scheduler and to learn of its end takes two. So the scheduler's threads are kept at hand instead: a
// helper is one of its tasks, looks for chunks of the region that is open, and goes home when for a while there was
// none.
#pragma once

#include <tbb/task_arena.h>

#include <cstdint>
#include <memory>

namespace hlojit {

/// Of one caller at a time.
class Team {
 public:
  /// Work on the chunks from the first up to the last.
  using Task = void (*)(void* context, int64_t first, int64_t last) noexcept;

  /// `threads`: the caller's among them.
  explicit Team(int threads);

  /// Whether a helper is there.
  bool awake() const;
  /// Calls those that are not; does not wait for them.
  void call() noexcept;
  /// All of [0, chunks), by the caller from the first on and by whoever helps from the last.
  /// `cost_ns`: of all together. Of chunks that take less than it does to get one, several are taken at once.
  void run(int64_t chunks, int64_t cost_ns, Task task, void* context) noexcept;

 private:
  struct Board;

  const int helpers_;
  tbb::task_arena arena_;
  std::shared_ptr<Board> board_;  // a helper's, too: it may go home when the team is no more
};

}  // namespace hlojit

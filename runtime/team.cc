// See team.h.
#include "runtime/team.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "runtime/grant_threads.h"

namespace hlojit {
namespace {

// The word of what is left: 24 bits of the region's number, 20 of each end.
constexpr int kEndBits = 20;
constexpr uint64_t kEnd = (uint64_t{1} << kEndBits) - 1;
constexpr int64_t kMostGroups = kEnd;

struct Left {
  uint64_t number, first, last;
  explicit Left(uint64_t word) : number(word >> 2 * kEndBits), first(word >> kEndBits & kEnd), last(word & kEnd) {}
  uint64_t word() const { return number << 2 * kEndBits | first << kEndBits | last; }
};

// How long a helper looks for work: TBB's workers do about as long.
constexpr auto kStays = std::chrono::microseconds(100);
// Between two looks at the clock; whoever waited so long lets others have the core.
constexpr int kSpins = 256;

/// Waits a moment; true each time that a while has passed.
class Moments {
 public:
  bool wait() {
    _mm_pause();
    if (++count_ % kSpins != 0) return false;
    if (count_ > kSpins) sched_yield();
    return true;
  }
  void reset() { count_ = 0; }

 private:
  int count_ = 0;
};

}  // namespace

Team::Team(int threads) : helpers_(threads - 1), arena_(working_threads(threads)) {}

void Team::call() noexcept try {
  while (called_.load(std::memory_order_relaxed) < helpers_) {
    arena_.enqueue([this] { help(); });
    called_.fetch_add(1, std::memory_order_relaxed);
  }
} catch (...) {  // no memory: the caller works alone
}

void Team::help() {
  using Clock = std::chrono::steady_clock;
  here_.fetch_add(1, std::memory_order_relaxed);
  Moments moments;
  for (auto since = Clock::now();;) {
    if (take(true)) {
      moments.reset();
      since = Clock::now();
    } else if (moments.wait() && Clock::now() - since >= kStays) {
      break;
    }
  }
  here_.fetch_sub(1, std::memory_order_relaxed);
  called_.fetch_sub(1, std::memory_order_relaxed);
}

bool Team::take(bool last) {
  uint64_t seen = left_.load(std::memory_order_acquire);
  for (;;) {
    Left left(seen);
    if (left.first >= left.last) return false;
    const Task task = task_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    const int64_t chunks = chunks_.load(std::memory_order_relaxed), groups = groups_.load(std::memory_order_relaxed);
    const auto group = static_cast<int64_t>(last ? --left.last : left.first++);
    if (!left_.compare_exchange_weak(seen, left.word(), std::memory_order_acquire)) continue;
    for (int64_t c = group * chunks / groups; c < (group + 1) * chunks / groups; ++c) task(context, c);
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }
}

void Team::run(int64_t chunks, Task task, void* context) noexcept {
  const int64_t groups = std::min(chunks, kMostGroups);
  chunks_.store(chunks, std::memory_order_relaxed);
  groups_.store(groups, std::memory_order_relaxed);
  task_.store(task, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  Left left(left_.load(std::memory_order_relaxed));
  ++left.number;
  left.first = 0;
  left.last = static_cast<uint64_t>(groups);
  left_.store(left.word(), std::memory_order_release);
  while (take(false)) {
  }
  Moments moments;
  while (done_.load(std::memory_order_acquire) != groups) moments.wait();
}

}  // namespace hlojit

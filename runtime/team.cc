// See team.h.
#include "runtime/team.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "codegen/cores.h"
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

// A group takes some 0.1 us to get, and that many a thread balance. (4,096 products of 16x16, a chunk each: 510 us one
// by one, 224 so.)
constexpr int64_t kGroupNs = 2'000, kLeast = 4;

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

// What caller and helpers see of each other.
struct Team::Board {
  std::atomic<int> called{0}, here{0};
  std::atomic<int> core{-1};  ///< that the caller was on when he opened the region

  // What is left of the region: its number, its first group, the one behind its last. Whoever changes this word from
  // what he saw has read the region's own task below: the next one is written when all groups are done only, and its
  // word is another.
  alignas(64) std::atomic<uint64_t> left{0};
  std::atomic<int64_t> chunks{0}, groups{0};
  std::atomic<Task> task{nullptr};
  std::atomic<void*> context{nullptr};
  alignas(64) std::atomic<int64_t> done{0};

  void help();
  /// Takes a group of chunks of the region that is open, and works on it. False if there is none.
  bool take(bool last);
};

void Team::Board::help() {
  using Clock = std::chrono::steady_clock;
  here.fetch_add(1, std::memory_order_relaxed);
  Moments moments;
  for (auto since = Clock::now();;) {
    if (take(true)) {
      moments.reset();
      since = Clock::now();
    } else if (moments.wait()) {
      if (Clock::now() - since >= kStays) break;
      // There it would only take turns with him.
      const int callers = core.load(std::memory_order_relaxed);
      if (codegen::this_core() == callers) codegen::leave_core(callers);
    }
  }
  here.fetch_sub(1, std::memory_order_relaxed);
  called.fetch_sub(1, std::memory_order_relaxed);
}

bool Team::Board::take(bool last) {
  uint64_t seen = left.load(std::memory_order_acquire);
  for (;;) {
    Left rest(seen);
    if (rest.first >= rest.last) return false;
    const Task work = task.load(std::memory_order_relaxed);
    void* const own = context.load(std::memory_order_relaxed);
    const int64_t n = chunks.load(std::memory_order_relaxed), parts = groups.load(std::memory_order_relaxed);
    const auto group = static_cast<int64_t>(last ? --rest.last : rest.first++);
    if (!left.compare_exchange_weak(seen, rest.word(), std::memory_order_acquire)) continue;
    work(own, group * n / parts, (group + 1) * n / parts);
    done.fetch_add(1, std::memory_order_release);
    return true;
  }
}

Team::Team(int threads) : helpers_(threads - 1), arena_(working_threads(threads)), board_(std::make_shared<Board>()) {}

bool Team::awake() const { return board_->here.load(std::memory_order_relaxed) > 0; }

void Team::call() noexcept try {
  while (board_->called.load(std::memory_order_relaxed) < helpers_) {
    arena_.enqueue([board = board_] { board->help(); });
    board_->called.fetch_add(1, std::memory_order_relaxed);
  }
} catch (...) {  // no memory: the caller works alone
}

void Team::run(int64_t chunks, int64_t cost_ns, Task task, void* context) noexcept {
  Board& b = *board_;
  const int64_t worth = std::max<int64_t>(cost_ns / kGroupNs, kLeast * (helpers_ + 1));
  const int64_t groups = std::min({chunks, worth, kMostGroups});
  b.chunks.store(chunks, std::memory_order_relaxed);
  b.groups.store(groups, std::memory_order_relaxed);
  b.task.store(task, std::memory_order_relaxed);
  b.context.store(context, std::memory_order_relaxed);
  b.done.store(0, std::memory_order_relaxed);
  b.core.store(codegen::this_core(), std::memory_order_relaxed);
  Left all(b.left.load(std::memory_order_relaxed));
  ++all.number;
  all.first = 0;
  all.last = static_cast<uint64_t>(groups);
  b.left.store(all.word(), std::memory_order_release);
  while (b.take(false)) {
  }
  Moments moments;
  while (b.done.load(std::memory_order_acquire) != groups) moments.wait();
}

}  // namespace hlojit

// When a region is handed out: by its price, and by how long ago the one before it ended.
#include "runtime/parallel.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>

namespace hlojit {
namespace {

struct Seen {
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> elsewhere{0};

  /// Much longer than it is priced.
  static int32_t chunk(void* const* buffers, const int64_t*, int64_t, void*) noexcept {
    auto& seen = *static_cast<Seen*>(buffers[0]);
    if (std::this_thread::get_id() != seen.caller) ++seen.elsewhere;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    return abi::kOk;
  }
};

TEST_CASE("regions that follow each other closely are handed out, however long each takes") {
  constexpr int64_t kCheap = 40'000;  // nanoseconds: not worth waking anybody for
  if (cores() < 2) return;            // there is nobody else
  ThreadPool pool(2);
  Seen seen;
  void* self = &seen;
  for (int k = 0; k < 100 && seen.elsewhere == 0; ++k) {
    REQUIRE(pool.run(Seen::chunk, &self, nullptr, 4, 0, kCheap) == abi::kOk);
  }
  CHECK(seen.elsewhere > 0);
}

TEST_CASE("so are regions on the caller's own threads") {
  constexpr int64_t kCheap = 40'000;
  int64_t handed_out = 0;
  const ParallelFor callers{[](void* context, int64_t tasks, void (*work)(void*, int64_t), void* argument) {
                              ++*static_cast<int64_t*>(context);
                              for (int64_t t = 0; t < tasks; ++t) work(argument, t);
                            },
                            &handed_out};
  ThreadPool pool(2, callers);
  Seen seen;
  void* self = &seen;
  for (int k = 0; k < 100; ++k) REQUIRE(pool.run(Seen::chunk, &self, nullptr, 4, 0, kCheap) == abi::kOk);
  CHECK(handed_out > 60);  // each but the first, on a machine that stops nobody for long
}

}  // namespace
}  // namespace hlojit

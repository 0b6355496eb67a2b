// Helpers beside a caller: every chunk of every region is worked on, once, by the time that the region ends.
#include "runtime/team.h"

#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace hlojit {
namespace {

struct Counts {
  std::vector<int> of_chunk;  // each written by the one who works on the chunk
  explicit Counts(int64_t chunks) : of_chunk(static_cast<size_t>(chunks)) {}
  static void count(void* self, int64_t first, int64_t last) noexcept {
    for (int64_t c = first; c < last; ++c) ++static_cast<Counts*>(self)->of_chunk[static_cast<size_t>(c)];
  }
  bool once() const {
    for (int n : of_chunk) {
      if (n != 1) return false;
    }
    return true;
  }
};

bool run_once(Team& team, int64_t chunks, int64_t cost_ns = 1'000'000'000'000) {
  Counts counts(chunks);
  team.call();
  team.run(chunks, cost_ns, Counts::count, &counts);
  return counts.once();
}

TEST_CASE("each chunk once, region after region") {
  Team team(3);
  int wrong = 0;
  for (int64_t k = 0; k < 20'000; ++k) wrong += !run_once(team, 1 + k * 7 % 13);
  CHECK(wrong == 0);
}

TEST_CASE("more chunks than are told apart") {
  Team team(2);
  CHECK(run_once(team, (1 << 20) + 12'345));
  CHECK(run_once(team, 4'099, 1'000));
  CHECK(run_once(team, 0));
}

TEST_CASE("helpers go home and come back") {
  Team team(2);
  CHECK(run_once(team, 4));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (team.awake() && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(!team.awake());
  CHECK(run_once(team, 4));
}

}  // namespace
}  // namespace hlojit

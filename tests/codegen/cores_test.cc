// A thread that leaves a core runs on another, and may run on all that it could before.
#include "codegen/cores.h"

#include <doctest/doctest.h>
#include <sched.h>

namespace hlojit::codegen {
namespace {

TEST_CASE("a thread leaves its core") {
  cpu_set_t before, after;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const int core = this_core();
  REQUIRE(core >= 0);
  // Tried again where the system moves it back at once.
  bool left = false;
  for (int k = 0; k < 10 && !left; ++k) {
    leave_core(core);
    left = this_core() != core;
  }
  CHECK(left == (CPU_COUNT(&before) > 1));
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&before, &after));
}

TEST_CASE("a thread that may run on one core only stays") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const int core = this_core();
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  leave_core(core);
  CHECK(this_core() == core);
  leave_core(-1);
  leave_core(CPU_SETSIZE);
  CHECK(this_core() == core);
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace hlojit::codegen

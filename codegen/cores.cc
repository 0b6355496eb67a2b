// See cores.h.
#include "codegen/cores.h"

#include <sched.h>

namespace hlojit::codegen {

int this_core() noexcept { return sched_getcpu(); }

void leave_core(int core) noexcept {
  cpu_set_t may;
  if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof may, &may) != 0) return;
  cpu_set_t others = may;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return;
  // The system has moved the caller when the first returns, and leaves him where he is when the second does.
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof may, &may);
}

}  // namespace hlojit::codegen

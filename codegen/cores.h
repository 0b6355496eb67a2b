// Where threads that work at the same time run. A thread that starts, or wakes, may do so on the core of the one that
// started or woke it, and stays until the system next balances its cores: on virtual machines whose kernel packs what
// there is to do on few of them that takes seconds, in which two threads do what one would.
#pragma once

namespace hlojit::codegen {

/// The core that the caller is on; -1 if the system does not say. Some nanoseconds.
int this_core() noexcept;
/// Moves the caller from this core to another that he may run on, if there is one. Some microseconds.
void leave_core(int core) noexcept;

}  // namespace hlojit::codegen

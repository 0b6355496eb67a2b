// A forked process has its parent's memory and one thread of its own: what waits there for another of the parent's
// threads waits for ever. So whoever has threads remembers the process that they are in; in another it works on the
// caller's thread where that will do, and refuses where it will not.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace hlojit {

/// What is told where threads are lost.
extern const char* const kForkedOff;

/// getpid(), which the kernel is asked for once a process: it was a tenth of a microsecond of every call and region.
pid_t this_process();

/// The process that somebody's threads are in.
class ThreadHome {
 public:
  /// There are threads now, in this process.
  void settle() { process_.store(this_process(), std::memory_order_relaxed); }
  /// There are, but in the process that this one was forked off.
  bool lost() const {
    const pid_t process = process_.load(std::memory_order_relaxed);
    return process != 0 && process != this_process();
  }
  /// Throws Error(kFailed) if so.
  void require() const;

 private:
  std::atomic<pid_t> process_{0};
};

}  // namespace hlojit

// See fork.h.
#include "runtime/fork.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "layout/error.h"

namespace hlojit {
namespace {

/// In a page of its own, which the kernel leaves empty in whatever is forked off; null where it cannot.
std::atomic<pid_t>* kept_process() {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, size, MADV_WIPEONFORK) == 0) return new (page) std::atomic<pid_t>(0);
  munmap(page, size);
  return nullptr;
}

}  // namespace

const char* const kForkedOff =
    "this process was forked off one that had started to compute, and does not have its threads; start it by other "
    "means (multiprocessing: the start method \"spawn\"), or before the first computation";

pid_t this_process() {
  static std::atomic<pid_t>* const kept = kept_process();
  if (!kept) return getpid();
  pid_t process = kept->load(std::memory_order_relaxed);
  if (process == 0) kept->store(process = getpid(), std::memory_order_relaxed);
  return process;
}

void ThreadHome::require() const {
  if (lost()) throw Error(ErrorKind::kFailed, kForkedOff);
}

}  // namespace hlojit

// See grant_threads.h.
#include "runtime/grant_threads.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <tbb/global_control.h>

namespace hlojit {
namespace {

/// Threads besides the caller that exist at once if `wanted` are started.
int startable(int wanted) {
  std::mutex mutex;
  std::condition_variable done;
  bool over = false;
  std::vector<std::thread> threads;
  try {
    while (std::ssize(threads) < wanted) {
      threads.emplace_back([&] {
        std::unique_lock lock(mutex);
        done.wait(lock, [&] { return over; });
      });
    }
  } catch (const std::exception&) {  // no thread, or no memory for one
  }
  {
    std::lock_guard lock(mutex);
    over = true;
  }
  done.notify_all();
  for (std::thread& t : threads) t.join();
  return static_cast<int>(threads.size());
}

}  // namespace

int grant_threads(int wanted) {
  static std::mutex mutex;
  static int granted = 1;  // seen to work
  std::lock_guard lock(mutex);
  const int started = working_threads(wanted);
  if (started > granted) {
    if (startable(started) < started) return 1;  // with one to spare: somebody else may need it
    granted = started;
  }
  return wanted;
}

int working_threads(int threads) {
  const size_t allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return static_cast<int>(std::min(static_cast<size_t>(threads), allowed));
}

}  // namespace hlojit

// See grant_threads.h.
#include "runtime/grant_threads.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <tbb/global_control.h>
#include <tbb/info.h>

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
  static int allowed = tbb::info::default_concurrency();
  static tbb::global_control* control = nullptr;  // for the rest of the process
  std::lock_guard lock(mutex);
  if (wanted <= granted) return wanted;
  int had = 1 + startable(wanted - 1);
  bool is_short = had < wanted;
  if (is_short && had > 1) --had;  // somebody else may need one, too
  granted = had;
  if (had > allowed || is_short) {
    // Of several controls the smallest counts.
    delete control;
    control = new tbb::global_control(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(had));
    allowed = had;
  }
  return had;
}

}  // namespace hlojit

// See watch.h.
#include "tools/watch.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace hlojit::tools {

Watch::Watch(std::optional<double> limit, bool last_resort, bool shown) {
  shown = shown && isatty(STDERR_FILENO);
  if (limit || shown) thread_ = std::thread([=, this] { watch(limit, last_resort, shown); });
}

Watch::~Watch() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Watch::watch(std::optional<double> limit, bool last_resort, bool shown) {
  using Clock = std::chrono::steady_clock;
  constexpr double kQuiet = 1, kGrace = 1;  // seconds: before progress is shown, after the limit
  auto start = Clock::now();
  bool said = false;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(20), [&] { return over_; })) {
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (shown && seconds >= kQuiet) {
      std::fprintf(stderr, "\r%s, %.0f s ", what_.load(), seconds);
      said = true;
    }
    if (!limit || seconds < *limit) continue;
    stop_ = true;
    if (!last_resort || seconds < *limit + kGrace) continue;
    std::fprintf(stderr, "%shlojit: failed: not done in %g s (while %s)\n", said ? "\r\033[K" : "", *limit,
                 what_.load());
    std::fflush(stderr);
    _exit(6);
  }
  if (said) std::fputs("\r\033[K", stderr);
}

}  // namespace hlojit::tools

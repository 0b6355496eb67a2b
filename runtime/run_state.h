// What one call of native code knows beside its buffers (abi::Context::runtime).
#pragma once

#include <cstdint>
#include <string>

namespace hlojit {

class HostQueues;
class Meeting;
class ThreadPool;

inline constexpr bool kNeverStop = false;

struct RunState {
  ThreadPool* pool = nullptr;
  HostQueues* queues = nullptr;
  Meeting* meeting = nullptr;  ///< of the other devices; null among one
  int64_t device = 0;
  double wait_s = 60;
  const bool* stop = &kNeverStop;       ///< loops and parallel regions end once it is true
  std::string failure;                  ///< text of the first step that failed
  uint64_t random_counter[2] = {0, 0};  ///< of rng: the same in every run, another on every device
};

}  // namespace hlojit

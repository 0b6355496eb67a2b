// Threads for work that may wait for other such work: as many as are asked for at once, kept for the next time.
// Waking one that sleeps takes half of what starting one does on a free machine (40 us of 70), and far less than that
// on a busy one.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/fork.h"

namespace hlojit {

class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// Waits for what runs; may be called from one of its own threads, which then ends by itself.
  ~Workers();
  /// Begins `work` at once, whatever else runs. Throws std::system_error if no thread can be had, Error(kFailed) in a
  /// process forked off one that had threads here.
  void run(std::function<void()> work);
  /// work(k) for each k in [0, count) at the same time, a thread each, the caller's for 0; throws what the first to
  /// fail threw, once all are over. If a thread cannot be had, stop(why) is to end those that wait for it.
  void run_together(size_t count, const std::function<void(size_t)>& work,
                    const std::function<void(const std::string& why)>& stop);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    size_t idle = 0;
    bool stop = false;
    ThreadHome home;
    void loop();
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::vector<std::thread> threads_;  // grows under the state's mutex
};

}  // namespace hlojit

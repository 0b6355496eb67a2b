// A clock beside a verb: ends it at its time limit and, on a terminal, shows that it is still at work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace hlojit::tools {

class Watch {
 public:
  /// `limit`: seconds from now until stop() is set. With `last_resort` the process ends with code 6 if the
  /// verb has not noticed soon after (compiling is not interrupted). Shows what is being done on stderr if
  /// that is a terminal and `shown`.
  Watch(std::optional<double> limit, bool last_resort, bool shown);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const std::atomic<bool>* stop() const { return &stop_; }
  /// What is being done from now on, e.g. "compiling".
  void stage(const char* what) { what_ = what; }

 private:
  void watch(std::optional<double> limit, bool last_resort, bool shown);

  std::atomic<bool> stop_ = false;
  std::atomic<const char*> what_ = "reading";
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace hlojit::tools

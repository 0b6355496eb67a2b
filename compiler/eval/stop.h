// Ending an evaluation from outside: a flag that whoever evaluates sets for its thread, and that all long loops look
// at, wherever they stand.
#pragma once

#include <atomic>

namespace hlojit::eval {

/// While it lives, evaluations on this thread end with Error(kFailed) once another thread sets `stop`; null never does.
class Stoppable {
 public:
  explicit Stoppable(const std::atomic<bool>* stop);
  ~Stoppable();
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;

 private:
  const std::atomic<bool>* outer_;
};

/// To be called now and then: throws if this thread's evaluation is to end.
void check_stop();

}  // namespace hlojit::eval

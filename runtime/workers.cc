// See workers.h.
#include "runtime/workers.h"

namespace hlojit {

Workers::~Workers() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  for (std::thread& t : threads_) t.get_id() == std::this_thread::get_id() ? t.detach() : t.join();
}

void Workers::run(std::function<void()> work) {
  std::lock_guard lock(state_->mutex);
  if (state_->work.size() >= state_->idle) {
    threads_.emplace_back([state = state_] { state->loop(); });
  }
  state_->work.push_back(std::move(work));
  state_->changed.notify_one();
}

void Workers::State::loop() {
  std::unique_lock lock(mutex);
  for (;;) {
    ++idle;
    changed.wait(lock, [&] { return stop || !work.empty(); });
    --idle;
    if (work.empty()) return;
    std::function<void()> next = std::move(work.front());
    work.pop_front();
    lock.unlock();
    next();
    next = nullptr;  // may be the last to hold the Workers
    lock.lock();
  }
}

}  // namespace hlojit

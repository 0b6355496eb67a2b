// See workers.h.
#include "runtime/workers.h"

#include <system_error>
#include <utility>

#include "layout/error.h"

namespace hlojit {

Workers::~Workers() {
  if (state_->home.lost()) {
    // What threads that are not there hold cannot be taken apart.
    (void)new std::shared_ptr<State>(std::move(state_));
    (void)new std::vector<std::thread>(std::move(threads_));
    return;
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  for (std::thread& t : threads_) t.get_id() == std::this_thread::get_id() ? t.detach() : t.join();
}

void Workers::run(std::function<void()> work) {
  state_->home.require();
  std::lock_guard lock(state_->mutex);
  if (state_->work.size() >= state_->idle) {
    threads_.emplace_back([state = state_] { state->loop(); });
    state_->home.settle();
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

void Workers::run_together(size_t count, const std::function<void(size_t)>& work,
                           const std::function<void(const std::string& why)>& stop) {
  std::mutex mutex;
  std::condition_variable over;
  size_t under_way = 0;
  std::exception_ptr first;  // the others fail because of it
  auto failed = [&](std::exception_ptr e) {
    std::lock_guard lock(mutex);
    if (!first) first = std::move(e);
  };
  auto one = [&](size_t k) {
    try {
      work(k);
    } catch (...) {
      failed(std::current_exception());
    }
  };
  try {
    for (size_t k = 1; k < count; ++k) {
      {
        std::lock_guard lock(mutex);
        ++under_way;
      }
      try {
        run([&, k] {
          one(k);
          std::lock_guard lock(mutex);
          if (--under_way == 0) over.notify_one();
        });
      } catch (...) {
        std::lock_guard lock(mutex);
        --under_way;
        throw;
      }
    }
    one(0);
  } catch (const std::system_error& e) {
    stop(e.what());
    failed(std::make_exception_ptr(Error(ErrorKind::kFailed, std::string("no thread for a device: ") + e.what())));
  }
  std::unique_lock lock(mutex);
  over.wait(lock, [&] { return under_way == 0; });
  if (first) std::rethrow_exception(first);
}

}  // namespace hlojit

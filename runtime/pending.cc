// Calls on threads of their own. The thread holds what it writes to, and is joined by whoever holds it last;
// if that is the thread itself (a callback dropped the last copy), it ends unjoined.
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "hlojit/hlojit.h"

namespace hlojit {

struct PendingRun::Impl {
  // What the thread and the copies of the call share.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::optional<std::vector<Buffer>> results;
    std::exception_ptr error;
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  size_t result_count = 0;
  std::thread thread;

  ~Impl() {
    if (!thread.joinable()) return;
    thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
  }
};

bool PendingRun::ready() const {
  std::lock_guard lock(impl_->state->mutex);
  return impl_->state->done;
}

size_t PendingRun::result_count() const { return impl_->result_count; }

void PendingRun::wait() const {
  Impl::State& s = *impl_->state;
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] { return s.done; });
}

std::vector<Buffer> PendingRun::get() const {
  wait();
  Impl::State& s = *impl_->state;
  std::lock_guard lock(s.mutex);
  if (s.error) std::rethrow_exception(s.error);
  if (!s.results) throw Error(ErrorKind::kInput, "the results of this run have been taken already");
  std::vector<Buffer> results = std::move(*s.results);
  s.results.reset();
  return results;
}

PendingRun Executable::run_async(std::vector<Buffer> inputs, std::function<void()> done,
                                 const RunOptions& options) const {
  auto impl = std::make_shared<PendingRun::Impl>();
  impl->result_count = result_shapes().size();
  auto work = [code = *this, inputs = std::move(inputs), done = std::move(done), options,
               state = impl->state]() mutable {
    std::optional<std::vector<Buffer>> results;
    std::exception_ptr error;
    try {
      results = code.run(std::move(inputs), options);
    } catch (...) {
      error = std::current_exception();
    }
    {
      std::lock_guard lock(state->mutex);
      state->results = std::move(results);
      state->error = error;
      state->done = true;
    }
    state->changed.notify_all();
    if (done) done();
  };
  try {
    impl->thread = std::thread(std::move(work));
  } catch (const std::system_error& e) {
    throw Error(ErrorKind::kFailed, std::string("no thread can be had to run on: ") + e.what());
  }
  return PendingRun(std::move(impl));
}

}  // namespace hlojit

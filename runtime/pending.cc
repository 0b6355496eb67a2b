// Calls on the executable's own workers. Whoever holds a call last waits for its end; if that is the thread that it
// runs on (a callback dropped the last copy), there is nothing to wait for.
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "hlojit/hlojit.h"
#include "runtime/executable.h"

namespace hlojit {

struct PendingRun::Impl {
  // What the thread and the copies of the call share.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    bool over = false;  // and told
    std::thread::id runs_on = {};
    std::optional<std::vector<Buffer>> results;
    std::exception_ptr error;
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  size_t result_count = 0;
  bool begun = false;

  ~Impl() {
    std::unique_lock lock(state->mutex);
    if (!begun || state->runs_on == std::this_thread::get_id()) return;
    state->changed.wait(lock, [&] { return state->over; });
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
    {
      std::lock_guard lock(state->mutex);
      state->runs_on = std::this_thread::get_id();
    }
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
    done = nullptr;
    {
      Executable gone = std::move(code);
    }  // nothing of the call is left when its last holder goes on
    std::lock_guard lock(state->mutex);
    state->over = true;
    state->changed.notify_all();
  };
  try {
    impl_->workers.run(std::move(work));
    impl->begun = true;
  } catch (const std::system_error& e) {
    throw Error(ErrorKind::kFailed, std::string("no thread can be had to run on: ") + e.what());
  }
  return PendingRun(std::move(impl));
}

}  // namespace hlojit

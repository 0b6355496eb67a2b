// Calls on the executable's own workers. Whoever holds a call last waits for its end; if that is the thread that it
// runs on (a callback dropped the last copy), there is nothing to wait for. Buffers that promise a result hold the call
// too: nothing else would know where the result is.
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "hlojit/hlojit.h"
#include "runtime/executable.h"
#include "runtime/fork.h"

namespace hlojit {

struct PendingRun::Impl {
  // What the thread and the copies of the call share.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    bool over = false;  // and told
    std::thread::id runs_on = {};
    ThreadHome home;
    std::vector<Buffer> results;
    std::exception_ptr error;
    bool taken = false;  // the results
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  std::vector<std::shared_ptr<const Shape>> result_shapes;
  bool begun = false;

  static void take(State& s) {
    if (std::exchange(s.taken, true)) throw Error(ErrorKind::kInput, "the results of this run have been taken already");
  }

  ~Impl() {
    if (state->home.lost()) {
      (void)new std::shared_ptr<State>(std::move(state));  // what waits there cannot be taken apart
      return;
    }
    std::unique_lock lock(state->mutex);
    if (!begun || state->runs_on == std::this_thread::get_id()) return;
    state->changed.wait(lock, [&] { return state->over; });
  }
};

struct Buffer::Promise {
  std::shared_ptr<PendingRun::Impl> run;
  size_t number;  // of the result
};

bool PendingRun::ready() const {
  std::lock_guard lock(impl_->state->mutex);
  return impl_->state->done;
}

size_t PendingRun::result_count() const { return impl_->result_shapes.size(); }

void PendingRun::wait() const {
  Impl::State& s = *impl_->state;
  if (s.home.lost()) {
    if (s.done) return;
    s.home.require();
  }
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] { return s.done; });
}

std::vector<Buffer> PendingRun::get() const {
  wait();
  Impl::State& s = *impl_->state;
  std::lock_guard lock(s.mutex);
  if (s.error) std::rethrow_exception(s.error);
  Impl::take(s);
  return std::move(s.results);
}

std::vector<Buffer> PendingRun::results() const {
  std::lock_guard lock(impl_->state->mutex);
  Impl::take(*impl_->state);
  std::vector<Buffer> promises(result_count());
  for (size_t k = 0; k < promises.size(); ++k) {
    promises[k].shape_ = impl_->result_shapes[k];
    promises[k].promise_ = std::make_shared<Buffer::Promise>(impl_, k);
  }
  return promises;
}

bool Buffer::ready() const { return !promise_ || PendingRun(promise_->run).ready(); }

void Buffer::wait() const {
  if (promise_) kept();
}

const Buffer& Buffer::kept() const {
  PendingRun(promise_->run).wait();
  PendingRun::Impl::State& s = *promise_->run->state;
  if (s.error) std::rethrow_exception(s.error);
  return s.results[promise_->number];  // which only the last one to ask changes
}

void Buffer::keep() {
  if (!promise_) return;
  const Buffer& made = kept();
  *this = promise_.use_count() == 1 ? std::move(const_cast<Buffer&>(made)) : Buffer(made);
}

PendingRun Executable::run_async(std::vector<Buffer> inputs, std::function<void()> done,
                                 const RunOptions& options) const {
  auto impl = std::make_shared<PendingRun::Impl>();
  impl->result_shapes = impl_->result_shapes;
  auto work = [code = *this, inputs = std::move(inputs), done = std::move(done), options,
               state = impl->state]() mutable {
    std::vector<Buffer> results;
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
    impl->state->home.settle();
  } catch (const std::system_error& e) {
    throw Error(ErrorKind::kFailed, std::string("no thread can be had to run on: ") + e.what());
  }
  return PendingRun(std::move(impl));
}

}  // namespace hlojit

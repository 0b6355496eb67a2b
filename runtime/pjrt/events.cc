// Events, and the queues whose work they tell of.
#include <deque>

#include "runtime/fork.h"
#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

PJRT_Error* copy(const PJRT_Error* e) { return e ? new PJRT_Error(*e) : nullptr; }

PJRT_Error* Event_Destroy(PJRT_Event_Destroy_Args* a) {
  delete a->event;
  return nullptr;
}
PJRT_Error* Event_IsReady(PJRT_Event_IsReady_Args* a) {
  a->is_ready = a->event->completion->done();
  return nullptr;
}
PJRT_Error* Event_Error(PJRT_Event_Error_Args* a) {
  if (!a->event->completion->done()) {
    return new PJRT_Error{PJRT_Error_Code_FAILED_PRECONDITION, "the event is not ready"};
  }
  return copy(a->event->completion->error());
}
PJRT_Error* Event_Await(PJRT_Event_Await_Args* a) { return copy(a->event->completion->wait()); }
PJRT_Error* Event_OnReady(PJRT_Event_OnReady_Args* a) {
  return guard([&] {
    std::shared_ptr<Completion> completion = a->event->completion;
    completion->then([c = completion.get(), f = a->callback, arg = a->user_arg] { f(copy(c->error()), arg); });
  });
}

}  // namespace

const PJRT_Error* Completion::wait() const {
  if (!done()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done(); });
  }
  return error();
}

void Completion::finish(std::optional<PJRT_Error> error) {
  std::vector<std::function<void()>> waiting;
  {
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
    done_.store(true, std::memory_order_release);
    waiting.swap(waiting_);
    changed_.notify_all();
  }
  for (auto& f : waiting) f();
}

void Completion::then(std::function<void()> f) {
  if (!done()) {
    std::lock_guard lock(mutex_);
    if (!done()) {
      waiting_.push_back(std::move(f));
      return;
    }
  }
  f();
}

PJRT_Event* new_event(std::shared_ptr<Completion> completion) { return new PJRT_Event{std::move(completion)}; }

PJRT_Event* done_event() {
  static const std::shared_ptr<Completion> done = [] {
    auto c = std::make_shared<Completion>();
    c->finish();
    return c;
  }();
  return new_event(done);
}

struct Queue::Worker {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  std::atomic<int> pending{0};
  bool stop = false;
  std::thread thread;
  ThreadHome home;

  void loop();
};

Queue::Queue() : worker_(std::make_unique<Worker>()) {}

Queue::~Queue() {
  if (worker_->home.lost()) {
    (void)worker_.release();  // what a thread that is not there holds cannot be taken apart
    return;
  }
  {
    std::lock_guard lock(worker_->mutex);
    worker_->stop = true;
    worker_->changed.notify_all();
  }
  if (worker_->thread.joinable()) worker_->thread.join();
}

bool Queue::idle() const { return worker_->pending.load(std::memory_order_acquire) == 0; }

void Queue::add(std::function<void()> work) {
  Worker& w = *worker_;
  if (w.home.lost()) fail(PJRT_Error_Code_FAILED_PRECONDITION, std::string("hlojit: ") + kForkedOff);
  std::lock_guard lock(w.mutex);
  w.pending.fetch_add(1, std::memory_order_release);
  w.work.push_back(std::move(work));
  if (!w.thread.joinable()) {
    w.thread = std::thread([&w] { w.loop(); });
    w.home.settle();
  }
  w.changed.notify_one();
}

void Queue::Worker::loop() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return stop || !work.empty(); });
    if (work.empty()) return;
    std::function<void()> next = std::move(work.front());
    work.pop_front();
    lock.unlock();
    next();
    next = nullptr;
    lock.lock();
    pending.fetch_sub(1, std::memory_order_release);
  }
}

void add_event_functions(PJRT_Api& api) {
  HLOJIT_PJRT_SET(api, Event_Destroy);
  HLOJIT_PJRT_SET(api, Event_IsReady);
  HLOJIT_PJRT_SET(api, Event_Error);
  HLOJIT_PJRT_SET(api, Event_Await);
  HLOJIT_PJRT_SET(api, Event_OnReady);
}

}  // namespace hlojit::pjrt

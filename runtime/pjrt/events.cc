// Events, and the queues whose work they tell of.
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

Queue::~Queue() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Queue::add(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  pending_.fetch_add(1, std::memory_order_release);
  work_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  changed_.notify_one();
}

void Queue::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !work_.empty(); });
    if (work_.empty()) return;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    pending_.fetch_sub(1, std::memory_order_release);
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

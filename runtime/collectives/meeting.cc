// See meeting.h.
#include "runtime/collectives/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layout/error.h"

namespace hlojit {

template <class Done>
void Meeting::wait_until(std::unique_lock<std::mutex>& lock, const std::string& name, const Table& table,
                         const std::vector<int64_t>& group, const Done& done) {
  bool in_time = changed_.wait_for(lock, wait_, [&] { return done() || !failure_.empty(); });
  if (done()) return;
  if (in_time) throw Error(ErrorKind::kFailed, failure_);
  std::vector<int64_t> missing;
  for (size_t k = 0; k < group.size(); ++k) {
    if (!table.here[k]) missing.push_back(group[k]);
  }
  throw Error(ErrorKind::kFailed,
              fmt::format("{}: waited {} s for device {}", name, wait_.count(), fmt::join(missing, ", ")));
}

void Meeting::exchange(const void* place, const std::string& name, const std::vector<int64_t>& group, int64_t device,
                       void* const* buffers, const std::function<void(const Buffers&)>& read) {
  const size_t rank = static_cast<size_t>(std::ranges::find(group, device) - group.begin());
  const auto size = static_cast<int64_t>(group.size());
  std::unique_lock lock(mutex_);
  Table& t = tables_[{place, group.at(0)}];
  if (t.buffers.empty()) {
    t.buffers.resize(group.size());
    t.here.resize(group.size());
  }
  if (!failure_.empty()) throw Error(ErrorKind::kFailed, failure_);
  wait_until(lock, name, t, group, [&] { return !t.reading; });
  const int64_t round = t.round;
  t.buffers[rank] = buffers;
  t.here[rank] = true;
  if (++t.arrived == size) {
    t.reading = true;
    changed_.notify_all();
  } else {
    wait_until(lock, name, t, group, [&] { return t.reading || t.round != round; });
  }
  lock.unlock();
  read(t.buffers);  // nobody changes them before all have left
  lock.lock();
  if (++t.left == size) {
    t.arrived = t.left = 0;
    std::fill(t.here.begin(), t.here.end(), false);
    t.reading = false;
    ++t.round;
    changed_.notify_all();
  } else {
    wait_until(lock, name, t, group, [&] { return t.round != round; });
  }
}

void Meeting::fail(int64_t device, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = device < 0 ? why : fmt::format("device {} failed: {}", device, why);
  changed_.notify_all();
}

}  // namespace hlojit

// Where the threads of one run on several devices meet.
//
// A collective is an exchange: everyone arrives with the addresses of its buffers, reads from the
// others' what is his, and leaves when all have read. Who comes first makes no difference to what
// is read. Whoever waits longer than the run allows fails, and a device that fails takes the others
// with it: nobody hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace hlojit {

class Meeting {
 public:
  Meeting(int64_t devices, double wait_s) : devices_(devices), wait_(wait_s) {}

  int64_t devices() const { return devices_; }
  double wait_s() const { return wait_.count(); }

  using Buffers = std::vector<void* const*>;
  /// Meets the other devices of `group` at `place` (a collective of the program, named `name` in
  /// errors), calls read with everyone's buffers in the group's order, and returns when all have
  /// read. Throws Error(kFailed).
  void exchange(const void* place, const std::string& name, const std::vector<int64_t>& group, int64_t device,
                void* const* buffers, const std::function<void(const Buffers&)>& read);

  /// Device `device` has failed: all who wait or will wait fail with the reason.
  void fail(int64_t device, const std::string& why);

 private:
  // One place and group; rounds follow each other, and nobody enters one before all have left the
  // last.
  struct Table {
    Buffers buffers;
    std::vector<bool> here;
    int64_t arrived = 0, left = 0;
    int64_t round = 0;
    bool reading = false;
  };
  template <class Done>
  void wait_until(std::unique_lock<std::mutex>& lock, const std::string& name, const Table& table,
                  const std::vector<int64_t>& group, const Done& done);

  const int64_t devices_;
  const std::chrono::duration<double> wait_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<const void*, int64_t>, Table> tables_;
  std::string failure_;
};

}  // namespace hlojit

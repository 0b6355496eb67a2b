// Running a program on one device and on several: a thread a device, never a task of the pool,
// since devices wait for each other.
#include <fmt/format.h>

#include <exception>

#include "runtime/collectives/meeting.h"
#include "runtime/executable.h"
#include "runtime/run_state.h"

namespace hlojit {

struct DeviceRun::Impl {
  Executable executable;
  RunOptions options;
  Meeting meeting;
};

namespace {

// Native code reads a byte; an atomic bool is one.
const bool* stop_flag(const RunOptions& options) {
  static_assert(sizeof(std::atomic<bool>) == sizeof(bool));
  return options.stop ? reinterpret_cast<const bool*>(options.stop) : &kNeverStop;
}

}  // namespace

DeviceRun::DeviceRun(Executable executable, RunOptions options) {
  const int64_t devices = executable.replicas() * executable.partitions();
  const double wait_s = options.wait_s;
  impl_ = std::shared_ptr<Impl>(new Impl{std::move(executable), std::move(options), {devices, wait_s}});
}

std::vector<Buffer> DeviceRun::run(int64_t device, std::vector<Buffer> inputs) {
  Impl& m = *impl_;
  if (device < 0 || device >= m.meeting.devices()) {
    throw Error(ErrorKind::kInput, fmt::format("device {} of {}", device, m.meeting.devices()));
  }
  RunState state;
  state.queues = &m.options.queues;
  state.meeting = &m.meeting;
  state.device = device;
  state.wait_s = m.options.wait_s;
  state.stop = stop_flag(m.options);
  state.random_counter[1] = static_cast<uint64_t>(device);
  try {
    return Executable::call(*m.executable.impl_, std::move(inputs), state);
  } catch (const std::exception& e) {
    m.meeting.fail(device, e.what());
    throw;
  }
}

std::vector<Buffer> Executable::run(std::vector<Buffer> inputs) const {
  // Queues of its own would take a tiny program longer than itself; only steps ask for them.
  static const RunOptions none;
  const bool steps = impl_->steps.data() != nullptr;
  return steps ? run(std::move(inputs), RunOptions()) : run(std::move(inputs), none);
}

std::vector<Buffer> Executable::run(std::vector<Buffer> inputs, const RunOptions& options) const {
  if (const int64_t devices = replicas() * partitions(); devices != 1) {
    throw Error(ErrorKind::kInput, fmt::format("the program is compiled for {} devices, not one", devices));
  }
  HostQueues queues = options.queues;
  RunState state;
  state.queues = &queues;
  state.wait_s = options.wait_s;
  state.stop = stop_flag(options);
  return call(*impl_, std::move(inputs), state);
}

std::vector<std::vector<Buffer>> Executable::run_devices(std::vector<std::vector<Buffer>> inputs,
                                                         const RunOptions& options) const {
  const auto devices = static_cast<size_t>(replicas() * partitions());
  if (inputs.size() != 1 && inputs.size() != devices) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} sets of inputs for {} devices: one for each, or one for all", inputs.size(), devices));
  }
  inputs.resize(devices, inputs[0]);
  DeviceRun run(*this, options);
  std::vector<std::vector<Buffer>> results(devices);
  impl_->workers.run_together(
      devices, [&](size_t d) { results[d] = run.run(static_cast<int64_t>(d), std::move(inputs[d])); },
      [&](const std::string& why) { run.stop(why); });
  return results;
}

void DeviceRun::stop(const std::string& why) { impl_->meeting.fail(-1, why); }

}  // namespace hlojit

// The C interface's runs with options: on several devices, with host queues, such as can be stopped.
#include <utility>

#include "runtime/c_handles.h"

namespace {

using namespace hlojit::c;
using hlojit::Buffer;
using hlojit::Error;
using hlojit::ErrorKind;

hlojit::RunOptions to_options(const hlojit_run_options* given) {
  const hlojit_run_options c = take(given);
  hlojit::RunOptions o;
  if (c.queues) o.queues = c.queues->queues;
  if (c.stop) o.stop = &c.stop->stop;
  if (c.wait_s != 0) o.wait_s = c.wait_s;
  return o;
}

// One set a device, or one for all.
std::vector<std::vector<Buffer>> sets_of(const hlojit_executable& e, hlojit_buffer* const* inputs, size_t count) {
  const size_t leaves = e.parameters.size(),
               devices = static_cast<size_t>(e.executable.replicas() * e.executable.partitions());
  const size_t sets = count == leaves ? 1 : devices;
  if (count != sets * leaves) {
    throw Error(ErrorKind::kInput, std::to_string(count) + " inputs for " + std::to_string(devices) + " devices of " +
                                       std::to_string(leaves) + " each: give one set for each, or one for all");
  }
  std::vector<std::vector<Buffer>> out(sets);
  for (size_t k = 0; k < count; ++k) out[k / leaves].push_back(inputs[k]->buffer);
  return out;
}

}  // namespace

hlojit_error* hlojit_queues_make(hlojit_queues** out) {
  return guarded([&] { *out = new hlojit_queues; });
}
hlojit_error* hlojit_infeed_push(hlojit_queues* queues, int64_t device, const hlojit_buffer* leaf) {
  return guarded([&] { queues->queues.push_infeed(device, leaf->buffer); });
}
hlojit_error* hlojit_outfeed_pop(hlojit_queues* queues, int64_t device, double wait_s, hlojit_buffer** out) {
  return guarded([&] { *out = wrap(queues->queues.pop_outfeed(device, wait_s)); });
}
hlojit_error* hlojit_channel_send(hlojit_queues* queues, int64_t device, int64_t channel, const hlojit_buffer* leaf) {
  return guarded([&] { queues->queues.send(device, channel, leaf->buffer); });
}
hlojit_error* hlojit_channel_receive(hlojit_queues* queues, int64_t device, int64_t channel, double wait_s,
                                     hlojit_buffer** out) {
  return guarded([&] { *out = wrap(queues->queues.receive(device, channel, wait_s)); });
}
void hlojit_queues_free(hlojit_queues* queues) { delete queues; }

hlojit_error* hlojit_stop_make(hlojit_stop** out) {
  return guarded([&] { *out = new hlojit_stop; });
}
void hlojit_stop_set(hlojit_stop* stop) { stop->stop = true; }
void hlojit_stop_free(hlojit_stop* stop) { delete stop; }

hlojit_error* hlojit_execute_devices(const hlojit_executable* e, const hlojit_run_options* options,
                                     hlojit_buffer* const* inputs, size_t input_count, hlojit_buffer** outputs,
                                     size_t output_count) {
  return guarded([&] {
    const auto devices = static_cast<size_t>(e->executable.replicas() * e->executable.partitions());
    check_room(devices * e->results.size(), output_count);
    for (auto& results : e->executable.run_devices(sets_of(*e, inputs, input_count), to_options(options))) {
      give_results(std::move(results), outputs);
      outputs += e->results.size();
    }
  });
}

hlojit_error* hlojit_execute_async_with(const hlojit_executable* e, const hlojit_run_options* options,
                                        hlojit_buffer* const* inputs, const unsigned char* donate, size_t count,
                                        void (*done)(void*), void* context, hlojit_run** out) {
  return guarded([&] {
    std::function<void()> then;
    if (done) then = [done, context] { done(context); };
    *out = new hlojit_run{
        e->executable.run_async(take_inputs(inputs, donate, count), std::move(then), to_options(options))};
  });
}

hlojit_error* hlojit_device_run_make(const hlojit_executable* e, const hlojit_run_options* options,
                                     hlojit_device_run** out) {
  return guarded(
      [&] { *out = new hlojit_device_run{hlojit::DeviceRun(e->executable, to_options(options)), e->results.size()}; });
}
hlojit_error* hlojit_device_run_on(hlojit_device_run* run, int64_t device, hlojit_buffer* const* inputs, size_t count,
                                   hlojit_buffer** outputs, size_t output_count) {
  return guarded([&] {
    check_room(run->results, output_count);
    give_results(run->run.run(device, take_inputs(inputs, nullptr, count)), outputs);
  });
}
void hlojit_device_run_stop(hlojit_device_run* run, const char* why) { run->run.stop(why); }
void hlojit_device_run_free(hlojit_device_run* run) { delete run; }

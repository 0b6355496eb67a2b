// Running a program on its devices.
//
// The caller gets buffers at once; what fills them is a launch: the operands' Arrays, the results'
// Arrays, and the program. It runs here if it calls Python, or is brief and everything is there, else in the
// device's queue. What fails here fails the call itself, as on XLA:CPU: who calls a program that checks its
// operands (a callback that raises) is told so by the call, not by who first waits for a result. Donated operands are
// taken from their buffers before anything runs, so that one buffer cannot be donated twice, or read by the call that
// it is donated to.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

// A call, on all its devices: operands and results of the devices follow one another.
struct Launch {
  std::shared_ptr<Program> program;
  std::vector<std::shared_ptr<Array>> operands, results;
  std::vector<bool> donated;  // of one device
  std::vector<ffi::UserData> user_data;
  std::vector<int> devices;
  int64_t id = 0;
  std::shared_ptr<Completion> done;
};

std::vector<Buffer> inputs_of(Launch& launch, size_t device) {
  std::vector<Buffer> inputs;
  const size_t count = launch.program->parameters.size();
  for (size_t k = 0; k < count; ++k) {
    if (!launch.program->parameters[k].shape.is_array()) continue;
    std::shared_ptr<Array>& array = launch.operands[device * count + k];
    // Nobody else can come to hold an Array that no buffer names any more.
    if (launch.donated[k] && array.use_count() == 1 && !array->data.borrowed()) {
      inputs.push_back(std::move(array->data));
    } else {
      inputs.push_back(array->data);
    }
  }
  return inputs;
}

std::vector<Buffer> joined_inputs_of(const Launch& launch) {
  const Program& p = *launch.program;
  std::vector<Buffer> inputs;
  for (size_t k = 0; k < p.parameters.size(); ++k) {
    if (!p.parameters[k].shape.is_array()) continue;
    std::vector<Buffer> parts;
    for (size_t at = k; at < launch.operands.size(); at += p.parameters.size())
      parts.push_back(launch.operands[at]->data);
    inputs.push_back(join_shards(p.whole_parameters[k], p.parameter_shards[k], parts));
  }
  return inputs;
}

// f(k) for each result that is an array, beside its number among those.
template <class F>
void for_each_output(const Program& p, F f) {
  size_t next = 0;
  for (size_t k = 0; k < p.results.size(); ++k) {
    if (p.results[k].shape.is_array()) f(k, next++);
  }
}

void run_joint(Launch& launch) {
  const Program& p = *launch.program;
  ffi::Execution execution(launch.user_data, launch.devices[0], launch.id);
  std::vector<Buffer> outputs = p.code->run(joined_inputs_of(launch));
  for_each_output(p, [&](size_t k, size_t output) {
    for (size_t d = 0; d < launch.devices.size(); ++d) {
      launch.results[d * p.results.size() + k]->data = cut_shard(outputs[output], p.result_shards[k], d);
    }
  });
}

void run_each(Launch& launch) {
  const Program& p = *launch.program;
  auto give = [&](size_t device, std::vector<Buffer> outputs) {
    for_each_output(p, [&](size_t k, size_t output) {
      launch.results[device * p.results.size() + k]->data = std::move(outputs[output]);
    });
  };
  if (launch.devices.size() == 1) {
    ffi::Execution execution(launch.user_data, launch.devices[0], launch.id);
    return give(0, p.code->run(inputs_of(launch, 0)));
  }
  DeviceRun together(*p.code);
  auto on_device = [&](size_t d) {
    ffi::Execution execution(launch.user_data, launch.devices[d], launch.id);
    give(d, together.run(static_cast<int64_t>(d), inputs_of(launch, d)));
  };
  p.client->workers.run_together(launch.devices.size(), on_device, [&](const std::string& why) { together.stop(why); });
}

void run(Launch& launch) {
  std::optional<PJRT_Error> error;
  try {
    for (const auto& array : launch.operands) {
      if (const PJRT_Error* e = array->ready.wait()) throw PJRT_Error(*e);
    }
    launch.program->joint ? run_joint(launch) : run_each(launch);
  } catch (...) {
    error = current_error();
  }
  launch.operands.clear();
  for (auto& r : launch.results) r->ready.finish(error);
  launch.done->finish(std::move(error));
}

// Operands of one device, checked; donated ones are taken.
void take_operands(Launch& launch, PJRT_Buffer* const* arguments, size_t count, const PJRT_ExecuteOptions* options) {
  const Program& p = *launch.program;
  if (count != p.parameters.size()) {
    fail(PJRT_Error_Code_INVALID_ARGUMENT,
         fmt::format("hlojit: the program {} takes {} buffers, {} were given", p.name, p.parameters.size(), count));
  }
  launch.donated = p.donated;
  if (options) {
    for (size_t k = 0; k < options->num_non_donatable_input_indices; ++k) {
      auto index = static_cast<size_t>(options->non_donatable_input_indices[k]);
      if (index < count) launch.donated[index] = false;
    }
  }
  for (size_t k = 0; k < count; ++k) {
    const Shape& wanted = p.parameters[k].shape;
    const PJRT_Buffer& given = *arguments[k];
    // A token may be handed in as any buffer: it has no elements to read.
    if (wanted.is_array() && given.shape != wanted) {
      fail(PJRT_Error_Code_INVALID_ARGUMENT, fmt::format("hlojit: argument {} of {} is {}, the program takes {}", k,
                                                         p.name, given.shape.to_string(), wanted.to_string()));
    }
    if (!launch.donated[k]) continue;
    for (size_t j = 0; j < count; ++j) {
      if (j != k && arguments[j] == arguments[k]) {
        fail(PJRT_Error_Code_INVALID_ARGUMENT,
             fmt::format("hlojit: the buffer donated as argument {} of {} is also argument {}", k, p.name, j));
      }
    }
  }
  for (size_t k = 0; k < count; ++k) {
    std::shared_ptr<Array> array = arguments[k]->array();
    if (!array) {
      fail(PJRT_Error_Code_INVALID_ARGUMENT,
           fmt::format("hlojit: the buffer of argument {} of {} has been deleted or donated", k, p.name));
    }
    launch.operands.push_back(std::move(array));
  }
  for (size_t k = 0; k < count; ++k) {
    if (launch.donated[k]) arguments[k]->release();
  }
}

// Whether it is over.
bool start(std::shared_ptr<Launch> launch, Queue& queue) {
  // What a callback starts cannot wait until the callback is over: neither on the callback's thread nor on another.
  bool now = ffi::Execution::inside() || launch->program->calls_python;
  if (!now && launch->program->brief && queue.idle()) {
    now = std::all_of(launch->operands.begin(), launch->operands.end(), [](const auto& a) { return a->ready.done(); });
  }
  if (now) {
    run(*launch);
  } else {
    queue.add([launch = std::move(launch)] { run(*launch); });
  }
  return now;
}

PJRT_Error* LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args* a) {
  return guard([&] {
    PJRT_LoadedExecutable& e = *a->executable;
    if (e.deleted) fail(PJRT_Error_Code_INVALID_ARGUMENT, "hlojit: the executable has been deleted");
    if (a->options && (a->options->num_send_ops > 0 || a->options->num_recv_ops > 0)) {
      fail(PJRT_Error_Code_UNIMPLEMENTED, "hlojit: send and recv callbacks are not supported");
    }
    std::vector<PJRT_Device*> devices = a->execute_device ? std::vector<PJRT_Device*>{a->execute_device} : e.devices;
    if (devices.size() != a->num_devices) {
      fail(PJRT_Error_Code_INVALID_ARGUMENT,
           fmt::format("hlojit: the program runs on {} devices, arguments of {} were given", devices.size(),
                       a->num_devices));
    }
    static std::atomic<int64_t> next_id{1};
    const Program& program = *e.program;
    auto launch = std::make_shared<Launch>();
    launch->program = e.program;
    launch->done = std::make_shared<Completion>();
    launch->id = next_id.fetch_add(1);
    if (a->options && a->options->context) launch->user_data = a->options->context->user_data;
    for (size_t d = 0; d < devices.size(); ++d) {
      launch->devices.push_back(devices[d]->description.id);
      take_operands(*launch, a->num_args > 0 ? a->argument_lists[d] : nullptr, a->num_args, a->options);
    }
    const size_t count = program.results.size();
    for (size_t k = 0; k < devices.size() * count; ++k) launch->results.push_back(std::make_shared<Array>());
    if (start(launch, devices[0]->queue)) {
      if (const PJRT_Error* e = launch->done->error()) throw PJRT_Error(*e);
    }
    for (size_t d = 0; d < devices.size(); ++d) {
      for (size_t k = 0; k < count; ++k) {
        a->output_lists[d][k] = new PJRT_Buffer(
            program.results[k].shape, &devices[d]->memory[program.result_memories[k]], launch->results[d * count + k]);
      }
      if (a->device_complete_events) a->device_complete_events[d] = new_event(launch->done);
    }
  });
}

PJRT_Error* ExecuteContext_Create(PJRT_ExecuteContext_Create_Args* a) {
  return guard([&] { a->context = new PJRT_ExecuteContext; });
}
PJRT_Error* ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args* a) {
  return guard([&] { delete a->context; });
}

}  // namespace

void add_execute_functions(PJRT_Api& api) {
  HLOJIT_PJRT_SET(api, LoadedExecutable_Execute);
  HLOJIT_PJRT_SET(api, ExecuteContext_Create);
  HLOJIT_PJRT_SET(api, ExecuteContext_Destroy);
}

}  // namespace hlojit::pjrt

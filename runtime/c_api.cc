// The C interface: handles around the public C++ types, errors as objects, no exception out.
#include "hlojit/hlojit_c.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "hlojit/custom_call.h"
#include "hlojit/hlojit.h"

struct hlojit_error {
  hlojit::Error error;
};
struct hlojit_module {
  hlojit::ModulePtr module;
  std::string text;  // made at once, so that asking needs no lock
};
struct hlojit_executable {
  hlojit::Executable executable;
  std::vector<std::string> parameters, results;
};
struct hlojit_buffer {
  hlojit::Buffer buffer;
  std::string shape;
};
struct hlojit_run {
  hlojit::PendingRun run;
};

namespace {

using hlojit::Error;
using hlojit::ErrorKind;

// Runs f; what it throws comes back as an error.
template <class F>
hlojit_error* guarded(F f) noexcept {
  try {
    f();
    return nullptr;
  } catch (const Error& e) {
    return new hlojit_error{e};
  } catch (const std::bad_alloc&) {
    return new hlojit_error{Error(ErrorKind::kFailed, "out of memory")};
  } catch (const std::exception& e) {
    return new hlojit_error{Error(ErrorKind::kFailed, e.what())};
  } catch (...) {
    return new hlojit_error{Error(ErrorKind::kFailed, "unknown error")};
  }
}

hlojit_buffer* wrap(hlojit::Buffer buffer) {
  std::string shape = buffer.shape().to_string();
  return new hlojit_buffer{std::move(buffer), std::move(shape)};
}

// The caller's struct, of which an older caller has less, as ours; the rest is zero.
template <class T>
T take(const T* given) {
  T out{};
  if (given) std::memcpy(&out, given, std::min(given->struct_size, sizeof out));
  return out;
}
// And back: writes no more than the caller has.
template <class T>
void give(const T& value, T* out) {
  size_t size = out->struct_size;
  std::memcpy(out, &value, std::min(size, sizeof value));
  out->struct_size = size;
}

hlojit::Options to_options(const hlojit_options* given) {
  hlojit_options c = take(given);
  hlojit::Options o;
  o.threads = c.threads;
  o.strict = c.strict != 0;
  if (c.fast_compile) o.effort = 0;
  o.scatter_oob_window = c.scatter_oob_window != 0;
  if (c.isa) o.isa = c.isa;
  if (c.cache_dir) o.cache_dir = c.cache_dir;
  o.parallel_for = {c.parallel_for, c.parallel_context};
  o.memory_limit = c.memory_limit;
  return o;
}

std::vector<std::string> texts(const std::vector<hlojit::Shape>& shapes) {
  std::vector<std::string> out;
  for (const hlojit::Shape& s : shapes) out.push_back(s.to_string());
  return out;
}

hlojit_executable* wrap(hlojit::Executable e) {
  std::vector<std::string> parameters = texts(e.parameter_shapes()), results = texts(e.result_shapes());
  return new hlojit_executable{std::move(e), std::move(parameters), std::move(results)};
}

// The inputs of a run; donated ones are taken from their handles.
std::vector<hlojit::Buffer> take_inputs(hlojit_buffer* const* inputs, const unsigned char* donate, size_t count) {
  std::vector<hlojit::Buffer> in;
  for (size_t k = 0; k < count; ++k) {
    bool gives = donate && donate[k];
    if (gives && std::count(inputs, inputs + count, inputs[k]) > 1)
      throw Error(ErrorKind::kInput, "a donated buffer is given twice");
    in.push_back(gives ? std::exchange(inputs[k]->buffer, {}) : inputs[k]->buffer);
  }
  return in;
}

void check_room(size_t results, size_t room) {
  if (results == room) return;
  throw Error(ErrorKind::kInput,
              "the program has " + std::to_string(results) + " results, there is room for " + std::to_string(room));
}

void give_results(std::vector<hlojit::Buffer> results, hlojit_buffer** outputs) {
  for (size_t k = 0; k < results.size(); ++k) outputs[k] = wrap(std::move(results[k]));
}

hlojit_error* execute(const hlojit_executable* e, hlojit_buffer* const* inputs, const unsigned char* donate,
                      size_t count, hlojit_buffer** outputs, size_t output_count) {
  return guarded([&] {
    check_room(e->results.size(), output_count);
    give_results(e->executable.run(take_inputs(inputs, donate, count)), outputs);
  });
}

}  // namespace

const char* hlojit_version(void) {
  static const std::string version = hlojit::version();
  return version.c_str();
}
int hlojit_abi_version(void) { return HLOJIT_ABI_VERSION; }

int hlojit_error_get_kind(const hlojit_error* error) { return static_cast<int>(error->error.kind()); }
const char* hlojit_error_message(const hlojit_error* error) { return error->error.what(); }
size_t hlojit_error_count(const hlojit_error* error) { return error->error.diagnostics().size(); }
int hlojit_error_get(const hlojit_error* error, size_t index, hlojit_diagnostic* out) {
  if (index >= error->error.diagnostics().size()) return 0;
  const hlojit::Diagnostic& d = error->error.diagnostics()[index];
  give({0, d.location.line, d.location.column, d.instruction.c_str(), d.rule.c_str(), d.message.c_str(),
        d.details.c_str()},
       out);
  return 1;
}
void hlojit_error_free(hlojit_error* error) { delete error; }

hlojit_error* hlojit_parse(const char* text, size_t size, hlojit_module** out) {
  return guarded([&] {
    hlojit::ModulePtr module = hlojit::parse({text, size});
    std::string printed = hlojit::to_text(module);
    *out = new hlojit_module{std::move(module), std::move(printed)};
  });
}
hlojit_error* hlojit_verify(const hlojit_module* module) {
  return guarded([&] { hlojit::verify(module->module); });
}
const char* hlojit_module_text(hlojit_module* module) { return module->text.c_str(); }
void hlojit_module_free(hlojit_module* module) { delete module; }

hlojit_error* hlojit_compile(const hlojit_module* module, const hlojit_options* options, hlojit_executable** out) {
  return guarded([&] { *out = wrap(hlojit::compile(module->module, to_options(options))); });
}
hlojit_error* hlojit_serialize(const hlojit_executable* e, char** out, size_t* size) {
  return guarded([&] {
    std::string bytes = e->executable.serialize();
    *out = new char[bytes.size()];
    std::memcpy(*out, bytes.data(), bytes.size());
    *size = bytes.size();
  });
}
void hlojit_bytes_free(char* bytes) { delete[] bytes; }
hlojit_error* hlojit_load(const char* bytes, size_t size, const hlojit_options* options, hlojit_executable** out) {
  return guarded([&] { *out = wrap(hlojit::load({bytes, size}, to_options(options))); });
}
void hlojit_executable_free(hlojit_executable* executable) { delete executable; }
size_t hlojit_parameter_count(const hlojit_executable* e) { return e->parameters.size(); }
size_t hlojit_result_count(const hlojit_executable* e) { return e->results.size(); }
const char* hlojit_parameter_shape(const hlojit_executable* e, size_t k) {
  return k < e->parameters.size() ? e->parameters[k].c_str() : nullptr;
}
const char* hlojit_result_shape(const hlojit_executable* e, size_t k) {
  return k < e->results.size() ? e->results[k].c_str() : nullptr;
}
int64_t hlojit_result_donor(const hlojit_executable* e, size_t k) {
  return k < e->executable.donors().size() ? e->executable.donors()[k] : -1;
}
void hlojit_get_cost(const hlojit_executable* e, hlojit_cost* out) {
  const hlojit::Executable& x = e->executable;
  give({0, x.flops(), x.io_bytes_read(), x.io_bytes_written(), x.arena_bytes()}, out);
}
const char* hlojit_memory_report(const hlojit_executable* e) { return e->executable.memory_report().c_str(); }

hlojit_error* hlojit_buffer_borrow(const void* data, const char* shape, hlojit_buffer** out) {
  return guarded([&] { *out = wrap(hlojit::Buffer::borrow(data, hlojit::Shape::parse(shape))); });
}
hlojit_error* hlojit_buffer_allocate(const char* shape, hlojit_buffer** out) {
  return guarded([&] { *out = wrap(hlojit::Buffer::allocate(hlojit::Shape::parse(shape))); });
}
hlojit_error* hlojit_buffer_relayout(const hlojit_buffer* buffer, const char* shape, hlojit_buffer** out) {
  return guarded([&] { *out = wrap(buffer->buffer.to_layout(hlojit::Shape::parse(shape))); });
}
size_t hlojit_buffer_size(const hlojit_buffer* b) { return b->buffer.raw() ? b->buffer.size_bytes() : 0; }
const void* hlojit_buffer_data(const hlojit_buffer* b) { return b->buffer.raw(); }
void* hlojit_buffer_mutable_data(hlojit_buffer* b) {
  return b->buffer.raw() && !b->buffer.borrowed() ? b->buffer.mutable_raw() : nullptr;
}
const char* hlojit_buffer_shape(const hlojit_buffer* b) { return b->shape.c_str(); }
void hlojit_buffer_free(hlojit_buffer* b) { delete b; }

hlojit_error* hlojit_execute(const hlojit_executable* e, hlojit_buffer* const* inputs, size_t count,
                             hlojit_buffer** outputs, size_t output_count) {
  return execute(e, inputs, nullptr, count, outputs, output_count);
}
hlojit_error* hlojit_execute_donating(const hlojit_executable* e, hlojit_buffer* const* inputs,
                                      const unsigned char* donate, size_t count, hlojit_buffer** outputs,
                                      size_t output_count) {
  return execute(e, inputs, donate, count, outputs, output_count);
}

hlojit_error* hlojit_execute_async(const hlojit_executable* e, hlojit_buffer* const* inputs,
                                   const unsigned char* donate, size_t count, void (*done)(void*), void* context,
                                   hlojit_run** out) {
  return guarded([&] {
    std::function<void()> then;
    if (done) then = [done, context] { done(context); };
    *out = new hlojit_run{e->executable.run_async(take_inputs(inputs, donate, count), std::move(then))};
  });
}
int hlojit_run_ready(const hlojit_run* run) { return run->run.ready(); }
hlojit_error* hlojit_run_results(hlojit_run* run, hlojit_buffer** outputs, size_t output_count) {
  return guarded([&] {
    check_room(run->run.result_count(), output_count);
    give_results(run->run.get(), outputs);
  });
}
void hlojit_run_free(hlojit_run* run) { delete run; }

hlojit_error* hlojit_register_custom_call(const char* target, hlojit_custom_call function, void* context,
                                          void (*release)(void* context)) {
  return guarded([&] {
    if (!function) return hlojit::register_custom_call(target, {});
    // The name's, and that of every program that has found it.
    std::shared_ptr<void> owned(context, release ? release : [](void*) {});
    hlojit::register_custom_call(target, [=](const hlojit::CustomCallSite&) -> hlojit::CustomCallFunction {
      return [=](const hlojit::CustomCallRun& run) -> std::string {
        const char* wrong = function(owned.get(), run.operands.data(), run.results.data());
        return wrong ? wrong : "";
      };
    });
  });
}

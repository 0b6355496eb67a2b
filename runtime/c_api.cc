// The C interface, all but modules: handles around the public C++ types, errors as objects, no exception out.
#include <utility>

#include "hlojit/custom_call.h"
#include "runtime/c_handles.h"

namespace hlojit::c {

Options to_options(const hlojit_options* given) {
  hlojit_options c = take(given);
  Options o;
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

std::vector<std::string> texts(const std::vector<Shape>& shapes) {
  std::vector<std::string> out;
  for (const Shape& s : shapes) out.push_back(s.to_string());
  return out;
}

}  // namespace hlojit::c

namespace {

using namespace hlojit::c;
using hlojit::Error;
using hlojit::ErrorKind;

hlojit_buffer* wrap(hlojit::Buffer buffer) {
  std::string shape = buffer.shape().to_string();
  return new hlojit_buffer{std::move(buffer), std::move(shape)};
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

// The C interface: compiling, buffers and runs. Handles around the public C++ types, errors as objects, no exception
// out.
#include <ranges>
#include <utility>

#include "runtime/c_handles.h"

namespace hlojit::c {
namespace {

// Separated by commas.
std::vector<std::string> names(std::string_view list) {
  std::vector<std::string> out;
  for (const auto& name : std::views::split(list, ',')) {
    if (!name.empty()) out.emplace_back(name.begin(), name.end());
  }
  return out;
}

}  // namespace

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
  o.replicas = c.replicas;
  o.partitions = c.partitions;
  if (c.dump_dir) o.dump_dir = c.dump_dir;
  if (c.disabled_passes) o.disabled_passes = names(c.disabled_passes);
  if (c.after_pass) {
    o.after_pass = [c](const std::string& pass, const std::string& hlo) {
      c.after_pass(c.after_pass_context, pass.c_str(), hlo.c_str());
    };
  }
  o.keep_subnormals = c.keep_subnormals != 0;
  if (c.explain) o.explain = [c](const std::string& line) { c.explain(c.explain_context, line.c_str()); };
  return o;
}

std::vector<std::string> texts(const std::vector<Shape>& shapes) {
  std::vector<std::string> out;
  for (const Shape& s : shapes) out.push_back(s.to_string());
  return out;
}

hlojit_buffer* wrap(Buffer buffer) {
  std::string shape = buffer.shape().to_string();
  return new hlojit_buffer{std::move(buffer), std::move(shape)};
}

std::vector<Buffer> take_inputs(hlojit_buffer* const* inputs, const unsigned char* donate, size_t count) {
  std::vector<Buffer> in;
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

void give_results(std::vector<Buffer> results, hlojit_buffer** outputs) {
  for (size_t k = 0; k < results.size(); ++k) outputs[k] = wrap(std::move(results[k]));
}

void give_bytes(const std::string& bytes, char** out, size_t* size) {
  *out = new char[bytes.size()];
  std::memcpy(*out, bytes.data(), bytes.size());
  *size = bytes.size();
}

}  // namespace hlojit::c

namespace {

using namespace hlojit::c;
using hlojit::Error;
using hlojit::ErrorKind;

hlojit_executable* wrap(hlojit::Executable e) {
  std::vector<std::string> parameters = texts(e.parameter_shapes()), results = texts(e.result_shapes());
  return new hlojit_executable{std::move(e), std::move(parameters), std::move(results)};
}

// Null for a buffer that was donated, and for the result of a run that failed.
const void* memory(const hlojit::Buffer& buffer) {
  const void* found = nullptr;
  hlojit_error_free(guarded([&] { found = buffer.raw(); }));
  return found;
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
  return guarded([&] { give_bytes(e->executable.serialize(), out, size); });
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
int64_t hlojit_replicas(const hlojit_executable* e) { return e->executable.replicas(); }
int64_t hlojit_partitions(const hlojit_executable* e) { return e->executable.partitions(); }
int hlojit_get_kernel(const hlojit_executable* e, size_t index, hlojit_kernel* out) {
  const auto& all = e->executable.kernels();
  if (index >= all.size()) return 0;
  give({0, all[index].name.c_str(), all[index].kind.c_str()}, out);
  return 1;
}
int hlojit_get_phase(const hlojit_executable* e, size_t index, hlojit_phase* out) {
  const auto& all = e->executable.compile_times();
  if (index >= all.size()) return 0;
  give({0, all[index].name.c_str(), all[index].ms}, out);
  return 1;
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
size_t hlojit_buffer_size(const hlojit_buffer* b) { return memory(b->buffer) ? b->buffer.size_bytes() : 0; }
const void* hlojit_buffer_data(const hlojit_buffer* b) { return memory(b->buffer); }
void* hlojit_buffer_mutable_data(hlojit_buffer* b) {
  return memory(b->buffer) && !b->buffer.borrowed() ? b->buffer.mutable_raw() : nullptr;
}
const char* hlojit_buffer_shape(const hlojit_buffer* b) { return b->shape.c_str(); }
void hlojit_buffer_free(hlojit_buffer* b) { delete b; }
hlojit_error* hlojit_buffer_text(const hlojit_buffer* b, char** out, size_t* size) {
  return guarded([&] { give_bytes(hlojit::literal_text(b->buffer), out, size); });
}
int hlojit_buffer_ready(const hlojit_buffer* b) { return b->buffer.ready(); }
hlojit_error* hlojit_buffer_wait(const hlojit_buffer* b) {
  return guarded([&] { b->buffer.wait(); });
}
size_t hlojit_release_idle_memory(void) { return hlojit::release_idle_memory(); }

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
  return hlojit_execute_async_with(e, nullptr, inputs, donate, count, done, context, out);
}
int hlojit_run_ready(const hlojit_run* run) { return run->run.ready(); }
hlojit_error* hlojit_run_results(hlojit_run* run, hlojit_buffer** outputs, size_t output_count) {
  return guarded([&] {
    check_room(run->run.result_count(), output_count);
    give_results(run->run.get(), outputs);
  });
}
hlojit_error* hlojit_run_promises(hlojit_run* run, hlojit_buffer** outputs, size_t output_count) {
  return guarded([&] {
    check_room(run->run.result_count(), output_count);
    give_results(run->run.results(), outputs);
  });
}
void hlojit_run_free(hlojit_run* run) { delete run; }

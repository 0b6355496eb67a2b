// See executable.h. compile() joins the planned module, its code and its constants; call() is one run of it:
// buffers in, arena and Context made, entry called, buffers out.
#include "runtime/executable.h"

#include <atomic>
#include <optional>

#include <fmt/format.h>

#include "compiler/analysis/access.h"
#include "compiler/analysis/dataflow.h"
#include "compiler/plan/kernel.h"
#include "layout/index.h"
#include "layout/lists.h"
#include "runtime/bundle.h"
#include "runtime/dump.h"
#include "runtime/float_mode.h"
#include "runtime/guards.h"
#include "runtime/pool.h"

namespace hlojit {
namespace {

std::atomic<int64_t> entry_calls{0};

void append_leaves(const Shape& shape, std::vector<Shape>& out) {
  for (const Shape* leaf : leaves(shape)) out.push_back(*leaf);
}

double contraction_flops(const Computation& c) {
  double n = 0;
  for (const auto& i : c.instructions()) {
    if (i->is(Opcode::kDot) || i->is(Opcode::kConvolution))
      n += 2 * static_cast<double>(i->shape.element_count()) * product<double>(reduction_sizes(*i));
    for (const Computation* callee : i->called) n += contraction_flops(*callee);
  }
  return n;
}

std::shared_ptr<void> constant_blob(const BufferPlan& plan) {
  std::shared_ptr<void> blob = pool_allocate(static_cast<size_t>(plan.constant_bytes));
  for (const BufferPlan::Constant& c : plan.constants) {
    const Literal& literal = *c.instruction->literal;
    Shape dense = Shape::array(literal.shape().type, literal.shape().dims);
    relayout(dense, literal.bytes().data(), c.instruction->shape, static_cast<char*>(blob.get()) + c.offset);
  }
  return blob;
}

void collect_kernels(const Computation& c, std::vector<KernelInfo>& out) {
  for (const auto& i : c.instructions()) {
    if (i->is(Opcode::kFusion)) {
      out.push_back({i->name, std::string(planned_kind(*i))});
      continue;
    }
    for (const Computation* callee : i->called) collect_kernels(*callee, out);
  }
}

// Where the header and the program differ in which dimensions are dynamic, the program is right.
void take_dynamic_dims(const Shape& of, std::vector<Shape>& to) {
  std::vector<const Shape*> own = leaves(of);
  for (size_t k = 0; k < own.size(); ++k) to[to.size() - own.size() + k].dynamic = own[k]->dynamic;
}

void check_memory(const Executable::Impl& m, int64_t constant_bytes, int64_t limit) {
  const int64_t bytes = m.arena_bytes + constant_bytes + static_cast<int64_t>(m.bytes_written);
  if (limit == 0 || bytes <= limit) return;
  Diagnostic d;
  d.message =
      fmt::format("a call takes {} bytes for temporaries, results and constants, the limit is {}", bytes, limit);
  d.details = m.memory_report;
  throw Error(ErrorKind::kFailed, std::vector{d});
}

}  // namespace

int64_t count_entries() { return entry_calls; }

std::vector<Shape> entry_parameter_leaves(const Module& module) {
  std::vector<Shape> all;
  for (size_t k = 0; k < module.entry()->parameters().size(); ++k) {
    append_leaves(module.parameter_shape(k), all);
    take_dynamic_dims(module.entry()->parameters()[k]->shape, all);
  }
  return all;
}

std::vector<Shape> entry_result_leaves(const Module& module) {
  std::vector<Shape> all;
  append_leaves(module.result_shape(), all);
  take_dynamic_dims(module.entry()->root()->shape, all);
  return all;
}

Executable compile(const ModulePtr& given, const Options& options) { return compile_with(given, options, nullptr); }

Executable compile_with(const ModulePtr& given, const Options& options, Bundle* bundle) {
  const Module& module = program(given);
  check_options(options);
  FloatMode mode;
  const codegen::Target& target = codegen::Target::get(options.isa);
  target.check_runs_here();
  std::optional<codegen::Preparation> preparation;
  // What is kept on disk may be all that is needed.
  if (compile_threads(options) > 1 && !bundle && options.cache_dir.empty()) preparation.emplace(target);
  Lowered l = plan(module, options, target);
  auto impl = std::make_shared<Executable::Impl>();
  impl->parameters = entry_parameter_leaves(module);
  impl->results = entry_result_leaves(module);
  impl->dynamic_parameters = dynamic_leaf_dims(impl->parameters);
  impl->dynamic_results = dynamic_leaf_dims(impl->results);
  for (const Shape& s : impl->results) {
    impl->result_bytes.push_back(physical_size(s));
    impl->result_shapes.push_back(std::make_shared<const Shape>(s));
  }
  impl->donor = donors(module);
  impl->flops = contraction_flops(*l.module->entry());
  for (const Shape& s : impl->parameters) impl->bytes_read += static_cast<double>(physical_size(s));
  for (int64_t n : impl->result_bytes) impl->bytes_written += static_cast<double>(n);
  collect_kernels(*l.module->entry(), impl->kernels);
  impl->memory_report = l.buffers.report();
  impl->steps = StepTable(*l.module);
  dump_code(l, options, target);
  impl->code = compile_code(l, options, target, bundle);
  impl->arena_bytes = impl->code.facts.arena_bytes;
  check_memory(*impl, l.buffers.constant_bytes, options.memory_limit);
  impl->times = std::move(l.times);
  impl->constants = constant_blob(l.buffers);
  impl->pool = ThreadPool::get(options.threads, options.parallel_for);
  impl->replicas = l.module->config.replica_count;
  impl->partitions = l.module->config.num_partitions;
  impl->isa = target.isa_name();
  impl->source = given;
  impl->options = options;
  impl->options.explain = nullptr;
  impl->options.after_pass = nullptr;
  return Executable(std::move(impl));
}

std::vector<int32_t> Executable::Impl::take(std::vector<Buffer>& inputs) const {
  if (inputs.size() != parameters.size()) {
    throw Error(ErrorKind::kInput,
                fmt::format("the program takes {} input leaves, {} were given", parameters.size(), inputs.size()));
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    inputs[k].keep();
    if (inputs[k].shape() == parameters[k] || fits_bounds(inputs[k].shape(), parameters[k])) continue;
    throw Error(ErrorKind::kInput, fmt::format("input {} is {}, the program takes {}", k, inputs[k].shape().to_string(),
                                               parameters[k].to_string()));
  }
  std::vector<int32_t> sizes;
  for (auto [leaf, dim] : dynamic_parameters) sizes.push_back(static_cast<int32_t>(inputs[leaf].shape().dims[dim]));
  for (auto [leaf, dim] : dynamic_parameters) {
    if (inputs[leaf].shape() != parameters[leaf]) inputs[leaf] = resized(inputs[leaf], parameters[leaf]);
  }
  return sizes;
}

std::vector<Buffer> Executable::Impl::make_outputs(std::span<const Buffer> inputs) const {
  std::vector<Buffer> outputs(results.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const auto bytes = static_cast<size_t>(result_bytes[k]);
    const Buffer* given = donor[k] < 0 ? nullptr : &inputs[static_cast<size_t>(donor[k])];
    const bool takes_over = given && given->unique() && given->size_bytes() == bytes;
    outputs[k].shape_ = result_shapes[k];
    outputs[k].owner_ = takes_over ? given->owner_ : pool_allocate(bytes);
    outputs[k].data_ = outputs[k].owner_.get();
  }
  return outputs;
}

void Executable::Impl::cut(std::vector<Buffer>& outputs, std::span<const int32_t> sizes) const {
  if (sizes.empty()) return;
  std::vector<Shape> actual = results;
  for (size_t k = 0; k < sizes.size(); ++k) {
    auto [leaf, dim] = dynamic_results[k];
    actual[leaf].dims[dim] = sizes[k];
    actual[leaf].dynamic.clear();
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (actual[k] != results[k]) outputs[k] = resized(outputs[k], actual[k]);
  }
}

std::vector<Buffer> Executable::call(const Impl& m, std::vector<Buffer> inputs, RunState& run) {
  std::vector<int32_t> sizes_in = m.take(inputs), sizes_out(m.dynamic_results.size());
  std::vector<Buffer> outputs = m.make_outputs(inputs);
  // Sizes of dynamic dimensions stand behind all leaves, on both sides.
  auto table = [](std::span<const Buffer> leaves, std::span<int32_t> sizes) {
    std::vector<void*> all;
    all.reserve(leaves.size() + sizes.size());
    for (const Buffer& leaf : leaves) all.push_back(leaf.data_);
    for (int32_t& size : sizes) all.push_back(&size);
    return all;
  };
  std::vector<void*> parameters = table(inputs, sizes_in), results = table(outputs, sizes_out);
  // Small arenas (lists of buffers, mostly) are on this frame: a tiny module's call takes 0.3 us in all.
  alignas(64) char small[2048];
  std::shared_ptr<void> large;
  if (m.arena_bytes > static_cast<int64_t>(sizeof small)) large = pool_allocate(static_cast<size_t>(m.arena_bytes));
  char* arena = large ? static_cast<char*>(large.get()) : small;
  abi::Context context;
  context.constants = static_cast<const char*>(m.constants.get());
  context.parallel_for = &parallel_for;
  context.steps = m.steps.data();
  run.pool = m.pool.get();
  context.runtime = &run;
  context.stop = run.stop;
  entry_calls.fetch_add(1, std::memory_order_relaxed);
  FloatMode mode(!m.options.keep_subnormals && !m.options.strict);
  int32_t status = m.code.entry(&context, parameters.data(), results.data(), arena);
  if (status == abi::kStopped) throw Error(ErrorKind::kFailed, "stopped while running");
  if (status != abi::kOk) {
    throw Error(ErrorKind::kFailed, run.failure.empty() ? "a kernel could not get its memory" : run.failure);
  }
  m.cut(outputs, sizes_out);
  return outputs;
}

int64_t Executable::replicas() const { return impl_->replicas; }
int64_t Executable::partitions() const { return impl_->partitions; }
const std::vector<Shape>& Executable::parameter_shapes() const { return impl_->parameters; }
const std::vector<Shape>& Executable::result_shapes() const { return impl_->results; }
const std::vector<int64_t>& Executable::donors() const { return impl_->donor; }
int64_t Executable::arena_bytes() const { return impl_->arena_bytes; }
const std::vector<PhaseTime>& Executable::compile_times() const { return impl_->times; }
const std::vector<KernelInfo>& Executable::kernels() const { return impl_->kernels; }
int Executable::threads() const { return impl_->pool->threads(); }
const std::string& Executable::isa() const { return impl_->isa; }
double Executable::flops() const { return impl_->flops; }
double Executable::io_bytes_read() const { return impl_->bytes_read; }
double Executable::io_bytes_written() const { return impl_->bytes_written; }
const std::string& Executable::memory_report() const { return impl_->memory_report; }

}  // namespace hlojit

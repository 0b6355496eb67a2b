// See lower.h.
#include "runtime/lower.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "compiler/text/printer.h"
#include "compiler/verify/verifier.h"
#include "runtime/cache.h"
#include "runtime/dump.h"
#include "runtime/parallel.h"
#include "runtime/steps.h"

namespace hlojit {
namespace {

class Phases {
 public:
  explicit Phases(std::vector<PhaseTime>& times) : times_(times) {}
  void done(std::string name) {
    auto now = std::chrono::steady_clock::now();
    times_.push_back({std::move(name), std::chrono::duration<double, std::milli>(now - last_).count()});
    last_ = now;
  }
  void skip() { last_ = std::chrono::steady_clock::now(); }

 private:
  std::vector<PhaseTime>& times_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

codegen::EmitOptions emit_options(const Options& options, const codegen::Target& target) {
  return {&target, options.strict, options.effort == 0, options.vector_bytes, options.smaller};
}

}  // namespace

PipelineOptions pipeline_options(const Options& options, const codegen::Target& target) {
  PipelineOptions p;
  p.target = emit_options(options, target).target_info();
  p.strict = options.strict;
  p.scatter_oob_window = options.scatter_oob_window;
  p.effort = options.effort;
  p.disabled = options.disabled_passes;
  p.explain = options.explain;
  p.step_refused = step_refused;
  auto dump = options.dump_dir.empty() ? nullptr : dump_passes(options.dump_dir);
  if (options.after_pass || dump) {
    p.after_pass = [told = options.after_pass, dump](const std::string& pass, const Module& m) {
      const std::string text = to_string(m);
      if (told) told(pass, text);
      if (dump) dump(pass, text);
    };
  }
  return p;
}

/// Tables have a row a device.
constexpr int64_t kMostDevices = 1 << 16;

void set_devices(Module& module, const Options& options) {
  ModuleConfig& config = module.config;
  if (options.replicas > 0) config.replica_count = options.replicas;
  if (options.partitions > 0) config.num_partitions = options.partitions;
  if (config.replica_count > kMostDevices / config.num_partitions) {
    throw Error(ErrorKind::kInput,
                {{.rule = "devices",
                  .message = fmt::format("{} replicas of {} partitions are more than {} devices", config.replica_count,
                                         config.num_partitions, kMostDevices)}});
  }
}

int compile_threads(const Options& options) {
  return options.threads > 0 ? std::min(options.threads, cores()) : cores();
}

Lowered plan(const Module& module, const Options& options, const codegen::Target& target) {
  Lowered l;
  Phases phases(l.times);
  check(module);
  phases.done("verify");
  l.module = module.clone();
  set_devices(*l.module, options);
  phases.done("clone");
  for (const PassTime& t : run_pipeline(*l.module, pipeline_options(options, target))) {
    l.times.push_back({t.name, t.ms});
  }
  phases.skip();
  l.buffers = assign_buffers(*l.module);
  phases.done("buffers");
  return l;
}

codegen::IrModule emit_ir(const Lowered& planned, const Options& options, const codegen::Target& target) {
  return emit_module(*planned.module, planned.buffers, emit_options(options, target));
}

codegen::NativeCode compile_code(Lowered& planned, const Options& options, const codegen::Target& target,
                                 codegen::ObjectStore* bundle) {
  std::optional<DiskCache> cache;
  Phases phases(planned.times);
  if (!bundle && !options.cache_dir.empty()) cache.emplace(options.cache_dir);
  codegen::EmitOptions emit = emit_options(options, target);
  codegen::NativeCode native =
      compile_module(*planned.module, planned.buffers, emit, cache ? &*cache : bundle, compile_threads(options));
  planned.times.push_back({"emit", native.emit_ms});
  planned.times.push_back({"jit", native.jit_ms});
  planned.times.push_back({"link", native.link_ms});
  if (cache || bundle) {
    phases.skip();
    if (cache) cache->trim();
    std::string why = cache ? cache->trouble() : "";
    phases.done(!why.empty() ? "cache unusable: " + why : native.units_compiled > 0 ? "cache miss" : "cache");
  }
  return native;
}

}  // namespace hlojit

#include "runtime/lower.h"

#include <chrono>

#include "compiler/text/printer.h"
#include "compiler/verify/verifier.h"

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

}  // namespace

PipelineOptions pipeline_options(const Options& options, const codegen::Target& target) {
  PipelineOptions p;
  p.target = target.info();
  p.strict = options.strict;
  p.scatter_oob_window = options.scatter_oob_window;
  p.effort = options.effort;
  p.disabled = options.disabled_passes;
  p.explain = options.explain;
  if (options.after_pass) {
    p.after_pass = [f = options.after_pass](const std::string& pass, const Module& m) { f(pass, to_string(m)); };
  }
  return p;
}

Lowered plan(const Module& module, const Options& options, const codegen::Target& target) {
  Lowered l;
  Phases phases(l.times);
  check(module);
  phases.done("verify");
  l.module = module.clone();
  phases.done("clone");
  for (const PassTime& t : run_pipeline(*l.module, pipeline_options(options, target))) {
    l.times.push_back({t.name, t.ms});
  }
  phases.skip();
  l.buffers = assign_buffers(*l.module);
  phases.done("buffers");
  return l;
}

void emit_code(Lowered& planned, const Options& options, const codegen::Target& target, int parts) {
  Phases phases(planned.times);
  codegen::EmitOptions emit{&target, options.strict, parts, options.vector_bytes};
  planned.code = emit_module(*planned.module, planned.buffers, emit);
  phases.done("emit");
}

Lowered lower(const Module& module, const Options& options, const codegen::Target& target) {
  Lowered l = plan(module, options, target);
  emit_code(l, options, target, 1);
  return l;
}

}  // namespace hlojit

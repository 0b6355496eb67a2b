// From a parsed module to code: the compiler's steps in order, timed. Everything that compiles goes
// through here (compile, emit, the passes listed by the command line).
#pragma once

#include <memory>
#include <vector>

#include "codegen/native.h"
#include "compiler/pipeline.h"
#include "hlojit/hlojit.h"

namespace hlojit {

struct Lowered {
  std::unique_ptr<Module> module;  ///< planned HLO
  BufferPlan buffers;
  std::vector<PhaseTime> times;
};

/// How many devices the options ask for, in the module's header.
void set_devices(Module& module, const Options& options);
PipelineOptions pipeline_options(const Options& options, const codegen::Target& target);
/// How many threads compile at once.
int compile_threads(const Options& options);
/// Verifies, runs all passes, assigns buffers.
Lowered plan(const Module& module, const Options& options, const codegen::Target& target);
/// LLVM IR of what plan() made, to be read.
codegen::IrModule emit_ir(const Lowered& planned, const Options& options, const codegen::Target& target);
/// Callable code; what the bundle, or if there is none options.cache_dir, holds is not compiled again.
/// Appends the phases to planned.times.
codegen::NativeCode compile_code(Lowered& planned, const Options& options, const codegen::Target& target,
                                 codegen::ObjectStore* bundle);

}  // namespace hlojit

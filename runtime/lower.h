// From a parsed module to LLVM IR: the compiler's steps in order, timed. Everything that compiles goes
// through here (compile, emit, the passes listed by the command line).
#pragma once

#include <memory>
#include <vector>

#include "codegen/entry.h"
#include "compiler/pipeline.h"
#include "hlojit/hlojit.h"

namespace hlojit {

struct Lowered {
  std::unique_ptr<Module> module;  ///< planned HLO
  BufferPlan buffers;
  codegen::ModuleCode code;
  std::vector<PhaseTime> times;
};

PipelineOptions pipeline_options(const Options& options, const codegen::Target& target);
/// Verifies, runs all passes, assigns buffers; `code` is left empty.
Lowered plan(const Module& module, const Options& options, const codegen::Target& target);
/// Emits IR for what plan() made.
/// `parts`: LLVM modules the kernels are spread over (ModuleCode::more).
void emit_code(Lowered& planned, const Options& options, const codegen::Target& target, int parts);
/// Both.
Lowered lower(const Module& module, const Options& options, const codegen::Target& target);

}  // namespace hlojit

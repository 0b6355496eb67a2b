// Code that a step brings along: a sort whose comparator is not one key gets its merge with the
// comparator inlined, so that no comparison is a call.
#pragma once

#include "codegen/options.h"
#include "compiler/ir/module.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace hlojit::codegen {

/// Whether a step is given a kernel.
bool has_step_kernel(const Instruction& step);

/// It. For a sort of N operands (abi::Kernel):
///   buffers: N source lines, then N target lines;  scalars: {elements n, run r, block s}
/// Source runs [k r, (k + 1) r) are sorted; chunk c merges the pairs of them inside
/// [c s, min((c + 1) s, n)) into the targets, stable. s is a multiple of 2 r.
llvm::Function* emit_step_kernel(llvm::Module& module, const Instruction& step, const EmitOptions& options);

}  // namespace hlojit::codegen

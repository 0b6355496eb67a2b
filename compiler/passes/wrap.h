// Makes a kernel of every instruction that is not part of one yet.
//
//   y = f32[8] add(x, one)   ->   y = f32[8] fusion(x), kind=kLoop, calls=fused,
//                                     backend_config={"hlojit":{"kernel":"nest"}}
//   r = f32[2,4] reshape(x)  ->   r = f32[2,4] bitcast(x)      when the bytes stay where they are
//
// Afterwards the sequential computations hold only the planned module:
// parameters, constants, tuples, fusions, while, conditional, bitcast. Barriers have done their job
// (keeping fuse apart) and go. Test: tests/hlo/opt/wrap.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

/// A reshape, transpose or broadcast of one operand whose result has its elements where the operand has
/// them: nothing to compute.
bool keeps_memory(const Instruction& instruction);

bool wrap(Module& module, const PipelineOptions& options);

}  // namespace hlojit

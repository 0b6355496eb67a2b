// Cuts a concatenation of very many operands into groups, whose results are concatenated in turn.
//
//   c = f32[8000] concatenate(p0, ..., p999)
//     ->  c.1 = f32[256] concatenate(p0, ..., p31)   ...   c.32 = f32[64] concatenate(p992, ..., p999)
//         c   = f32[8000] concatenate(c.1, ..., c.32)
//
// A kernel has a piece of code for each operand, and each piece knows all buffers of its kernel: a thousand
// operands took 9 s to compile. The bytes are moved twice, but groups of equal shapes are one kernel.
// Test: tests/hlo/opt/split_concatenations.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool split_concatenations(Module& module, const PipelineOptions& options);

}  // namespace hlojit

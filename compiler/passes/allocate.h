// Leaves unfilled what a loop writes all of before anybody reads it: the results that a scan puts side by side begin as
// zeros in JAX's programs, and each round replaces a part of them.
//
//   y = f32[20,64] broadcast(zero)
//   t = (s32[], f32[20,64]) while((zero, y))      body: dynamic-update-slice(y, row, round, 0), 20 rounds
//     ->  y = f32[20,64] custom-call(), custom_call_target="AllocateBuffer"
//
// Only where no round reads what it was given but to replace parts of it, and the parts of all rounds are the whole.
// Test: tests/hlo/opt/allocate.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool allocate(Module& module, const PipelineOptions& options);

}  // namespace hlojit

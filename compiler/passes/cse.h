// Computes each value once: instructions with the same op, operands, attributes and shape become
// the first of them.
//
//   a = f32[8] exponential(x)   b = f32[8] exponential(x)   s = f32[8] add(a, b)
//     ->  a = f32[8] exponential(x)   s = f32[8] add(a, a)
//
// Computations that are called (reducers, comparators, loops' bodies) are compared by what they do, not by name;
// operands of commutative ops in either order. Where the HLO came from (metadata) makes no difference, nor do layouts,
// which `layouts` assigns later. Effects, calls and barriers stay as they are. Test: tests/hlo/opt/cse.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool cse(Module& module, const PipelineOptions& options);

}  // namespace hlojit

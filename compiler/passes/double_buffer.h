// Gives the state of a loop two buffers in turn, where a round cannot write its result over what it reads.
//
//   body: x' = x.at[1:-1].set(x[2:] + x[:-2])        x' needs other memory than x; each round would end with a copy
//
//   body: y = f(x), x' = f(y)                        two rounds: y lies elsewhere, x' in the memory of x again
//
// Only where the number of rounds is known (rounds.h); of an odd number one is done before the loop, if it is not
// long. Kernels that are the same are compiled once, so that a body of two rounds costs little more than one. As
// XLA's double buffer loop unrolling. Test: tests/hlo/opt/double_buffer.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool double_buffer(Module& module, const PipelineOptions& options);

}  // namespace hlojit

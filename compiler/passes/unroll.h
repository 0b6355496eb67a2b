// Writes out short loops of elementwise work, so that they can be one kernel with what is around them, and loops of one
// round, or of none, whatever they hold.
//
//   w = while((0, x)), condition: i < 3, body: (i + 1, f(x))    ->    f(f(f(x)))
//
// Only loops whose number of rounds is plain from the text (a counter from a constant, by a constant
// step, to a constant bound); of several, at most 16 rounds, whose body holds nothing that ends a kernel anyway, and
// reads what the round before made at the same places. JAX's ThreeFry is such a loop of five rounds, and its scan over
// the layers of a model of one layer is one of one. Test: tests/hlo/opt/unroll.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool unroll(Module& module, const PipelineOptions& options);

}  // namespace hlojit

// Compares anew in each round of a loop what its state carries as a mask that no round changes, where that is made of
// places and constants alone. To read it takes as long, or longer: in another order its bytes are taken one by one.
//
//   m = compare(iota, iota);  body: x, m = state;  y = select(m, x, zeros)
//     ->  body: x, m = state;  n = compare(iota, iota);  y = select(n, x, zeros)
//
// The element of the state, which nobody reads now, is left to dce. (The causal scores of a decoder whose layers are a
// scan, 16 times 129x129 that lie by columns, an Emerald Rapids: 338 us -> 171 a layer.)
// Test: tests/hlo/opt/sink.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool sink(Module& module, const PipelineOptions& options);

}  // namespace hlojit

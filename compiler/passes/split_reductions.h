// Cuts a large reduction with few results in two, so that all cores have rows to work on.
//
//   s = f32[] reduce(x, zero), dimensions={0}            x: f32[4000000]
//     ->  r = f32[250,16000] reshape(x)
//         p = f32[250] reduce(r, zero), dimensions={1}
//         s = f32[] reduce(p, zero), dimensions={0}
//
// Where no number of parts divides the dim, what is left over is reduced beside the parts and combined
// with them at the end. Sums and products of narrow floats are kept in f32 until then: they are rounded
// once, as without the cut.
//
// The cut depends on sizes alone, so results are the same bits on any number of threads. Only for
// reducers of one associative operation; the initial value enters once, unless it is neutral or may
// enter twice (minimum, maximum, and, or). Test: tests/hlo/opt/split_reductions.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool split_reductions(Module& module, const PipelineOptions& options);

}  // namespace hlojit

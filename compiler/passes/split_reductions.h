// Cuts a large reduction with few results in two, so that all cores have rows to work on.
//
//   s = f32[] reduce(x, zero), dimensions={0}            x: f32[4000000]
//     ->  r = f32[250,16000] reshape(x)
//         p = f32[250] reduce(r, zero), dimensions={1}
//         s = f32[] reduce(p, zero), dimensions={0}
//
// The cut depends on sizes alone, so results are the same bits on any number of threads. Only for
// reducers of one associative operation whose initial value may enter twice (0 for add, 1 for multiply,
// anything for minimum, maximum, and, or). Test: tests/hlo/opt/split_reductions.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool split_reductions(Module& module, const PipelineOptions& options);

}  // namespace hlojit

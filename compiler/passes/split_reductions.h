// Cuts reductions in two where one would leave cores idle, or lanes.
//
// Few results are made of parts, so that all cores have rows to work on:
//
//   s = f32[] reduce(x, zero), dimensions={0}            x: f32[4000000]
//     ->  r = f32[250,16000] reshape(x)
//         p = f32[250] reduce(r, zero), dimensions={1}
//         s = f32[] reduce(p, zero), dimensions={0}
//
// Where no number of parts divides the dim, what is left over is reduced beside the parts and combined
// with them at the end. Arrays side by side are cut each for itself, for parts would share no borders
// with them; what was reshaped, in the sizes it had before, or in whole rows of these. Sums and
// products of narrow floats are kept in f32 until then: they are rounded once, as without the cut.
//
// So are sums of columns where a row is as short as the strip of columns that a core takes:
//
//   s = f32[64] reduce(x, zero), dimensions={0}          x: f32[65536,64]
//     ->  r = f32[256,256,64] reshape(x)
//         p = f32[256,64] reduce(r, zero), dimensions={1}
//         s = f32[64] reduce(p, zero), dimensions={0}
//
// And groups of a few elements each over many rows, such as channels of images, in which lanes would be these few:
//
//   s = f32[4,16] reduce(x, zero), dimensions={1,2,4}    x: f32[4,28,28,16,4]
//     ->  p = f32[4,16,4] reduce(x, zero), dimensions={1,2}
//         s = f32[4,16] reduce(p, zero), dimensions={2}
//
// And rows of many steps of less than a vector, such as the colours of pixels: some steps together make vectors.
//
//   s = f32[4,3] reduce(x, zero), dimensions={1}         x: f32[4,50176,3]
//     ->  r = f32[4,3136,16,3] reshape(x)
//         p = f32[4,16,3] reduce(r, zero), dimensions={1}
//         s = f32[4,3] reduce(p, zero), dimensions={1}
//
// The cut depends on sizes alone, so results are the same bits on any number of threads. Only for
// reducers of one associative operation; the initial value enters once, unless it is neutral or may
// enter twice (minimum, maximum, and, or). Test: tests/hlo/opt/split_reductions.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool split_reductions(Module& module, const PipelineOptions& options);

}  // namespace hlojit

// Cuts large reductions in two where one would leave cores idle, or read memory with gaps.
//
// Few results are made of parts, so that all cores have rows to work on:
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
// Very long columns are summed in blocks of neighbouring rows:
//
//   s = f32[4096] reduce(x, zero), dimensions={0}        x: f32[16384,4096]
//     ->  r = f32[1024,16,4096] reshape(x)
//         p = f32[1024,4096] reduce(r, zero), dimensions={1}
//         s = f32[4096] reduce(p, zero), dimensions={0}
//
// A kernel sums as many columns at once as it has accumulators, 256 bytes of each row: of an array that no cache holds
// each such strip comes from memory with gaps, a page a row. Blocks of sixteen rows are read from end to end; their
// sums are a sixteenth. The same for a vector times a matrix.
//
// The cut depends on sizes alone, so results are the same bits on any number of threads. Only for
// reducers of one associative operation; the initial value enters once, unless it is neutral or may
// enter twice (minimum, maximum, and, or). Test: tests/hlo/opt/split_reductions.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool split_reductions(Module& module, const PipelineOptions& options);

}  // namespace hlojit

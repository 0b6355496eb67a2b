// Cuts sums of very long columns into blocks of neighbouring rows.
//
//   s = f32[4096] reduce(x, zero), dimensions={0}        x: f32[16384,4096]
//     ->  r = f32[1024,16,4096] reshape(x)
//         p = f32[1024,4096] reduce(r, zero), dimensions={1}
//         s = f32[4096] reduce(p, zero), dimensions={0}
//
// A kernel sums as many columns at once as it has accumulators, 256 bytes of each row: of an array that no cache holds
// each such strip comes from memory with gaps, a page a row. Blocks of sixteen rows are read from end to end; their
// sums are a sixteenth. The same for a vector times a matrix. The cut depends on sizes alone.
// Test: tests/hlo/opt/block_columns.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool block_columns(Module& module, const PipelineOptions& options);

}  // namespace hlojit

// Updates an array where it lies of which a part is taken, updated and put back.
//
//   part = dynamic-slice(all, i, 0, 0);  new = dynamic-update-slice(reshape(part), row, j, 0)
//   all' = dynamic-update-slice(all, reshape(new), i, 0, 0)
//     ->  all' = dynamic-update-slice(all, reshape(row), i, j, 0);  new = reshape(dynamic-slice(all', i, 0, 0))
//
// A scan takes its parts of one array and puts them together in another. Where its rounds update them so, both are one
// element of the loop's state, which begins as the first was. The caches of a decoder whose layers are a scan come so
// from JAX: each was copied two times a layer, and once more by the loop over tokens. (16 tokens by two layers of 512
// features and 256 places, an Emerald Rapids, one thread: 20.9 ms -> 12.8, sixteen of them side by side 286 -> 63; four
// layers of 512 places, each row at a place of its own, 268 -> 46.) So are states of a loop that a scan within it makes
// anew from the ones it was given.
// Test: tests/hlo/opt/update_parts.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool update_parts(Module& module, const PipelineOptions& options);

}  // namespace hlojit

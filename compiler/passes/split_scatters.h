// Cuts a scatter of many indices into a small array, so that all cores have some of the indices.
//
//   h = s32[256] scatter(x, i, u), ..., to_apply=add                     i: s32[1000000,1]   u: s32[1000000]
//     ->  j = s32[16,62500,1] reshape(i)
//         v = s32[16,62500] reshape(u)
//         p = s32[16,256] scatter(zeros, j, v), ..., to_apply=add        a part's indices into the part's own array
//         h = x + p[0] + ... + p[15]
//
// A kernel shares out the target of a scatter, as it has to keep the order of what meets at one place. A target of
// single numbers would have every core read all indices. Where terms may be regrouped each part has a target of its
// own; these are small beside the indices. What no number of parts divides is scattered into the result afterwards.
//
// The cut depends on sizes alone, so results are the same bits on any number of threads.
// Test: tests/hlo/opt/split_scatters.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool split_scatters(Module& module, const PipelineOptions& options);

}  // namespace hlojit

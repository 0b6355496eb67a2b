// Cuts the depth of contractions of few results in parts, so that all cores have some of it and what a part reads stays
// in a core's caches:
//
//   d = f32[27,32] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}    x: f32[32768,27], y: f32[32768,32]
//     ->  r = f32[16,2048,27] reshape(x), q = f32[16,2048,32] reshape(y)
//         p = f32[16,27,32] dot(r, q), batch dims {0}, contracting dims {1}
//         d = f32[27,32] reduce(p, zero), dimensions={0}
//
// Of a convolution whose input features are many, such as the images of a gradient of weights, the parts become a
// spatial dim in which each result reads one place: a batch.
//
//   d = f32[3,3,3,32] convolution(x, y), window={size=32x32 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf
//     ->  p = f32[16,3,3,3,32] convolution(r, q), window={size=32x32x16 pad=1_1x1_1x0_0 stride=1x1x15
//     lhs_dilate=1x1x16},
//             dim_labels=2f01b_2i01o->201bf
//
// Contracted dims that follow each other, in memory too, are one first: parts of it lie in a row.
// Only where some number of parts divides the dim: slices of operands would be packed, and what they leave over cost a
// kernel more. A vector times a matrix packs nothing, and may leave rows. Sums of narrow floats are kept in f32 until
// all are added: they are rounded once, as without the cut, which depends on sizes alone: results are the same bits on
// any number of threads. Test: tests/hlo/opt/split_contractions.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool split_contractions(Module& module, const PipelineOptions& options);

}  // namespace hlojit

// Computes elementwise values and products without their dims of size 1.
//
//   m = f32[8] reduce(x, zero)                      m = f32[8] reduce(x, zero)
//   c = f32[8,1] reshape(m)                         d = f32[8] divide(m, n')
//   d = f32[8,1] divide(c, n)                 ->    b = f32[8,4] broadcast(d), dimensions={0}
//   e = f32[8,1] broadcast(d), dimensions={0,1}
//   f = f32[8] reshape(e)
//   b = f32[8,4] broadcast(f), dimensions={0}
//   r = f32[8] reduce(d, zero), dimensions={1}      r = f32[8] add(zeros, d)
//
//   y = f32[1,7,9,9] dot(q, k), batch dims 0, 1     y = f32[7,9,9] dot(q', k'), batch dim 0
//
// Frontends keep reduced dims as 1 and take them away again, and batches may be of one; without them, what belongs to a
// row has the sizes of the rows, which is what a kernel can hand out beside the rows. Values in tiled layouts are left
// alone, since there a dim of size 1 is part of where the bytes lie. Test: tests/hlo/opt/squeeze.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool squeeze(Module& module, const PipelineOptions& options);

}  // namespace hlojit

// bitcasts: a bitcast reads its operand's bytes as another array, so it means what the layouts written
// beside it make it mean. Every other op means the same in any layout, and passes change layouts and drop
// copies. So bitcasts go first: each becomes the reshape or transpose that it is, or, where padding or
// another width come in, the pads, cuts and transposes that spell the two layouts out. Where the layouts
// that are assigned later still agree, `wrap` makes bitcasts of them again.
//
//     b = f32[3,2]{1,0} bitcast(f32[2,3]{0,1} x)            b = transpose(x), dimensions={1,0}
//     b = f32[128]{0:T(128)} bitcast(f32[1,128]{1,0:T(1,128)} x)    b = reshape(x)
//
// Test: tests/hlo/opt/bitcasts.hlo, tests/hlo/run/bitcasts.hlo.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/pipeline.h"

namespace hlojit {

bool bitcasts(Module& module, const PipelineOptions& options);

}  // namespace hlojit

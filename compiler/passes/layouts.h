// layouts: gives every array value of the sequential computations its layout.
//
// Fixed points are what the caller sees: entry parameters and results have the layouts of the entry
// computation layout. From there outwards an elementwise result takes the layout of
// its largest operand, dynamic-update-slice that of what it updates, everything else the default; loop
// state and branch results have default layouts. Layouts written on other instructions are hints and
// dropped. A `copy` is added only where a value must be in memory in two layouts.
//
//     ENTRY: x f32[8,256]{1,0:T(8,128)}     x = parameter(0)            tiled, as the caller passes it
//                                            y = add(x, x)               tiled, like x
//                                            z = reduce(y)               default
//
// Test: tests/hlo/opt/layouts.hlo.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/pipeline.h"

namespace hlojit {

bool layouts(Module& module, const PipelineOptions& options);

}  // namespace hlojit

// layouts: gives every array value of the sequential computations its layout.
//
// Fixed points are what the caller sees (entry parameters and results), what steps of the runtime ask
// for, and fusions of ours that were printed. Between them each value takes the layout that costs least:
// it goes along with an operand (elementwise ops keep its order and tiles, a transpose or reshape moves
// nothing), along with its readers, or has the default, and bytes that would be read or written against
// their order are dear (layout_rules.h). Contractions read any layout and give the default, but convolutions
// of many features read and give these as neighbours; gathers read and give the elements of a window as neighbours
// where more is taken than there is; updates have that of what they update; the state of a loop and the arguments of
// branches keep what they arrive in. Layouts written on other instructions are hints and dropped, so that our own
// output gets the same ones again. A `copy` is added only where a value must be in memory in two layouts.
// `--explain` tells each choice with what the others would have cost.
//
//     ENTRY: x f32[8,256]{1,0:T(8,128)}     x = parameter(0)            tiled, as the caller passes it
//                                            y = add(x, x)               tiled, along x
//                                            t = transpose(y)            {0,1:T(8,128)}: a bitcast
//
// Test: tests/hlo/opt/layouts.hlo.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/pipeline.h"

namespace hlojit {

bool layouts(Module& module, const PipelineOptions& options);

}  // namespace hlojit

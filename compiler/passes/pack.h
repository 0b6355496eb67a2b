// Packs the operand that a product's micro-kernel reads by vectors: once, by a copy, where otherwise every
// block of rows would do it again.
//
//   y = f32[1024,64] dot(x, w)
//     ->  w.panels = f32[512,64]{0,1:T(16,1)} copy(w)      panels of 16 columns, one k after the other
//         y = f32[1024,64] dot(x, w.panels)
//
// The layout is the micro-kernel's own: an operand that has it is read in place. A constant gets it without a
// copy, narrow floats are converted to the type that is summed. Whether the copy is worth a kernel is left to
// fuse, which may take it into the product's own packing. Test: tests/hlo/opt/pack.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool pack(Module& module, const PipelineOptions& options);

}  // namespace hlojit

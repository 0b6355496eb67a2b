// Packs the operand that a product's micro-kernel reads by vectors: once, by a copy, where otherwise every
// block of rows would do it again.
//
//   y = f32[1024,64] dot(x, w)
//     ->  w.panels = f32[512,64]{0,1:T(16,1)} copy(w)      panels of 16 columns, one k after the other
//         y = f32[1024,64] dot(x, w.panels)
//
// The layout is the micro-kernel's own: an operand that has it is read in place. A constant gets it without a
// copy, narrow floats are converted to the type that is summed. Whether the copy is worth a kernel is left to
// fuse, which may take it into the product's own packing. Of large ones there is no copy where a single block has all
// rows. Weights whose terms are multiplied in groups are packed for all blocks of positions, too: bf16[3,3,128,128] is
// copied as {2,1,0,3:T(32,1,1,2)}. An operand that is a parameter by another name, as f32[64,16] reshape(f32[1,64,16]),
// becomes a bitcast of it, which is no part of a kernel.
//
// An image of few features gets its padding by a copy, too: then a line of the window lies together, and rows are read
// where they lie (RowsInPlace in compiler/plan/operands_in_place.h). A stem of 7x7 by 3 features takes 0.88 of the
// time. So does one whose lines fill matrix registers.
//
//   y = f32[1,112,112,64] convolution(x, w), window={size=7x7 stride=2x2 pad=3_3x3_3}
//     ->  x.padded = f32[1,230,230,3] pad(x, 0)
//         y = f32[1,112,112,64] convolution(x.padded, w), window={size=7x7 stride=2x2}
//
// Where a second cache does not keep up with panels that are read in place, many rows that lie across the depth get a
// copy along it (tests/compiler/passes_test.cc).
//
//   y = f32[1024,1024] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
//     ->  x.rows = f32[1024,1024]{0,1} copy(x)
//
// Test: tests/hlo/opt/pack.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool pack(Module& module, const PipelineOptions& options);

}  // namespace hlojit

// Spells out ops that are programs of simpler ones, so that kernels need not know them.
//
//   r = f32[4] map(x, y), to_apply=f     f(a, b): a * 2 - b
//     ->  t = f32[4] broadcast(2)   m = f32[4] multiply(x, t)   r = f32[4] subtract(m, y)
//
//   rng-bit-generator  ->  integer arithmetic on an iota of the counter, and the next state
//   rng                ->  the same, on a counter that the run keeps
//   custom-call        ->  its operand if it only annotates ("Sharding"), topk ("TopK"), LAPACK's calls ("Qr", "Eigh")
//   select-and-scatter ->  a reduce-window that picks, a scatter onto what was picked
//   reduce-window of all before -> windows in blocks, and of the blocks' totals
//   convolution to a few features -> a product for all taps of the window, and sums of what it sees
//   scan               ->  a while loop          ragged-dot -> a gather or masks, and a dot
//   batch-norm-...     ->  reductions and elementwise ops, in f32 or wider
//
// What cannot be spelled out (a map over control flow) stays, for legalize_check to refuse by name.
// Test: tests/hlo/opt/expand.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool expand(Module& module, const PipelineOptions& options);

}  // namespace hlojit

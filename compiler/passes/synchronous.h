// Runs asynchronous ops where they start: each pair becomes the op it stands for.
//
//   s = ((f32[4]), f32[4]) negate-start(x)                 n = f32[4] negate(x)
//   u = ((f32[4]), f32[4]) negate-update(s)         ->
//   d = f32[4] negate-done(u)                              uses of d read n
//
//   async-start, calls=f                            ->     call, to_apply=f
//   all-reduce-start, all-gather-start,             ->     all-reduce, all-gather,
//   collective-permute-start                               collective-permute
//   copy-start, copy-done                           ->     copy
//   domain(x), add-dependency(x, a token of nobody) ->     x
//   parameter(0), control-predecessors={y}          ->     parameter(0): who reads it waits for y
//
// A thread of its own would only order work that the pool spreads anyway. Channels (send, recv) and
// host queues have an effect by themselves and stay.
// Test: tests/hlo/opt/synchronous.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool synchronous(Module& module, const PipelineOptions& options);

}  // namespace hlojit

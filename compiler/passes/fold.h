// Computes at compile time what depends on constants alone, by the evaluator.
//
//   a = f32[2] constant({1, 2})   b = f32[2] constant({3, 5})
//   s = f32[2] add(a, b)                     ->   s = f32[2] constant({4, 7})
//   e = f32[8] exponential(broadcast(c))     ->   e = f32[8] broadcast(exp(c))
//
// A broadcast stays a broadcast, an iota an iota: they cost nothing to compute and much to store. Except for indices,
// of a gather say, that iotas make by arithmetic which no address can follow, simplified as it is: fold_places computes
// those.
// Only results of at most 1 MiB that are not larger than what they are made of, and a bounded
// amount of work a module; the rest is left to run time. Test: tests/hlo/opt/fold.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool fold(Module& module, const PipelineOptions& options);
bool fold_places(Module& module, const PipelineOptions& options);

}  // namespace hlojit

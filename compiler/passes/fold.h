// Computes at compile time what depends on constants alone, by the evaluator.
//
//   a = f32[2] constant({1, 2})   b = f32[2] constant({3, 5})
//   s = f32[2] add(a, b)                     ->   s = f32[2] constant({4, 7})
//   e = f32[8] exponential(broadcast(c))     ->   e = f32[8] broadcast(exp(c))
//
// A broadcast stays a broadcast, an iota an iota: they cost nothing to compute and much to store. Except for indices,
// of a gather say, that iotas make by arithmetic which no address can follow, simplified as it is: fold_places computes
// those. And for tables: fold_tables computes what iotas make by functions, of up to 256 KiB, angles of positions say
// or the weights of a window, which would be computed anew at each call, and for each row that they are spread over.
// (rotated 128x8x64 with their sines and cosines, one core of a Zen 4: 6.7 us in 24 ms, 5.1 in 10; cosines as a matrix
// of 64x64 that 100 rows are multiplied with 8.8, 7.4.)
// Only results of at most 1 MiB that are not larger than what they are made of, and a bounded
// amount of work a module; the rest is left to run time. Test: tests/hlo/opt/fold.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool fold(Module& module, const PipelineOptions& options);
bool fold_places(Module& module, const PipelineOptions& options);
bool fold_tables(Module& module, const PipelineOptions& options);

}  // namespace hlojit

// Multiplies for all rounds of a loop at once what each of them takes of an array: the product of a part is a part of
// the product, which no round changes, so that `hoist` moves it out of the loop.
//
//   body: x = reshape(dynamic-slice(xs, round, 0, 0));  y = dot(x, w)
//     ->  ys = dot(xs, w);  y = reshape(dynamic-slice(ys, round, 0, 0))
//
// Cells of recurrent nets multiply their inputs so, a few rows at a time, and brought all of the weights anew for each
// step. (40 steps of an LSTM with 512 features, one row each, an Emerald Rapids: 11.5 ms -> 6.7 on one thread, 6.1 ->
// 2.3 on two.)
//
// Where a cell puts its input and its state together to multiply them by one matrix, it is two products. (256 features,
// one thread: one row 1.81 ms -> 0.60, 16 rows 6.5 -> 4.5.)
// Test: tests/hlo/opt/batch_rounds.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool batch_rounds(Module& module, const PipelineOptions& options);

}  // namespace hlojit

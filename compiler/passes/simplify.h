// Rewrites that make a module smaller without changing a bit of its results, from tables of rules,
// one rule an idea (simplify_arithmetic.cc, simplify_movement.cc, simplify_control.cc).
//
//   y = f32[8] multiply(x, ones)           ->   (readers of y read x)
//   t = f32[4,2] transpose(transpose(x))   ->   (readers of t read x)
//   d = f32[8] divide(x, fours)            ->   d = f32[8] multiply(x, quarters)
//
// Rules for floats are exact, NaN payloads aside: x + 0 stays, since -0 + 0 = 0. The few that are
// more exact than what they replace (x^2 as x*x) are left out with options.strict. Only the order of
// sums is free, as everywhere. Test: tests/hlo/opt/simplify.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool simplify(Module& module, const PipelineOptions& options);

}  // namespace hlojit

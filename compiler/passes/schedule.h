// Chooses the order in which each sequential computation runs: the one with the lower peak of
// temporary memory among the order at hand and a list schedule that frees before it allocates.
//
//   a = big(x)  b = big(x)  sa = sum(a)  sb = sum(b)   ->   a  sa  b  sb
//
// Control predecessors (of `alias`) are obeyed, ties go to the order at hand, a module that came
// scheduled is left alone. Test: tests/hlo/opt/schedule.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool schedule(Module& module, const PipelineOptions& options);

}  // namespace hlojit

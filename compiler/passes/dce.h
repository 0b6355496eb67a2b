// Removes what nobody reads: instructions without users and without effects, elements of a loop's state that only they
// themselves are made of, computations that nothing calls any more.
//
//   u = f32[8] exponential(x)              ->   (gone)
//   ROOT y = f32[8] negate(x)                   ROOT y = f32[8] negate(x)
//
// Parameters stay, read or not. Test: tests/hlo/opt/dce.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool dce(Module& module, const PipelineOptions& options);

}  // namespace hlojit

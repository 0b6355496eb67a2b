// Says no by name: from here on every computing op must be one that some kernel kind admits. Changes
// nothing; throws Error(kUnsupported, location, "sort is not compiled yet") naming all such
// instructions of the module. Test: tests/hlo/opt/legalize_check.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool legalize_check(Module& module, const PipelineOptions& options);

}  // namespace hlojit

// sort: lines of keys with what follows them, stable. Keys that sort_order() knows are mapped to
// integers and sorted by vectors; the others are merged by the code emitted for their comparator.
#pragma once

#include "runtime/steps.h"

namespace hlojit {

StepFunction sort_step(const Instruction& sort);

}  // namespace hlojit

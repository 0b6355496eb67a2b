// topk: the k greatest (or smallest) of each row with their places, ties to the lower place.
#pragma once

#include "runtime/steps.h"

namespace hlojit {

StepFunction top_k_step(const Instruction& top_k);

}  // namespace hlojit

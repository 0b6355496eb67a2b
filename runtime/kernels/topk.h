// topk: the k greatest (or smallest) of each row with their places, floats in total order, ties to the lower place.
#pragma once

#include "runtime/steps.h"

namespace hlojit {

StepFunction top_k_step(const Instruction& top_k);

}  // namespace hlojit

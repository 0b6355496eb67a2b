// custom-call: the step behind register_custom_call and load_custom_calls (hlojit/custom_call.h).
#pragma once

#include "runtime/steps.h"

namespace hlojit {

StepFunction custom_call_step(const Instruction& call);

}  // namespace hlojit

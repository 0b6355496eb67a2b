// LAPACK's custom calls (compiler/ir/lapack_call.h), by LAPACK.
#pragma once

#include "runtime/steps.h"

namespace hlojit {

/// What such a call takes on one core, roughly; 0 if its function is not served.
double lapack_call_ns(const Instruction& call);
/// Throws Error(kUnsupported) for a function or layout that is not served.
StepFunction lapack_call_step(const Instruction& call);

}  // namespace hlojit

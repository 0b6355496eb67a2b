// The custom calls that JAX makes its linear algebra of: lapack_{s,d,c,z}NAME_ffi, column-major
// matrices in batches, options as attributes ({uplo = 76 : ui8}: a character's code).
#pragma once

#include "runtime/steps.h"

namespace hlojit {

/// Whether the target is of this family. (Its function may still be none that is served.)
bool is_lapack_call(const Instruction& call);
/// What such a call takes on one core, roughly; 0 if its function is not served.
double lapack_call_ns(const Instruction& call);
/// Throws Error(kUnsupported) for a function or layout that is not served.
StepFunction lapack_call_step(const Instruction& call);

}  // namespace hlojit

// cholesky and triangular-solve: batches of row-major matrices.
#pragma once

#include "runtime/steps.h"

namespace hlojit {

/// What such an instruction takes on one core, roughly.
double cholesky_ns(const Instruction& cholesky);
double triangular_solve_ns(const Instruction& solve);

StepFunction cholesky_step(const Instruction& cholesky);
StepFunction triangular_solve_step(const Instruction& solve);

}  // namespace hlojit

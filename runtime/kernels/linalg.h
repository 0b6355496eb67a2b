// cholesky and triangular-solve: batches of row-major matrices.
#pragma once

#include "runtime/steps.h"

namespace hlojit {

StepFunction cholesky_step(const Instruction& cholesky);
StepFunction triangular_solve_step(const Instruction& solve);

}  // namespace hlojit

// fft along dimensions whose sizes are known at run time only; see dynamic_rules.h.
#pragma once

#include "compiler/passes/dynamic_rules.h"

namespace hlojit {

/// Ops of fixed sizes whose first elements along each dynamic dimension are the transform of as many as there
/// are. `sizes` are those of the operand, and become those of the result: n real values have n/2 + 1 bins; from h
/// bins there are 2h - 2 values, or 2h - 1 if the bound is odd.
Instruction* expand_dynamic_fft(Builder& b, const Instruction& op, DimSizes& sizes);

}  // namespace hlojit

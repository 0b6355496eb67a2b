// Values of a loop's body that are the same in every round: elements of its state that the body hands on as it got
// them, constants, and what is computed of such values alone.
#pragma once

#include "compiler/ir/instruction_set.h"
#include "compiler/ir/module.h"

namespace hlojit {

/// Number of the state's element that `i` is, read off the parameter of `c` (a while's body or condition); -1 if none.
int64_t state_element(const Instruction* i, const Computation& c);

/// Empty if the body's root is no tuple. Without effects, calls and what waits for others.
InstructionSet invariant_values(const Computation& body);

}  // namespace hlojit

// What each device gets of a collective, said once more and plainly: the oracle for programs on several
// devices, which the evaluator, one device's, does not run.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace hlojit::tools {

/// Whether devices hand each other something here.
bool is_collective(const Instruction& i);

/// `in[d]` are the operands on device d; the results, by device, in the form that the op has (a start gives
/// the tuple of its operand and its result). What is combined is combined in the order of the group.
std::vector<Literal> meet(const Instruction& collective, const std::vector<std::vector<Literal>>& in);

}  // namespace hlojit::tools

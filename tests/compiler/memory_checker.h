// Runs a planned module on memory that holds names instead of numbers: every kernel checks that its
// operands' buffers still hold the values it means to read. Shares nothing with buffer assignment but
// the plan it checks; loops run twice, so that what one iteration leaves to the next is checked too.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/plan/buffers.h"

namespace hlojit::test {

/// What went wrong, empty if nothing. `donated`: the caller gives each pair of input_output_alias one
/// memory (and nobody runs the copies between them).
std::vector<std::string> check_memory(const Module& module, const BufferPlan& plan, bool donated);

}  // namespace hlojit::test

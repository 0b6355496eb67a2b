// Custom calls that only say something about their operand.
#pragma once

#include "compiler/ir/module.h"

namespace hlojit {

/// A custom call that says where its operand lies among devices, or in which layout: the identity here.
bool is_annotation(const Instruction& instruction);

/// A custom call that says which values lie alike among devices, and gives `()`.
bool is_sharding_group(const Instruction& instruction);

}  // namespace hlojit

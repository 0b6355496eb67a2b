// Custom calls that only say something about their operand.
#pragma once

#include "compiler/ir/module.h"

namespace hlojit {

/// A custom call that says where its operand lies among devices, or in which layout: the identity here.
bool is_annotation(const Instruction& instruction);

/// A custom call that gives `()` and says which values lie alike among devices, or which of two had best be made first
/// (JAX's control_dep: XLA reads it for its schedule alone, and values do not depend on it).
bool is_remark(const Instruction& instruction);

}  // namespace hlojit

// XLA's own form of memory that nobody has written yet: custom-call(), custom_call_target="AllocateBuffer".
#pragma once

#include "compiler/ir/module.h"

namespace hlojit {

/// Whether the instruction is such a call: an array whose elements are whatever the memory holds.
bool is_allocation(const Instruction& instruction);

/// A new one in `c`, placed before `before`.
Instruction* add_allocation(Computation& c, const Shape& shape, std::string_view name, Instruction* before);

}  // namespace hlojit

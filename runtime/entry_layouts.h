// The layouts in which a program's caller holds its arrays.
#pragma once

#include <span>

#include "compiler/ir/module.h"

namespace hlojit {

/// Gives the entry's parameters and results the layouts of these arrays, a leaf each in order. Throws Error(kInput)
/// if one of them is another array than the program's, or their number differs.
void set_entry_layouts(Module& module, std::span<const Shape> parameters, std::span<const Shape> results);

}  // namespace hlojit

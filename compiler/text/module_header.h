// What stands before a module's computations: its name, its attributes, tables of source positions.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/text/lexer.h"

namespace hlojit {

/// Reads on from behind the word HloModule.
void read_module_header(Cursor& in, Module& module);

}  // namespace hlojit

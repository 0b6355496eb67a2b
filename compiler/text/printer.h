// IR to HLO text, in the form that parse_module reads back to the same IR.
#pragma once

#include <string>

#include "compiler/ir/module.h"
#include "compiler/text/literal_text.h"

namespace hlojit {

struct PrintOptions {
  bool operand_shapes = false;  ///< `add(f32[2]{0} a, f32[2]{0} b)`, as older tools print
};

/// The whole module; linear in its size. Literals are printed in full.
std::string to_string(const Module& module, const PrintOptions& options = {});
std::string to_string(const Computation& computation, const PrintOptions& options = {});
/// One line without indent or line end; `ROOT` if it is the root.
std::string to_string(const Instruction& instruction, const PrintOptions& options = {});

}  // namespace hlojit

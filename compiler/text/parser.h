// HLO text to IR.
//
// Accepts whole modules (with or without the HloModule line) and single instructions, the forms
// that XLA and JAX print. Syntax, names, attributes and literals are checked here; shapes and
// everything that relates instructions to each other is the verifier's (compiler/verify).
#pragma once

#include <memory>
#include <string_view>

#include "compiler/ir/module.h"
#include "compiler/text/literal_text.h"

namespace hlojit {

/// Parses a module; keeps a copy of the text in Module::source. Result shapes that the text leaves
/// out are inferred. Throws Error(kInvalid) with line and column of the first mistake; never
/// crashes, whatever the bytes. `elided`: makes the values of constants that were printed as {...}.
std::unique_ptr<Module> parse_module(std::string_view text, const ElidedValues& elided = {});

}  // namespace hlojit

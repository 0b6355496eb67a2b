// The verifier: is this module valid HLO? What it guarantees is listed in verify/rule_list.h.
//
// Valid does not mean compiled: an op or a type that is legal HLO but that codegen does not know is
// accepted here and refused by name later.
#pragma once

#include <vector>

#include "compiler/ir/module.h"
#include "layout/error.h"

namespace hlojit {

/// Every broken rule of the module, in text order; empty if it is valid. An instruction whose own
/// shape or whose operands' shapes are broken is reported for that and not checked further, so that
/// one mistake gives one finding. Linear in the size of the module; it also runs after every pass.
std::vector<Diagnostic> verify(const Module& module);

/// Throws Error(kInvalid) with all of them, if there is any.
void check(const Module& module);

}  // namespace hlojit

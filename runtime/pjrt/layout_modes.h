// The layouts that a program asks for its parameters and results.
//
// Frontends say "default" (row-major), "auto" (whatever suits the program) or a layout as HLO text has it, one
// a leaf, joined by ';': in the module's frontend attributes "arg_layout_modes" and "out_layout_modes".
#pragma once

#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {

/// Gives the leaves, which have the default layouts, those that the module asks for. Parameters left to us have the
/// default; results left to us come as they are made of the parameters, so that a transposed one moves nothing.
void apply_layout_modes(const Module& module, std::vector<Leaf>& parameters, std::vector<Leaf>& results);

}  // namespace hlojit::pjrt

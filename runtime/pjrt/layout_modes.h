// The layouts that a program asks for its parameters and results, and the memories for its results.
//
// Frontends say "default" (row-major), "auto" (whatever suits the program) or a layout as HLO text has it, one
// a leaf, joined by ';': in the module's frontend attributes "arg_layout_modes" and "out_layout_modes".
#pragma once

#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {

/// Gives the leaves, which have the default layouts, those that the module asks for. Parameters left to us have the
/// default; results left to us come as they are made of the parameters, so that a transposed one moves nothing.
void apply_layout_modes(const Module& module, std::vector<Leaf>& parameters, std::vector<Leaf>& results);

/// The memory of each result, an index into kMemoryKinds, by the module's frontend attribute "out_memory_kinds":
/// kinds joined by ';'. All of them are one memory here; only what the frontend is told differs.
std::vector<size_t> read_memory_kinds(const Module& module, size_t results);

}  // namespace hlojit::pjrt

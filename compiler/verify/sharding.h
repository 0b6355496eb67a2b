// A sharding says how an array is cut among devices, in a notation of its own:
//
//     {devices=[2,1,2]<=[4] last_tile_dim_replicate}    dim 0 cut in 2, each part on 2 devices
//     {devices=[2,2]0,1,2,3}   {maximal device=0}   {replicated}
//
// The program keeps it as text; here stands what must hold of it.
#pragma once

#include <string_view>

#include "compiler/ir/module.h"

namespace hlojit::rules {

/// Fails unless this may be the sharding of a value of this shape. Those of tuples, and those of words alone, are not
/// looked into.
void need_sharding(std::string_view sharding, const Shape& shape);

/// Fails if a loop and the parameters and root of what it runs, or a conditional and the roots of its branches, say
/// different things where they say anything. A list of devices written in two forms passes.
void need_shardings_agree(const Instruction& i);

}  // namespace hlojit::rules

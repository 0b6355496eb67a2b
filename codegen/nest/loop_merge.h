// Boxes of a domain that read the same elements, met together. The parts of a concatenation are boxes of their own:
// the components of a cross product read all of both operands, each for itself; in one loop they are read once.
#pragma once

#include <functional>
#include <vector>

#include "codegen/nest/accesses.h"
#include "codegen/nest/loop_plan.h"

namespace hlojit::codegen {

/// The pieces, those that have equal loops and read some of the same elements as one: LoopPiece::together. `walk`: the
/// accesses at coordinates of the domain.
std::vector<LoopPiece> merge_pieces(std::vector<LoopPiece> pieces,
                                    const std::function<void(AccessWalk&, const Coords&)>& walk, VarSource& vars);

}  // namespace hlojit::codegen

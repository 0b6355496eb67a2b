// What tiles and panels leave empty at the edges of an array: a nest that goes over it as if it were elements, so that
// no loop is cut short, and zeros where a product reads it.
#pragma once

#include <functional>
#include <vector>

#include "codegen/kernels/kernel.h"
#include "codegen/nest/accesses.h"
#include "compiler/plan/kernel.h"

namespace hlojit::codegen {

/// Rows of a common tile, T(8,128). They alternate in memory: side by side, it is read from end to end.
inline constexpr int kTileRows = 8;

/// Sizes of the outer nest. What tiles leave empty at their edges is part of all buffers that have the same tiles:
/// there it is computed like the rest, from whatever stands in it, so that no digit is cut short. No result may have
/// an element there, as one whose tiles begin anew in the next row does. (Swish of 1021 x 1019 bf16 in T(8,128)(2,1)
/// took three times as long as untiled.) `walk`: reads and writes at an element of the nest.
Ints nest_sizes(const KernelPlan& plan, const std::function<void(AccessWalk&, const Coords&)>& walk, VarSource& vars);

/// Zeros behind the columns of a product's last panel, if the fusion makes panels: they are multiplied like the rest,
/// and what stood there may be subnormal, which takes a hundred times as long (131x7 by 7x171 on Sapphire Rapids: 44
/// us, 3.5 without).
std::vector<KernelFunction> clear_rest_of_panels(const NextModule& module, const Instruction& fusion,
                                                 const KernelPlan& plan, const Surroundings& around,
                                                 const EmitOptions& options, VarSource& vars);

}  // namespace hlojit::codegen

// Steps: the ops that native code does not compute but hands to the runtime (sort, factorisations,
// custom calls, moves between devices, host queues). They stay instructions of their own through
// fusion and layouts until entry calls them, each by its number; both sides take the number from
// here.
//
// A step reads and writes whole buffers in the layout that `step_layouts` names. `layouts` puts
// copies where the module has another, and those fuse with their neighbours like any copy.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

bool is_step(const Instruction& instruction);

/// All steps of the sequential computations, in the order that numbers them.
std::vector<const Instruction*> steps(const Module& module);

struct StepLayouts {
  std::vector<Shape> operands;
  Shape result;
};
/// Operands and result as the step wants them in memory.
StepLayouts step_layouts(const Instruction& step);

}  // namespace hlojit

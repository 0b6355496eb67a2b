// Turns groups of instructions into fusion instructions with fused computations: the mechanics shared
// by `fuse`, `wrap` and `alias`. Which groups are worth it is their business.
#pragma once

#include <span>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/plan/kernel.h"

namespace hlojit {

/// Instructions that become one kernel. A value may be a member of several groups (it is then computed
/// in each), but is a root of at most one.
struct KernelGroup {
  std::vector<Instruction*> members;  ///< execution order
  std::vector<Instruction*> roots;    ///< values that leave, in the order of the fusion's results
  KernelPlan plan;                    ///< in terms of the members
};

/// Replaces all kernel ops of `computation` by one fusion a group; groups in any order. Every kernel op
/// with a user outside kernel ops must be a root of a group; the others vanish. Small constants
/// (is_inline_constant) are copied into the fused computations that read them. Instructions that are no
/// members of any group stay.
void build_fusions(Computation& computation, std::span<const KernelGroup> groups);

/// Gives every op of several results (has_several_results) element-wise users only: whoever reads its tuple as a whole
/// reads a tuple of its elements instead. Returns whether anything changed.
bool split_variadic_results(Computation& computation);

/// A fusion that copies `value` (an array) into memory of its own, appended to its computation.
Instruction* add_copy_fusion(Instruction* value);

}  // namespace hlojit

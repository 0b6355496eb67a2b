// What of a while loop can do without calls and without memory.
//
// A step of a small loop takes as long as calling its kernels and passing scalars on through memory: 6 ns for a
// counter and one fused multiply-add, whose own chain is 2. So kernels that take less than a call is worth are
// inlined into the loop, and scalars and arrays of a few that only they read and write stand in stack slots of
// their own, which LLVM makes registers; memory has them again when the loop is over.
#pragma once

#include <unordered_set>
#include <vector>

#include "compiler/plan/buffers.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

struct LoopState {
  std::unordered_set<const Instruction*> inlined;  ///< fusions
  std::vector<BufferSlice> slots;                  ///< what stands in them: slices of one kind do not overlap
};

/// For a while of the entry's own sequence, with all that is nested in it. Nothing to be inlined: empty.
/// `donates`: parameters may be results' memory.
LoopState loop_state(const Instruction& loop, const BufferPlan& plan, const TargetInfo& target, bool donates);

}  // namespace hlojit::codegen

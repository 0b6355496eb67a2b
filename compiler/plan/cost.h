// What a kernel costs, before it exists: the one yardstick that fuse compares plans with.
//
//   ns = max(bytes moved / bandwidth of the level each buffer fits, operations / lanes) + the call
//
// Only shapes and op prices enter, never names or particular sizes, so that a decision is the same on
// every run. The numbers are those of one current core; fuse only ever compares sums of them, and both
// sides of a comparison are wrong in the same way.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/ir/instruction_set.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/movements.h"

namespace hlojit {

struct KernelCost {
  double memory_ns = 0;
  double bytes_read = 0, bytes_written = 0;  ///< of operands and results, those wanted, once
  double compute_ns = 0;
  double call_ns = 0;
  double cores = 1;          ///< that may share what is worth handing over
  int64_t instructions = 0;  ///< rough size of the emitted loop bodies, in instructions
  int64_t buffers = 0;       ///< operands and results
  int64_t streams = 0;       ///< of these, as large as the domain: each holds vectors in flight
  bool once = true;          ///< every value is computed at one place of the loop bodies, for the element at hand
  /// What one core works on it; with what calling it costs.
  double work_ns() const;
  double total_ns() const;
};

/// `members` in execution order and `plan` as plan_kernel understood them; the values that leave are plan.roots. Time
/// and memory O(members + operands). `wanted` is given, for each value that the kernel reads, at how many places it
/// wants its elements: a broadcast is one, a window's slices are many.
KernelCost kernel_cost(std::span<const Instruction* const> members, const KernelPlan& plan, Products& products,
                       Movements& movements, InstructionMap<double>& wanted);
KernelCost kernel_cost(std::span<const Instruction* const> members, const KernelPlan& plan, const TargetInfo& target);

/// The same of a fused computation.
KernelCost kernel_cost(const Computation& fused, const KernelPlan& plan, const TargetInfo& target);

}  // namespace hlojit

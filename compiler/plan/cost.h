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

#include "compiler/analysis/access.h"
#include "compiler/ir/instruction_set.h"
#include "compiler/plan/kernel.h"

namespace hlojit {

/// Which elements of its operands data movement reads for an element of its result: the same in each kernel that it is
/// tried in.
class Movements {
 public:
  /// Where it reads, of what the cost depends on.
  struct Place {
    std::vector<int> varies;  ///< with these dims of the result, whether known or looked up
    double elements = 0;      ///< that all of the result wants there, but for what loops further in have in common
    bool own = false;         ///< the result's element, but for dims of 1
    bool looked_up = false;   ///< at a value that varies along the result
  };
  struct Movement {
    Coords at;  ///< variables from 0
    AccessRelation relation;
    std::vector<Place> symbols, reads;  ///< of the relation's
  };
  /// Holds until another one is asked for.
  const Movement& of(const Instruction* i);

 private:
  InstructionMap<Movement> known_;
};

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
KernelCost kernel_cost(std::span<const Instruction* const> members, const KernelPlan& plan, const TargetInfo& target,
                       Movements& movements, InstructionMap<double>& wanted);
KernelCost kernel_cost(std::span<const Instruction* const> members, const KernelPlan& plan, const TargetInfo& target);

/// The same of a fused computation.
KernelCost kernel_cost(const Computation& fused, const KernelPlan& plan, const TargetInfo& target);

}  // namespace hlojit

// What is known of a kernel without products before its loops are: what its stages read, write and compute at an
// element of the outer nest.
#pragma once

#include <set>

#include "codegen/kernels/stages.h"
#include "codegen/nest/accesses.h"
#include "codegen/target.h"
#include "compiler/plan/kernel.h"

namespace hlojit::codegen {

class NestFacts {
 public:
  /// Keeps references to the plan, the stages, the target and the variables.
  NestFacts(const Computation& fused, const KernelPlan& plan, const Stages& stages, const Target& target,
            VarSource& vars);

  /// Goes over what the stages read and write at an element.
  void visit(AccessWalk& walk, const Coords& at) const;
  /// The same, and learns from it what is below, of all boxes together: that of padding comes last, and has no windows.
  void learn(AccessWalk& walk, const Coords& at);

  /// Elements of a result share bytes; some result is conditions.
  bool shares_bytes = false, gives_masks = false;
  /// Types that nothing is computed with.
  std::set<DType> in_bits;

  /// The most of AccessWalk's lane_bytes, operations, places; any has_reduction, combines_masks; all waits_for_memory.
  int widest = 1, operations = 0, places = 0;
  bool pulls = false, masks = false, waits = true;
  int64_t inner_step = 0;   ///< most bytes from one element to the next along the inner dims
  bool finds_rows = false;  ///< neighbours along these, from where an index says (ElementEmitter::load_rows)
  int gathers = 0;          ///< most reads of a walk from where an index says, of elements that are loaded one by one

  /// The loads of a vector of each are instructions enough to keep the processor busy. (One found by the other, 11 in
  /// all: 17 us by four vectors, 28 by single ones; written out, 16, but 111 ms to compile for 22.)
  bool few_gathers() const { return 0 < gathers && gathers <= 4; }

 private:
  template <class Each>
  void over_stages(AccessWalk& walk, const Coords& at, const Each& each) const;

  const KernelPlan& plan_;
  const Stages& stages_;
  const Target& target_;
  VarSource& vars_;
};

}  // namespace hlojit::codegen

// A pass: one run over the inner elements of a kernel in which several reductions are combined side by side
// and anything else may be done with each element on the way. Stages of a plan are passes, and so is a
// reduction that is pulled as a value (a dot without micro-kernel, a window).
#pragma once

#include <functional>
#include <vector>

#include "codegen/nest/element_emitter.h"

namespace hlojit::codegen {

struct Pass {
  /// A reduction for one element of its result.
  struct Member {
    const Instruction* instruction;
    Coords coords;
  };
  std::vector<Member> members;
  Ints sizes;  ///< what is run over: the reduction variables of every member
  /// Reads and writes of `with`, and `with` itself: what else is done at each element. May be empty.
  std::function<void(AccessWalk&, const Coords&)> with_accesses;
  std::function<void(Scope&, const Coords&)> with;
  /// Not empty: the members are prefix windows and this is the element where a value of the inner coordinate
  /// leads to; `with` finds their values there, combined of all that were visited before.
  std::function<Coords(const Coords&)> running;
  bool serial = false;  ///< lanes are on outer dims, whatever the members' coordinates say
  bool overlap = true;  ///< an element may be visited twice (its reductions count it once)
};

/// How many vectors one iteration computes side by side (as one wide value that LLVM splits): long chains of
/// dependent operations fill the scheduler unless others stand between them. Swish of 16M bf16: 11.6 ms
/// with one, 9.9 with two, 8.0 with four; random normals 1.9 ms with two, 1.1 with four. Very large bodies would spill
/// and compile slowly, and so would long ones that read at many places.
int vectors_in_flight(int operations, int places, const TargetInfo& target);

/// The pass of a reduction that some value needs.
Pass pulled(const Instruction* reduction, const Coords& coords);

}  // namespace hlojit::codegen

// Where data movement reads, as far as costs depend on it; kept, for fuse prices the same movement in many kernels.
#pragma once

#include <vector>

#include "compiler/analysis/access.h"
#include "compiler/ir/instruction_set.h"

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
    bool each = false;        ///< one that varies along the result's neighbours
    double scattered = 0;     ///< 1: neighbours in the result's memory are none in the operand's; less: they are near
    bool split = false;       ///< a coordinate is a quotient or a rest of the one along the result's neighbours
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

}  // namespace hlojit

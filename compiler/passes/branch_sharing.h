// Which results of a conditional take the memory of an operand, whatever branch runs.
//
//   c = (f32[64]) conditional(p, (a, i), (a)), branches {b0, b1}
//   b0 { a, i = parameter     ROOT r = tuple(dynamic-update-slice(a, u, i)) }     updates a in place
//   b1 { a = parameter        ROOT r = tuple(a) }                                 hands it on
//     ->  result 0 takes the memory of a: neither branch moves it
//
// A result does if it comes from the same array in every branch where it comes from one at all, and the
// caller can do without that array from then on. A branch in which it comes from none makes it there.
// `alias` makes it so: what cannot keep to it gets a copy.
#pragma once

#include "compiler/analysis/dataflow.h"

namespace hlojit {

class BranchSharing {
 public:
  BranchSharing(const Module& module, const Dataflow& flow);

  /// For each leaf of the result of `branch`'s conditional the leaf of the branch's parameter whose memory it takes;
  /// -1: none, or the array is not handed to this branch.
  const std::vector<int64_t>& leaves(const Computation* branch) const { return leaves_.at(branch); }

 private:
  using Readers = std::unordered_map<ArrayValue, std::vector<Instruction*>, ArrayValueHash>;

  void look_at(Computation& c);
  void share(Instruction& conditional, const Readers& readers);
  bool may_be_given(const ArrayValue& v, const Instruction& conditional) const;
  void find_origins(const Computation& c);
  ArrayValue common_origin(const Instruction& conditional, int64_t leaf) const;
  ArrayValue origin(ArrayValue v) const;
  ArrayValue source(const ArrayValue& v) const;

  const Dataflow& flow_;
  std::unordered_map<const Computation*, std::vector<int64_t>> leaves_;
  std::unordered_map<ArrayValue, ArrayValue, ArrayValueHash> origins_;  // of results of conditionals
};

}  // namespace hlojit

// Which computations have effects, found in one walk: has_side_effect goes into loops and branches again for each level
// of nesting.
#pragma once

#include <unordered_set>

#include "compiler/ir/module.h"

namespace hlojit {

class Effects {
 public:
  explicit Effects(const Module& module);

  /// has_side_effect of an instruction of the module as it was, or of a clone of one.
  bool has(const Instruction& i) const;
  /// Those that hold an effect, in callees included.
  bool in(const Computation& c) const { return computations_.contains(&c); }

 private:
  std::unordered_set<const Computation*> computations_;
};

}  // namespace hlojit

// A value for each instruction of one computation, found by its number there: for passes over all of a computation.
// (Sets and maps of some instructions: instruction_set.h.)
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

/// Of instructions that are there when it is made.
template <class T>
class InstructionTable {
 public:
  explicit InstructionTable(const Computation& c, T initial = {}) : values_(c.numbers(), initial) {}
  T& operator[](const Instruction* i) { return values_[i->number()]; }
  const T& operator[](const Instruction* i) const { return values_[i->number()]; }

 private:
  std::vector<T> values_;
};

}  // namespace hlojit

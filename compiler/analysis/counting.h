// Does this value number the elements along a dim? Sorts and reductions carry such numbers beside their elements, to
// tell which of equal ones came first. An iota seen through broadcasts and dims of size 1, in integers of 32 bits or
// more: narrow ones and floats run out of different numbers.
#pragma once

#include <cstdint>

#include "compiler/ir/module.h"

namespace hlojit {

bool counts_along(const Instruction& value, int64_t dim);

}  // namespace hlojit

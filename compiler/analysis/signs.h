// What is known of a float's sign, whatever the program's inputs are. What an exponential is taken of mostly is no more
// than zero: how far an element is below the largest of its row in a softmax, -|x|, -x^2 / 2. It cannot overflow then.
#pragma once

#include "compiler/ir/module.h"

namespace hlojit {

/// No element is above zero, but any may be NaN. (Where products are contracted to multiply-adds in one place and not
/// in another, some may be above by what that changes.) `value`: an array of floats.
bool is_nonpositive(const Instruction& value);

}  // namespace hlojit

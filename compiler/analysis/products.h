// Where values are products: a product is contracted into a sum only if the sum's other operand is none, for of two
// products one would be rounded and the other not, and x*y - y*x must be 0. That must not depend on which kernel
// computes what, so a fusion's operands are followed into the fusions that make them.
// What a loop or a branch hands on counts as no product.
#pragma once

#include <functional>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

/// The value, or one that it is made of by negations and by moving elements, is a product. `operand`: whether a
/// parameter of the value's computation is one.
bool is_product(const Instruction* value, const std::function<bool(const Instruction* parameter)>& operand);

/// Which operands of a fusion are products, in the computation that runs it.
std::vector<bool> product_operands(const Instruction& fusion);

}  // namespace hlojit

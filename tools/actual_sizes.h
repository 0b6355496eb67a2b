// The oracle for sizes that are known at run time only: an op on arrays with dynamic dimensions (`<=n`) is the op on
// arrays of just the sizes that they turned out to have. That is what the words mean, and nothing of how they are
// compiled (bounds, masks, sizes beside the arrays) comes in.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit::tools {

/// Whether sizes come in: dynamic dimensions among the operands and the result, or an op that asks for or sets a size.
bool has_actual_sizes(const Instruction& i);

/// The op with the shapes that the operands have, made in `scratch`, which must outlive it. Of an
/// elementwise op's operands one that is as large as the bound, and no more than said, is cut to what the others are,
/// and one of a single element is repeated. Throws
/// Error(kUnsupported) for ops whose result does not follow from that.
const Instruction& with_actual_sizes(Module& scratch, const Instruction& i, std::vector<Literal>& operands);

/// get-dimension-size and set-dimension-size themselves; nullopt for other ops. A size is kept between 0 and the bound.
/// Throws Error(kUnsupported) for a size above the actual one: what is there is not said.
std::optional<Literal> sized(const Instruction& i, const std::vector<Literal>& operands);

/// The first elements along each dimension.
Literal cut_to(const Literal& x, const Ints& sizes);

}  // namespace hlojit::tools

// Sums, products and extrema of floats: the order of their terms is free.
#pragma once

#include "compiler/ir/module.h"

namespace hlojit {

/// The computation only adds, multiplies and takes extrema of its parameters, all of one float type. What it adds up
/// may be kept in a wider type, and is rounded once, at the end.
bool is_plain_float(const Computation& computation);

}  // namespace hlojit

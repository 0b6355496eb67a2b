// What reductions combine with: most computations they call are one op of two parameters, and from that op
// (its traits in ir/ops.h) follows how terms may be regrouped and what may be added unseen.
#pragma once

#include <optional>

#include "compiler/ir/module.h"

namespace hlojit {

/// The op of a computation that is `op(p0, p1)`, in either order, where that op combines (op_trait::kCombines).
std::optional<Opcode> combining_op(const Computation& computation);

/// Whether kernels can apply the computation to elements: arithmetic on scalars, at the end perhaps a tuple of it. Then
/// lanes of a vector need not go different ways.
bool is_scalar_code(const Computation& computation);
/// One instruction of it, but for the tuple.
bool is_scalar_code(const Instruction& instruction);

/// The computation only adds, multiplies and takes extrema of its parameters, all of one float type: the order of such
/// terms is free. What it adds up may be kept in a wider type, and is rounded once, at the end.
bool is_plain_float(const Computation& computation);

/// The scalar of this type that changes nothing in op(scalar, x), if that is a number: 0, for floats -0
/// (which even -0 does not feel), or 1. nullopt for extrema and logic, which are idempotent.
std::optional<Literal> neutral_number(Opcode op, DType type);
/// The largest or the least value of a type; in total order, of floats a NaN.
Literal extreme_number(DType type, bool largest, bool total_order = false);

}  // namespace hlojit

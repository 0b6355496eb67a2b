// Index maps: which operand element a result element reads. Data movement composes on index
// expressions: transpose renames, broadcast drops, slice scales and shifts, reverse negates, reshape
// re-cuts. Ops whose map depends on run-time values or splits the domain (dynamic-slice, gather, pad,
// concatenate) are handled where values can be emitted; see codegen/nest.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/module.h"
#include "layout/index_expr.h"

namespace hlojit {

using Coords = std::vector<IndexExpr>;

/// Coordinates in operand k of the element at `coords` of the result, for ops whose map is fixed:
/// elementwise (a scalar operand gets {}), broadcast, reshape, transpose, slice, reverse, copy and
/// untiled bitcast. nullopt for all other ops.
std::optional<Coords> operand_coords(const Instruction& instruction, size_t k, const Coords& coords);

/// Reduce: coordinates in an input from those of the result and of the reduced dims (in the order of
/// ascending dimension number).
Coords reduce_input_coords(const Instruction& reduce, const Coords& kept, const Coords& reduced);
/// Sizes of the reduced dims, ascending dimension number.
Ints reduced_sizes(const Instruction& reduce);

/// Dot: coordinates in lhs (k = 0) or rhs (k = 1) from those of the result and the contracting dims.
Coords dot_input_coords(const Instruction& dot, int k, const Coords& result, const Coords& contracting);
Ints contracting_sizes(const Instruction& dot);

}  // namespace hlojit

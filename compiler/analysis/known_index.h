// Integers that are known from where they stand: what iotas and constants make by arithmetic, moved about. Indices are
// often no more than that (x[arange(n)[:, None] + arange(w)], windows over a signal; x[arange(n), arange(n)], a
// diagonal): then an element's place is an address like any other, read by vectors and not looked up.
#pragma once

#include <optional>

#include "compiler/analysis/access.h"

namespace hlojit {

/// The integer `value` at these coordinates, as an expression of their variables; nullopt if the program's inputs
/// decide it, or if that cannot be told. Never wraps: the expression's range fits the type.
std::optional<IndexExpr> known_index(const Instruction& value, const Coords& at, VarSource& vars);

/// access_relation, but symbols whose values are known so, and need no clamping, are expressions. For a kernel that is
/// fused already: before, what makes an index may end up in another one.
AccessRelation known_relation(const Instruction& instruction, std::span<const IndexExpr> result,
                              std::span<const IndexExpr> reduced, VarSource& vars);

}  // namespace hlojit

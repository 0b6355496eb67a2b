// Questions about ops that move elements, answered by their relations (access.h).
#pragma once

#include <set>
#include <span>

#include "compiler/analysis/access.h"

namespace hlojit {

/// Data movement whose map is known when compiling: one read that always holds, nothing known at run time.
bool moves_by_fixed_map(const Instruction& instruction);

/// Of a move (OpClass::kMoves) the operands whose elements its result is made of. They come first: starts, indices and
/// sizes follow.
std::span<Instruction* const> moved_operands(const Instruction& move);

/// How many operands an update (op_trait::kUpdates) changes: its first ones, each of which is a result.
size_t update_count(const Instruction& update);

/// The slice, static or dynamic, takes the box that the update, a dynamic-update-slice of as large an array, replaces.
bool takes_updated_box(const Instruction& slice, const Instruction& update);

/// Narrow floats and c64 if a fused computation only moves them: no op of it computes with them, so that their bits, an
/// integer, can stand for them. (Taken into parts and put together again, c64 took LLVM 1.3 to 1.8 times as long to
/// compile.)
std::set<DType> moved_types(const Computation& fused);

/// A reshape whose dims' borders fall into the middle of its operand's, as [4,6] as [3,8]: an element's place is a
/// quotient of several dims, and loops over either side have no digits in common.
bool crosses_borders(const Instruction& reshape);

}  // namespace hlojit

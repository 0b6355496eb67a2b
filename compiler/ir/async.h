// Asynchronous pairs: which op a start stands for.
#pragma once

#include <optional>
#include <span>

#include "compiler/ir/module.h"

namespace hlojit {

/// Generic async sugar: `negate-start(p)` is an async-start that wraps a negate. Its op name is
/// kept under this key in Attributes::other.
inline constexpr std::string_view kWrappedOp = "wrapped-op";

/// The opcode that an async-start, -update or -done in sugar form wraps.
std::optional<Opcode> wrapped_op(const Instruction& instruction);

/// Adds the op that `start` starts (async-start, copy-start, all-reduce-start, all-gather-start,
/// collective-permute-start) to `into`, on the given operands and with the shape of what its done
/// gives. The long form of async-start becomes a call.
Instruction* clone_started_op(Computation& into, const Instruction& start, std::span<Instruction* const> operands,
                              const Shape& result);

}  // namespace hlojit

// XLA's own form of topk, a custom call, as its rewriters leave it in dumps.
#pragma once

#include <optional>

#include "compiler/ir/module.h"

namespace hlojit {

/// The attributes of the topk that the custom call means; nothing if it is none.
std::optional<Attributes> top_k_call(const Instruction& call);

}  // namespace hlojit

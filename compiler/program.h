// Runs a whole program on the evaluator, dynamic sizes included: such a program is evaluated as the
// static one that pass `dynamic` makes of it. Arguments may be smaller than their bounds; results are
// cut to their sizes.
#pragma once

#include <span>

#include "compiler/eval/evaluator.h"

namespace hlojit {

Literal evaluate_program(const Module& module, std::span<const Literal> arguments, const EvalOptions& options = {});

}  // namespace hlojit

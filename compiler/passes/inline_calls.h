// Leaves one flat graph a control-flow computation: calls and foreign fusions are replaced by what they
// call, and every computation that while or conditional runs has one call site.
//
//   f { a = f32[] parameter(0)  ROOT n = f32[] negate(a) }
//   y = f32[] call(x), to_apply=f          ->   n = f32[] negate(x)
//   y = f32[8] fusion(x), calls=g          ->   the body of g, unless the fusion is one of our own
//
// Fusions that we printed ourselves (backend_config names a kernel and the planner agrees) stay.
// Test: tests/hlo/opt/inline_calls.hlo.
#pragma once

#include <span>

#include "compiler/pipeline.h"

namespace hlojit {

/// Throws Error(kFailed) if the calls multiply to more than a million instructions.
bool inline_calls(Module& module, const PipelineOptions& options);

/// Appends `body` to `into`, with `arguments` by parameter number in place of its parameters; returns its result.
Instruction* paste(Computation& into, const Computation& body, std::span<Instruction* const> arguments);

/// Clones computations that control flow runs from two places, or that are also applied to elements. Throws like
/// inline_calls.
bool unshare(Module& module);

/// Whoever reads an element of a tuple instruction reads the element itself.
bool bypass_tuples(Computation& computation);

}  // namespace hlojit

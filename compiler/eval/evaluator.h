// The evaluator: what HLO means, one instruction after the other. It is the oracle that compiled
// code is compared with and the engine of constant folding; no path of run, bench or the API uses
// it.
//
// Slow, obvious and independent of code generation: values are dense row-major literals, one loop
// nest an op. Elementary functions and roundings come from compiler/math, which is proven by its
// own table. Where the order of a floating-point sum is free (reduce, dot, convolution, windows) it
// is added up in f64 and rounded once, so that the oracle is the more exact side of a comparison.
//
// Modules must have passed the verifier. What a hostile module can still do is ask for too much: an
// array above `max_bytes` or calls nested too deep end in Error(kFailed). Time is the caller's
// matter: `max_steps` bounds executed instructions for those who need a bound, stop.h ends it from outside.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "compiler/ir/module.h"

namespace hlojit {

struct EvalOptions {
  /// Scatter windows partly out of bounds: false drops element by element, true the whole window.
  bool scatter_oob_window = false;
  /// Instructions executed before Error(kFailed), loop iterations counted; 0 = no bound.
  int64_t max_steps = 0;
  /// Largest dense array an instruction may make.
  int64_t max_bytes = int64_t{1} << 33;
};

/// Runs a computation. Arguments by parameter number, of compatible shapes (layouts are ignored);
/// tuples are tuple literals, tokens are empty literals of token shape. The result has the root's
/// shape. Throws Error: kUnsupported for ops without a meaning here (custom calls but those of
/// factors.h, host queues, channels, run-time sizes), kInput for arguments that do not fit, kFailed for resources.
Literal evaluate(const Computation& computation, std::span<const Literal> arguments, const EvalOptions& options = {});

/// Value of one instruction for given operand values, or nullopt if it has none that depends on
/// them alone: parameters, effects, random numbers, ops without a meaning here. Throws like
/// evaluate.
std::optional<Literal> evaluate_instruction(const Instruction& instruction, std::span<const Literal> operands,
                                            const EvalOptions& options = {});

/// How often the evaluator was entered in this process, by either function. A test holds the run
/// paths to leaving it where it is.
int64_t evaluation_count();

}  // namespace hlojit

// How far a right program may be from the evaluator: a running error analysis beside an evaluation.
//
// Compiled elementwise code has the evaluator's bits, but for products that are contracted into sums (not
// in strict mode) and sums whose order is free, unless the values at hand are exact in every order. What
// such freedom may change is bounded by the actual values and carried along: through a difference it grows
// relative to the result, through a comparison that it can tip it becomes everything (then nothing is
// claimed). So a right program raises no alarm, and a wrong one has nowhere to hide.
#pragma once

#include <vector>

#include "compiler/ir/module.h"
#include "tools/host_side.h"

namespace hlojit::tools {

struct ErrorBound {
  Literal value;      ///< what the evaluator says of a result leaf
  double error = 0;   ///< absolute, for every element; infinite if the program is chaotic for these values
  bool part = false;  ///< of what the program returns: what is behind it is not said
};

/// Evaluates the entry computation on every device that the module's header says; `leaves[d]` are the values
/// of its parameters' arrays on device d, depth first. The results by device, and behind them what it handed to the
/// host (HostSide::taken), which null knows nothing of. Throws what evaluate throws.
std::vector<std::vector<ErrorBound>> evaluate_with_bounds(const Module& module,
                                                          const std::vector<std::vector<Literal>>& leaves, bool strict,
                                                          bool scatter_oob_window, const HostSide* host = nullptr);

/// As much of `got` as `want` speaks of.
Literal said_part(Literal got, const ErrorBound& want);

/// The first element of `got` that is further from `want` than it may be (NaNs are one class), or -1.
int64_t first_beyond(const Literal& got, const ErrorBound& want);

}  // namespace hlojit::tools

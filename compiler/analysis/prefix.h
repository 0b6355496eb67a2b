// Windows that hold everything up to (or from) each element: cumulative sums and their kin, as HLO spells
// them. A window a result would take n*n/2 steps; one running value takes n.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/module.h"

namespace hlojit {

struct PrefixWindow {
  int64_t dim;     ///< the one that the windows go along
  bool backwards;  ///< from each element to the last
};

/// Of a reduce-window with one result: its windows along one dim begin at the first element, or end at the last and may
/// be combined from there.
std::optional<PrefixWindow> prefix_window(const Instruction& op);

}  // namespace hlojit

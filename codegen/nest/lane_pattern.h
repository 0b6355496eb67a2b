// Where the elements of a vector's lanes lie to each other, as far as that is known: of lanes that run across rows
// each of these is a constant.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/analysis/access.h"

namespace hlojit::codegen {

/// Lane l is at base + offsets[l], of which the least is 0.
struct LanePattern {
  IndexExpr base;
  std::vector<int64_t> offsets;
};

/// None if some part of the address depends on the lane and on something else together.
std::optional<LanePattern> lane_pattern(const IndexExpr& address, int lane, int lanes);

/// Lanes of which each is `step` behind the one before where the guards hold: nothing wraps between them.
struct BetweenWraps {
  int64_t step = 0;
  std::vector<Guard> guards;
};

/// None if most vectors of so many lanes have something wrap within.
std::optional<BetweenWraps> between_wraps(const IndexExpr& address, int lane, int lanes);

/// The fewest runs of `size` elements side by side that hold all offsets: where each begins, ascending.
std::vector<int64_t> windows_of(std::vector<int64_t> offsets, int64_t size);

}  // namespace hlojit::codegen

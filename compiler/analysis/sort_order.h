// Which order a comparator means, if it is that of one key: compare(a, b) of one operand, plain or
// after the canonical form that JAX gives to floats (-0 as 0, every NaN as one). Such keys are
// mapped to integers and sorted by them; any other comparator is merged with its own code.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/module.h"

namespace hlojit {

struct SortOrder {
  int64_t operand = 0;  ///< the key
  bool descending = false;
  /// Floats: -0 ties with 0 and NaNs with each other, as the greatest. Else all bit patterns are
  /// different, in IEEE's total order.
  bool canonical = false;
};

/// nullopt: not one key, or of a type without such a mapping.
std::optional<SortOrder> sort_order(const Computation& comparator);

}  // namespace hlojit

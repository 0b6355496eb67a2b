// Which order a comparator means, if it is that of keys one after the other: compare(a, b) of one operand, plain or
// after the canonical form that JAX gives to floats (-0 as 0, every NaN as one); or of the first operand that differs,
// first < first' or (first == first' and second < second') and so on. Such keys are mapped to integers and sorted by
// them; any other comparator is merged with its own code.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

struct SortKey {
  int64_t operand = 0;
  bool descending = false;
  /// Floats: -0 ties with 0 and NaNs with each other, as the greatest. Else all bit patterns are
  /// different, in IEEE's total order.
  bool canonical = false;
  DType type = DType::kPred;
};

/// The first says most. Empty: another order, or of a type without such a mapping.
std::vector<SortKey> sort_order(const Computation& comparator);

/// The same, if all keys side by side fit an integer that the library sorts by (of several, 64 bits); else empty.
std::vector<SortKey> integer_order(const Computation& comparator);

}  // namespace hlojit

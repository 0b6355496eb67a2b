// Comparing literals, and random inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/ir/literal.h"

namespace hlojit::test {

/// How far apart two values may be; any one that is met suffices. The default is bit for bit, NaNs
/// being one class.
struct Tolerance {
  std::optional<double> ulp;       ///< units in the last place of the type
  std::optional<double> relative;  ///< of max(|expected|, root mean square of the leaf)
  /// relative . |expected| + absolute, with those of a golden file.
  struct Golden {
    double relative = 0, absolute = 0;
  };
  std::optional<Golden> golden;
  bool exact() const { return !ulp && !relative && !golden; }
};

/// The tolerance between two correct implementations of free-order float programs, by type.
Tolerance usual_tolerance(DType type);

/// Empty if the leaves agree, else the first disagreement and how many there are.
std::string difference(const Literal& expected, const Literal& actual, const Tolerance& tolerance);

/// A leaf of random values: floats in [-1, 1), integers in [-8, 8] cut to their range, pred fair.
/// The same bits everywhere for the same seed and leaf number.
Literal random_leaf(const Shape& shape, uint64_t seed, uint64_t leaf);

}  // namespace hlojit::test

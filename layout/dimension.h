// Dimensions as people count them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layout/shape.h"

namespace hlojit {

/// How many dimensions an array really has: those of size above 1 (a size of 0 does not count either).
inline int64_t true_rank(const Shape& shape) {
  return std::ranges::count_if(shape.dims, [](int64_t size) { return size > 1; });
}

/// Dimension -1 is the last of `rank`, -2 the one before; others are as they are, in range or not.
inline int64_t from_last(int64_t dimension, int64_t rank) { return dimension < 0 ? dimension + rank : dimension; }

}  // namespace hlojit

// Arrays with dynamic dimensions at the boundary of a program: callers give and get arrays of their
// real sizes, native code works on arrays of the bounds and on the sizes beside them
// (compiler/passes/dynamic.h).
#pragma once

#include <cstdint>
#include <vector>

#include "hlojit/hlojit.h"

namespace hlojit {

/// A dynamic dimension of a parameter or result leaf.
struct DynamicLeafDim {
  size_t leaf, dim;
};
std::vector<DynamicLeafDim> dynamic_leaf_dims(const std::vector<Shape>& leaves);

/// Whether a caller may pass `given` for `wanted`: no dynamic dimension beyond its bound, all
/// others equal, in wanted's layout or the default one.
bool fits_bounds(const Shape& given, const Shape& wanted);
/// The same elements in an array of other sizes: what both have. Bytes beyond are unspecified.
Buffer resized(const Buffer& from, const Shape& to);

}  // namespace hlojit

// Floats narrower than f32, as bits: what literals need to read and print them.
#pragma once

#include <cstdint>

#include "layout/dtype.h"

namespace hlojit {

/// Bits of `value` rounded once to a narrow float type, nearest, ties to even, with the overflow
/// rules of `convert` (infinity, NaN or saturation, by type).
uint32_t narrow_from_double(DType type, double value);
/// Exact value of the bits.
double narrow_to_double(DType type, uint32_t bits);

}  // namespace hlojit

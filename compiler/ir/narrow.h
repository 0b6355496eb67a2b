// Floats narrower than f32, as bits: what literals need to read and print them; what is computed in instead.
#pragma once

#include <cstdint>

#include "layout/dtype.h"

namespace hlojit {

/// What values of a type are computed in, and kept in until they are stored: f32 for narrower floats.
inline DType working_type(DType type) { return is_narrow_float(type) ? DType::kF32 : type; }

/// Bits of `value` rounded once to a narrow float type, nearest, ties to even, with the overflow
/// rules of `convert` (infinity, NaN or saturation, by type).
uint32_t narrow_from_double(DType type, double value);
/// Exact value of the bits.
double narrow_to_double(DType type, uint32_t bits);

}  // namespace hlojit

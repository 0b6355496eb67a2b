// A codec of the narrow floats written for reading: libm, a row a format, no bit tricks. The reference for
// compiler/math/convert.h.
//
// With E the biased exponent (at least 1) and q the weight of the last mantissa bit at E, a finite
// magnitude is n * 2^q and its code is ((E - 1) << mantissa) + n: subnormals, normals and the carry
// of rounding into the next exponent are the same expression.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "layout/dtype.h"

namespace hlojit::test {
enum class Specials : uint8_t {
  kIeee,      // infinities, NaNs above them
  kOneNan,    // no infinity; the code of all ones is NaN
  kNegZero,   // no infinity, no -0; its code is NaN
  kSaturate,  // neither infinity nor NaN
};

struct Format {
  int bits, mantissa, bias;
  uint32_t max_code;  // of the magnitude
  Specials specials;
};

inline Format format_of(DType type) {
  switch (type) {
    case DType::kF16: return {16, 10, 15, 0x7BFF, Specials::kIeee};
    case DType::kBF16: return {16, 7, 127, 0x7F7F, Specials::kIeee};
    case DType::kF8E5M2: return {8, 2, 15, 0x7B, Specials::kIeee};
    case DType::kF8E4M3: return {8, 3, 7, 0x77, Specials::kIeee};
    case DType::kF8E3M4: return {8, 4, 3, 0x6F, Specials::kIeee};
    case DType::kF8E4M3FN: return {8, 3, 7, 0x7E, Specials::kOneNan};
    case DType::kF8E4M3B11FNUZ: return {8, 3, 11, 0x7F, Specials::kNegZero};
    case DType::kF8E4M3FNUZ: return {8, 3, 8, 0x7F, Specials::kNegZero};
    case DType::kF8E5M2FNUZ: return {8, 2, 16, 0x7F, Specials::kNegZero};
    default: return {4, 1, 1, 0x7, Specials::kSaturate};  // f4e2m1fn
  }
}

// f8e8m0fnu: a power of two, code - 127; no zero, no sign; ties go up.
inline uint32_t power_from_double(double value) {
  if (!(value > 0) || std::isinf(value)) return 0xFF;
  int exponent;
  double fraction = std::frexp(value, &exponent);  // [0.5, 1)
  int code = exponent - 1 + (fraction >= 0.75 ? 1 : 0) + 127;
  return code > 254 ? 0xFF : std::max(code, 0);
}

inline uint32_t plain_from_double(DType type, double value) {
  if (type == DType::kF8E8M0FNU) return power_from_double(value);
  Format f = format_of(type);
  uint32_t sign = std::signbit(value) ? 1u << (f.bits - 1) : 0;
  uint32_t infinity = f.max_code + 1;
  if (std::isnan(value)) {
    switch (f.specials) {
      case Specials::kIeee: return sign | infinity | 1u << (f.mantissa - 1);
      case Specials::kOneNan: return sign | infinity;
      default: return 1u << (f.bits - 1);
    }
  }
  uint32_t code = infinity;
  double magnitude = std::fabs(value);
  if (magnitude == 0) {
    code = 0;
  } else if (!std::isinf(magnitude)) {
    int exponent = std::max(std::ilogb(magnitude), 1 - f.bias);
    int biased = exponent + f.bias;
    if (biased < 1 << 10) {
      double n = std::nearbyint(std::ldexp(magnitude, f.mantissa - exponent));
      code = (static_cast<uint32_t>(biased - 1) << f.mantissa) + static_cast<uint32_t>(n);
    }
  }
  if (code > f.max_code) {
    switch (f.specials) {
      case Specials::kIeee:
      case Specials::kOneNan: return sign | infinity;
      case Specials::kNegZero: return 1u << (f.bits - 1);
      case Specials::kSaturate: code = f.max_code;
    }
  }
  if (f.specials == Specials::kNegZero && code == 0) return 0;
  return sign | code;
}

inline double plain_to_double(DType type, uint32_t bits) {
  if (type == DType::kF8E8M0FNU) {
    return bits == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(bits) - 127);
  }
  Format f = format_of(type);
  uint32_t sign_bit = 1u << (f.bits - 1);
  uint32_t code = bits & (sign_bit - 1);
  double sign = bits & sign_bit ? -1.0 : 1.0;
  if (f.specials == Specials::kNegZero && bits == sign_bit) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (code > f.max_code) {
    bool infinity = f.specials == Specials::kIeee && code == f.max_code + 1;
    return std::copysign(infinity ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN(),
                         sign);
  }
  int biased = static_cast<int>(code >> f.mantissa);
  uint32_t n = code & ((1u << f.mantissa) - 1);
  if (biased > 0) n += 1u << f.mantissa;
  return sign * std::ldexp(n, std::max(biased, 1) - f.bias - f.mantissa);
}

}  // namespace hlojit::test

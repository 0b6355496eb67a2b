// The codec of compiler/math/convert.h, one element at a time, in f64.
#include "compiler/ir/narrow.h"

#include "compiler/math/convert.h"

namespace hlojit {

uint32_t narrow_from_double(DType type, double value) {
  return static_cast<uint32_t>(math::encode_narrow(value, math::narrow_format(type)).v);
}

double narrow_to_double(DType type, uint32_t bits) {
  return math::decode_narrow(0.0, {static_cast<int64_t>(bits)}, math::narrow_format(type));
}

}  // namespace hlojit

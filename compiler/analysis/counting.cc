// See counting.h.
#include "compiler/analysis/counting.h"

#include <algorithm>

namespace hlojit {

bool counts_along(const Instruction& value, int64_t dim) {
  const Instruction* i = &value;
  while (i->is(Opcode::kBroadcast) || i->is(Opcode::kReshape)) {
    if (i->is(Opcode::kReshape)) {
      dim = past_unit_dims(i->shape, i->operand(0)->shape)[static_cast<size_t>(dim)];
      if (dim < 0) return false;
      i = i->operand(0);
      continue;
    }
    auto at = std::ranges::find(i->attrs.dimensions, dim);
    if (at == i->attrs.dimensions.end()) return false;
    dim = at - i->attrs.dimensions.begin();
    i = i->operand(0);
  }
  return i->is(Opcode::kIota) && i->attrs.dimensions[0] == dim && is_integral(i->shape.type) &&
         dtype_bits(i->shape.type) >= 32;
}

}  // namespace hlojit

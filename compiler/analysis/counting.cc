// See counting.h.
#include "compiler/analysis/counting.h"

#include <algorithm>

namespace hlojit {

bool counts_along(const Instruction& value, int64_t dim) {
  const Instruction* i = &value;
  while (i->is(Opcode::kBroadcast)) {
    auto at = std::ranges::find(i->attrs.dimensions, dim);
    if (at == i->attrs.dimensions.end()) return false;
    dim = at - i->attrs.dimensions.begin();
    i = i->operand(0);
  }
  return i->is(Opcode::kIota) && i->attrs.dimensions[0] == dim && is_integral(i->shape.type) &&
         dtype_bits(i->shape.type) >= 32;
}

}  // namespace hlojit

// See plain_float.h.
#include "compiler/ir/plain_float.h"

namespace hlojit {

bool is_plain_float(const Computation& computation) {
  DType type = DType::kInvalid;
  for (const auto& i : computation.instructions()) {
    if (i->is(Opcode::kTuple)) continue;
    bool plain = i->is(Opcode::kParameter) || has_trait(i->opcode, op_trait::kCombines);
    if (!plain || !is_float(i->shape.type)) return false;
    if (type == DType::kInvalid) type = i->shape.type;
    if (type != i->shape.type) return false;
  }
  return type != DType::kInvalid;
}

}  // namespace hlojit

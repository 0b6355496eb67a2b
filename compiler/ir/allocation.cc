// See allocation.h.
#include "compiler/ir/allocation.h"

namespace hlojit {
namespace {

constexpr std::string_view kTarget = "AllocateBuffer";

}  // namespace

bool is_allocation(const Instruction& i) {
  return i.is(Opcode::kCustomCall) && i.attrs.custom_call_target == kTarget && i.operand_count() == 0 &&
         i.shape.is_array() && !i.attrs.custom_call_has_side_effect;
}

Instruction* add_allocation(Computation& c, const Shape& shape, std::string_view name, Instruction* before) {
  Instruction* made = c.add(Opcode::kCustomCall, shape, {}, name, before);
  made->attrs.custom_call_target = kTarget;
  return made;
}

}  // namespace hlojit

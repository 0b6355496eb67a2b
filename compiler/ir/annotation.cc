// See annotation.h.
#include "compiler/ir/annotation.h"

namespace hlojit {

bool is_annotation(const Instruction& i) {
  if (!i.is(Opcode::kCustomCall) || i.operand_count() != 1) return false;
  const Shape &from = i.operand(0)->shape, &to = i.shape;
  if (!from.is_array() || !to.is_array() || from.type != to.type || from.dims != to.dims) return false;
  const std::string& target = i.attrs.custom_call_target;
  return target == "Sharding" || target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" ||
         target == "LayoutConstraint" || target == "MoveToHost" || target == "MoveToDevice" ||
         target == "annotate_device_placement" || target.starts_with("xla.sdy.");
}

}  // namespace hlojit

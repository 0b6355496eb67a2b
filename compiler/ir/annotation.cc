// See annotation.h.
#include "compiler/ir/annotation.h"

#include <algorithm>
#include <string_view>

namespace hlojit {
namespace {

constexpr std::string_view kTargets[] = {
    "LayoutConstraint",          "MoveToDevice",   "MoveToHost",           "Sharding",
    "ShardBarrierFrom",          "ShardBarrierTo", "SPMDFullToShardShape", "SPMDShardToFullShape",
    "annotate_device_placement",
};

}  // namespace

bool is_annotation(const Instruction& i) {
  if (!i.is(Opcode::kCustomCall) || i.operand_count() != 1) return false;
  const Shape &from = i.operand(0)->shape, &to = i.shape;
  if (!from.is_array() || !to.is_array() || from.type != to.type || from.dims != to.dims) return false;
  const std::string& target = i.attrs.custom_call_target;
  return std::ranges::find(kTargets, target) != std::end(kTargets) || target.starts_with("xla.sdy.");
}

bool is_remark(const Instruction& i) {
  if (!i.is(Opcode::kCustomCall) || !i.shape.is_tuple() || !i.shape.elements.empty()) return false;
  const std::string& target = i.attrs.custom_call_target;
  return target == "control_dep" || (target == "xla.sdy.ShardingGroup" && i.operand_count() == 1);
}

}  // namespace hlojit

// See top_k_call.h.
#include "compiler/ir/top_k_call.h"

namespace hlojit {

std::optional<Attributes> top_k_call(const Instruction& call) {
  if (!call.is(Opcode::kCustomCall) || call.attrs.custom_call_target != "TopK" || call.operand_count() != 1) return {};
  const Shape &from = call.operand(0)->shape, &to = call.shape;
  if (!from.is_array() || from.rank() == 0 || is_complex(from.type)) return {};
  if (!to.is_tuple() || to.elements.size() != 2 || to.elements[0].rank() != from.rank()) return {};
  Attributes attrs;
  attrs.k = to.elements[0].dims.back();
  Ints dims = from.dims;
  dims.back() = attrs.k;
  if (attrs.k > from.dims.back() ||
      !compatible(to, Shape::tuple({Shape::array(from.type, dims), Shape::array(DType::kS32, dims)})))
    return {};
  const Instruction* order = call.called.empty() ? nullptr : call.called[0]->root();
  attrs.largest = !order || !order->is(Opcode::kCompare) || order->attrs.direction != Direction::kLt;
  return attrs;
}

}  // namespace hlojit

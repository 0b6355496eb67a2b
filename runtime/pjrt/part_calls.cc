// See part_calls.h.
#include "runtime/pjrt/part_calls.h"

#include "compiler/builder.h"

namespace hlojit::pjrt {
namespace {

bool is_for_parts(const Instruction& i) {
  return i.is(Opcode::kCustomCall) && frontend_attribute(*i.attrs.frontend_attributes, "hlojit.each_part") == "true";
}

Instruction* part_of(Builder& b, Instruction* whole, const Shards& shards, size_t device) {
  if (!whole->shape.is_array() || shards.whole()) return whole;
  const Ints dims = shard_shape(whole->shape, shards).dims;
  Ints starts, limits;
  for (size_t d = 0; d < dims.size(); ++d) {
    starts.push_back(shards.of.at(device)[d] * dims[d]);
    limits.push_back(starts.back() + dims[d]);
  }
  return b.slice(whole, starts, limits);
}

// The token that a call gives, which the next one takes; null if it gives none.
Instruction* token_of(Builder& b, Instruction* call) {
  if (call->shape.type == DType::kToken) return call;
  if (!call->shape.is_tuple() || call->shape.elements.empty()) return nullptr;
  return call->shape.elements[0].type == DType::kToken ? b.get_tuple_element(call, 0) : nullptr;
}

}  // namespace

void call_for_each_part(Computation& computation, const ShardFlow& flow, int64_t devices) {
  Builder b(&computation);
  bool any = false;
  for (Instruction* call : computation.snapshot()) {
    if (!is_for_parts(*call)) continue;
    any = true;
    Instruction *last = nullptr, *token = nullptr;
    for (size_t device = 0; device < static_cast<size_t>(devices); ++device) {
      std::vector<Instruction*> operands(call->operands().begin(), call->operands().end());
      for (Instruction*& o : operands) {
        if (o->shape.is_array()) o = part_of(b, o, flow.of(*o), device);
        if (o->shape.type == DType::kToken && token) o = token;
      }
      last = computation.clone_instruction(*call, operands, call->name);
      std::vector<Shape>& wanted = last->attrs.operand_layout_constraints;
      for (size_t k = 0; k < wanted.size(); ++k) wanted[k].dims = operands[k]->shape.dims;
      token = token_of(b, last);
    }
    call->replace_all_uses_with(last);
    if (computation.root() == call) computation.set_root(last);
    computation.remove(call);
  }
  if (any) computation.sort_topologically();
}

}  // namespace hlojit::pjrt

// See invariant.h.
#include "compiler/analysis/invariant.h"

#include <algorithm>

#include "compiler/ir/allocation.h"

namespace hlojit {
namespace {

bool depends_on_operands_alone(const Instruction& i) {
  if (has_side_effect(i) || !i.control_predecessors.empty()) return false;
  if (is_allocation(i)) return false;  // each round writes to its own
  const OpClass c = i.info().op_class;
  if (!i.shape.is_array()) return c == OpClass::kLibrary;
  switch (c) {
    case OpClass::kLibrary:
    case OpClass::kElementwise:
    case OpClass::kMoves:
    case OpClass::kReduces:
    case OpClass::kContracts: return true;
    default: return i.is(Opcode::kConstant) || i.is(Opcode::kIota) || i.is(Opcode::kGetTupleElement);
  }
}

}  // namespace

int64_t state_element(const Instruction* i, const Computation& c) {
  bool read = i->is(Opcode::kGetTupleElement) && i->operand(0) == c.parameters()[0];
  return read ? i->attrs.tuple_index : -1;
}

InstructionSet invariant_values(const Computation& body) {
  InstructionSet found;
  const Instruction* next = body.root();
  if (!next->is(Opcode::kTuple)) return found;
  for (const auto& i : body.instructions()) {
    int64_t k = state_element(i.get(), body);
    bool same = k >= 0
                    ? state_element(next->operand(static_cast<size_t>(k)), body) == k
                    : depends_on_operands_alone(*i) &&
                          std::ranges::all_of(i->operands(), [&](const Instruction* o) { return found.contains(o); });
    if (same) found.insert(i.get());
  }
  return found;
}

}  // namespace hlojit

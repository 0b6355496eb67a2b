// See combining.h.
#include "compiler/analysis/combining.h"

namespace hlojit {

std::optional<Opcode> combining_op(const Computation& c) {
  const Instruction* root = c.root();
  if (c.parameters().size() != 2 || !has_trait(*root, op_trait::kCombines)) return std::nullopt;
  const Instruction *x = root->operand(0), *y = root->operand(1);
  bool of_both = x->is(Opcode::kParameter) && y->is(Opcode::kParameter) && x != y;
  return of_both ? std::optional(root->opcode) : std::nullopt;
}

std::optional<Literal> neutral_number(Opcode op, DType type) {
  if (has_trait(op, op_trait::kIdempotent)) return std::nullopt;
  Literal number(Shape::scalar(type));
  if (has_trait(op, op_trait::kFromOne)) number.set_double(0, 1);
  if (op == Opcode::kAdd && is_float(type)) number.set_double(0, -0.0);
  return number;
}

}  // namespace hlojit

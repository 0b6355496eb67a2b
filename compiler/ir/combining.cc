// See combining.h.
#include "compiler/ir/combining.h"

#include <cmath>
#include <limits>

namespace hlojit {

std::optional<Opcode> combining_op(const Computation& c) {
  const Instruction* root = c.root();
  if (c.parameters().size() != 2 || !has_trait(*root, op_trait::kCombines)) return std::nullopt;
  const Instruction *x = root->operand(0), *y = root->operand(1);
  bool of_both = x->is(Opcode::kParameter) && y->is(Opcode::kParameter) && x != y;
  return of_both ? std::optional(root->opcode) : std::nullopt;
}

bool is_scalar_code(const Instruction& i) {
  if (!i.shape.is_array() || !i.called.empty()) return false;
  bool hands_on = i.is(Opcode::kBroadcast) || i.is(Opcode::kReshape) || i.is(Opcode::kCopy);
  return hands_on || i.info().op_class == OpClass::kSource || is_elementwise(i.opcode);
}

bool is_scalar_code(const Computation& c) {
  return std::ranges::all_of(
      c.instructions(), [](const auto& i) { return is_scalar_code(*i) || (i->is(Opcode::kTuple) && i->is_root()); });
}

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

std::optional<Literal> neutral_number(Opcode op, DType type) {
  if (has_trait(op, op_trait::kIdempotent)) return std::nullopt;
  Literal number(Shape::scalar(type));
  if (has_trait(op, op_trait::kFromOne)) number.set_double(0, 1);
  if (op == Opcode::kAdd && is_float(type)) number.set_double(0, -0.0);
  return number;
}

Literal extreme_number(DType type, bool largest, bool total_order) {
  Literal value(Shape::scalar(type));
  if (is_float(type)) {
    value.set_double(
        0, std::copysign(total_order ? std::numeric_limits<double>::quiet_NaN() : HUGE_VAL, largest ? 1 : -1));
  } else {
    const int bits = dtype_bits(type) - (is_signed(type) ? 1 : 0);
    uint64_t high = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    value.set_int(0, static_cast<int64_t>(largest ? high : is_signed(type) ? ~high : 0));
  }
  return value;
}

}  // namespace hlojit

// See combining.h.
#include "compiler/analysis/combining.h"

#include <algorithm>
#include <iterator>

namespace hlojit {
namespace {

struct Row {
  Opcode op;
  bool idempotent;
};

constexpr Row kRows[] = {
    {Opcode::kAdd, false}, {Opcode::kAnd, true},       {Opcode::kMaximum, true}, {Opcode::kMinimum, true},
    {Opcode::kOr, true},   {Opcode::kMultiply, false}, {Opcode::kXor, false},
};

const Row* row_of(Opcode op) {
  auto at = std::ranges::find(kRows, op, &Row::op);
  return at == std::end(kRows) ? nullptr : at;
}

}  // namespace

bool combines(Opcode op) { return row_of(op) != nullptr; }

bool is_idempotent(Opcode op) { return combines(op) && row_of(op)->idempotent; }

std::optional<Opcode> combining_op(const Computation& c) {
  const Instruction* root = c.root();
  if (c.parameters().size() != 2 || !combines(root->opcode)) return std::nullopt;
  const Instruction *x = root->operand(0), *y = root->operand(1);
  bool of_both = x->is(Opcode::kParameter) && y->is(Opcode::kParameter) && x != y;
  return of_both ? std::optional(root->opcode) : std::nullopt;
}

std::optional<Literal> neutral_number(Opcode op, DType type) {
  if (is_idempotent(op)) return std::nullopt;
  Literal number(Shape::scalar(type));
  if (op == Opcode::kMultiply) number.set_double(0, 1);
  if (op == Opcode::kAdd && is_float(type)) number.set_double(0, -0.0);
  return number;
}

}  // namespace hlojit

// A branch in a computation that is applied to elements (by reduce, scatter, sort, map, ...): lanes are elements, and
// those of one vector may take different ways. All ways are computed and one is chosen:
//
//   r = f32[] conditional(p, a, b), true_computation=f, false_computation=g    ->    r = select(p, f(a), g(b))
//
// Scalar arithmetic never traps, so what an untaken branch computes does no harm.
#include <algorithm>

#include "compiler/ir/combining.h"
#include "compiler/passes/expansions.h"
#include "compiler/passes/inline_calls.h"

namespace hlojit {
namespace {

using enum Opcode;

// Of scalars and tuples of them.
bool is_arithmetic(const Computation& branch) {
  return std::ranges::all_of(branch.instructions(), [](const auto& i) {
    bool bundles = i->is(kParameter) || i->is(kTuple) || i->is(kGetTupleElement);
    return bundles || is_scalar_code(*i);
  });
}

Instruction* chosen(Builder& b, Instruction* first, Instruction* x, Instruction* y) {
  if (!x->shape.is_tuple()) return b.select(first, x, y);
  Builder::Values elements;
  for (int64_t k = 0; k < std::ssize(x->shape.elements); ++k) {
    elements.push_back(chosen(b, first, b.get_tuple_element(x, k), b.get_tuple_element(y, k)));
  }
  return b.tuple(std::move(elements));
}

}  // namespace

Instruction* expand_branches(Builder& b, const Instruction& op) {
  if (!std::ranges::all_of(op.called, [](const Computation* c) { return is_arithmetic(*c); })) return nullptr;
  Instruction* selector = op.operand(0);
  const bool is_choice_of_two = is_pred(selector->shape.type);
  Builder::Values results;
  for (size_t k = 0; k < op.called.size(); ++k) {
    results.push_back(paste(*b.computation(), *op.called[k], op.operands().subspan(k + 1, 1)));
  }
  // The last one is also taken for every index out of range.
  Instruction* result = results.back();
  for (size_t k = results.size() - 1; k-- > 0;) {
    Instruction* first = is_choice_of_two ? selector
                                          : b.compare(Direction::kEq, selector,
                                                      b.constant(selector->shape.type, static_cast<double>(k)));
    result = chosen(b, first, results[k], result);
  }
  return result;
}

}  // namespace hlojit

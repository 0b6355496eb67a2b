// Rules about structure: tuples taken apart, branches and loops whose way is known, reductions of
// nothing, copies.

#include "compiler/passes/expansions.h"
#include "compiler/passes/inline_calls.h"
#include "compiler/passes/simplify_rules.h"

namespace hlojit {
namespace {

using enum Opcode;
using Context = SimplifyContext;

/// tuple(t.0, t.1, ...) of all elements of t. A root stays: callers look for a tuple there.
Instruction* rebuilt_tuple(Context&, Instruction* i) {
  if (i->is_root() || i->operand_count() == 0 || !i->operand(0)->is(kGetTupleElement)) return nullptr;
  Instruction* t = i->operand(0)->operand(0);
  if (t->shape.elements.size() != i->operand_count()) return nullptr;
  for (size_t k = 0; k < i->operand_count(); ++k) {
    const Instruction* o = i->operand(k);
    bool same = o->is(kGetTupleElement) && o->operand(0) == t && o->attrs.tuple_index == static_cast<int64_t>(k);
    if (!same) return nullptr;
  }
  return t;
}

/// A conditional whose selector is a constant. Its computations have no other caller.
Instruction* known_branch(Context& c, Instruction* i) {
  const Instruction* selector = i->operand(0);
  if (!selector->is(kConstant) || has_side_effect(*i)) return nullptr;
  int64_t value = selector->literal->as_int(0), count = std::ssize(i->called);
  // pred: {true, false}; else the index, the last branch for any out of range.
  int64_t k = is_pred(selector->shape.type) ? (value ? 0 : 1) : (value < 0 || value >= count ? count - 1 : value);
  return paste(*c.b.computation(), *i->called[k], i->operands().subspan(static_cast<size_t>(k) + 1, 1));
}

Instruction* no_round(Context&, Instruction* i) {
  const Literal* test = splat_value(i->while_condition()->root());
  if (has_side_effect(*i->while_condition())) return nullptr;  // it is asked once all the same
  return test && test->as_int(0) == 0 ? i->operand(0) : nullptr;
}

/// A reduction over no dims, or dims of size 1: one step of the reducer.
Instruction* one_step(Context& c, Instruction* i) {
  if (i->operand_count() != 2) return nullptr;
  Instruction *x = i->operand(0), *init = i->operand(1);
  for (int64_t d : i->attrs.dimensions) {
    if (x->shape.dims[d] != 1) return nullptr;
  }
  const Ints& dims = i->shape.dims;
  Instruction* first = dims.empty() ? init : c.b.broadcast(init, dims);
  Instruction* second = x->shape.dims == dims ? x : c.b.reshape(x, dims);
  Instruction* arguments[] = {first, second};
  return apply_elementwise(c.b, *i->to_apply(), arguments, dims);
}

/// Copies say where bytes lie, which is for `layouts` to decide; ours between buffers stay.
Instruction* plain_copy(Context&, Instruction* i) { return i->attrs.backend_config.empty() ? i->operand(0) : nullptr; }

constexpr SimplifyRule kRules[] = {
    {kGetTupleElement,
     [](Context&, Instruction* i) -> Instruction* {
       return i->operand(0)->is(kTuple) ? i->operand(0)->operand(i->attrs.tuple_index) : nullptr;
     }},
    {kTuple, rebuilt_tuple},
    {kConditional, known_branch},
    {kWhile, no_round},
    {kReduce, one_step},
    {kCopy, plain_copy},
};

}  // namespace

std::span<const SimplifyRule> control_rules() { return kRules; }

}  // namespace hlojit

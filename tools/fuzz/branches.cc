// Conditionals whose results may take an operand's memory: each branch is handed some of the arrays, in an order of its
// own, and hands them on, changes an element, swaps them or reads what has been changed; alone, in each other and in
// loops.
#include <algorithm>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* with_an_element(Draft& s, Instruction* x, Instruction* element) {
  Builder::Values at;
  for (int64_t size : x->shape.dims) at.push_back(s.index(DType::kS32, size));
  return s.b.dynamic_update_slice(x, element, at);
}

// One element of an array, as an array.
Instruction* an_element(Draft& s, Instruction* x) {
  Builder::Values at;
  for (int64_t size : x->shape.dims) at.push_back(s.index(DType::kS32, size));
  return s.b.dynamic_slice(x, at, Ints(x->shape.dims.size(), 1));
}

// Arrays all of one shape, one of them or a few again, by way of a conditional.
Builder::Values by_branch(Draft& s, const Builder::Values& arrays, Instruction* which, int deeper) {
  const size_t results = s.random.chance(0.7) ? arrays.size() : 1;
  std::vector<Computation*> branches;
  Builder::Values in;
  for (int k = 0; k < 2; ++k) {
    Ints handed = s.permutation(std::ssize(arrays));
    if (s.random.chance(0.3)) handed.resize(1);
    if (s.random.chance(0.1)) handed.push_back(handed[0]);
    Builder::Values given = {which};
    for (int64_t h : handed) given.push_back(arrays[static_cast<size_t>(h)]);
    in.push_back(s.b.tuple(given));
    Draft branch(s.draw, "branch");
    Instruction* p = branch.b.parameter(in.back()->shape);
    Builder::Values state;
    for (size_t h = 0; h < given.size(); ++h)
      state.push_back(branch.keep(branch.b.get_tuple_element(p, static_cast<int64_t>(h))));
    Instruction* choice = state[0];
    state.erase(state.begin());
    if (deeper > 0 && s.random.chance(0.3)) {
      Builder::Values inner = by_branch(branch, state, branch.b.unary(kNot, choice), deeper - 1);
      std::ranges::copy(inner, state.begin());
    }
    Builder::Values out;
    for (size_t r = 0; r < results; ++r) {
      auto own = std::ranges::find(handed, static_cast<int64_t>(r));
      Instruction* x = own == handed.end() || s.random.chance(0.15) ? s.random.pick(state)
                                                                    : state[static_cast<size_t>(own - handed.begin())];
      switch (s.random.below(5)) {
        case 0:
        case 1: break;
        case 2: x = with_an_element(branch, x, an_element(branch, s.random.pick(state))); break;
        case 3: x = branch.b.rev(x, {0}); break;
        default: {
          Instruction* changed = with_an_element(branch, x, branch.fresh(x->shape.type, Ints(x->shape.dims.size(), 1)));
          x = s.random.chance(0.5) ? changed : with_an_element(branch, changed, an_element(branch, x));
        }
      }
      out.push_back(x);
    }
    branches.push_back(branch.b.build(branch.b.tuple(out)));
  }
  Instruction* made = s.b.conditional(which, branches, in);
  Builder::Values all;
  for (size_t r = 0; r < results; ++r) all.push_back(s.b.get_tuple_element(made, static_cast<int64_t>(r)));
  return all;
}

Instruction* shared_branches(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  const Shape shape = Shape::array(s.random.pick(std::vector{DType::kF32, DType::kS32, DType::kU8}), s.shape(1, 2));
  if (shape.element_count() == 0) return nullptr;
  Builder::Values init = {s.b.constant(DType::kS32, 0)};
  for (int64_t n = s.random.between(1, 3); n > 0; --n) {
    Instruction* x = s.of(shape);
    init.push_back(s.random.chance(0.7) ? s.b.op(kMaximum, {x, s.splat(shape.type, 1, shape.dims)}) : x);
  }
  if (s.random.chance(0.3)) {
    Builder::Values made = by_branch(s, {init.begin() + 1, init.end()}, s.of(DType::kPred, {}), 1);
    for (Instruction* x : made) s.keep(x);
    if (s.random.chance(0.5)) return s.random.pick(made);
    return s.keep(s.b.op(kMaximum, {init.back(), made.back()}));
  }
  Instruction* start = s.b.tuple(init);
  Builder c(s.draw.module, "condition");
  Instruction* count = c.get_tuple_element(c.parameter(start->shape), 0);
  c.build(c.compare(Direction::kLt, count, c.constant(DType::kS32, static_cast<double>(s.random.between(1, 4)))));
  ++s.draw.depth;
  Draft round(s.draw, "round");
  Instruction* p = round.b.parameter(start->shape);
  Builder::Values state, next;
  for (size_t k = 0; k < init.size(); ++k)
    state.push_back(round.keep(round.b.get_tuple_element(p, static_cast<int64_t>(k))));
  Instruction* odd = round.b.compare(Direction::kEq, round.b.op(kAnd, {state[0], round.b.constant(DType::kS32, 1)}),
                                     round.b.constant(DType::kS32, 1));
  next = by_branch(round, {state.begin() + 1, state.end()}, odd, 1);
  if (next.size() + 1 < state.size()) next.insert(next.end(), state.begin() + 1 + std::ssize(next), state.end());
  if (s.random.chance(0.2)) next[0] = with_an_element(round, next[0], an_element(round, state.back()));
  next.insert(next.begin(), round.b.op(kAdd, {state[0], round.b.constant(DType::kS32, 1)}));
  round.b.build(round.b.tuple(next));
  --s.draw.depth;
  return s.b.while_loop(c.computation(), round.b.computation(), start);
}

}  // namespace

Family shared_branch_family() { return {"shared branches", {{shared_branches, 20}}, 0.04}; }

}  // namespace hlojit::tools::fuzz

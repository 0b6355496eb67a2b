// See loop_state.h.
#include "compiler/passes/loop_state.h"

#include <algorithm>

#include "compiler/ir/instruction_set.h"

namespace hlojit {
namespace {

bool is_element(const Instruction* user) { return user->is(Opcode::kGetTupleElement); }

Instruction* element(Computation& c, Instruction* tuple, size_t k, Instruction* before) {
  Instruction* e = c.add(Opcode::kGetTupleElement, tuple->shape.elements[k], {tuple}, "get-tuple-element", before);
  e->attrs.tuple_index = static_cast<int64_t>(k);
  return e;
}

/// Who takes all of the loop's results gets those that it had.
void keep_results(Instruction& loop, size_t count) {
  Computation& outside = *loop.parent();
  std::vector<Instruction*> whole;
  for (Instruction* u : loop.users()) {
    if (!is_element(u)) whole.push_back(u);
  }
  if (whole.empty() && !loop.is_root()) return;
  const auto order = outside.snapshot();
  auto after = std::ranges::find(order, &loop) + 1;
  Instruction* before = after == order.end() ? nullptr : *after;
  std::vector<Instruction*> results;
  for (size_t k = 0; k < count; ++k) results.push_back(element(outside, &loop, k, before));
  Instruction* tuple = outside.add(Opcode::kTuple, loop.shape, std::move(results), "results", before);
  for (Instruction* u : whole) {
    for (size_t n = 0; n < u->operand_count(); ++n) {
      if (u->operand(n) == &loop) u->set_operand(n, tuple);
    }
  }
  if (loop.is_root()) outside.set_root(tuple);
}

template <typename T>
void keep(std::vector<T>& list, const std::vector<bool>& kept) {
  size_t to = 0;
  for (size_t k = 0; k < kept.size(); ++k) {
    if (kept[k]) list[to++] = list[k];
  }
  list.resize(to);
}

/// A tuple that is read by elements, with fewer of them; nobody reads the others.
void narrow(Instruction& tuple, const std::vector<bool>& kept) {
  keep(tuple.shape.elements, kept);
  for (Instruction* user : tuple.users()) {
    if (!is_element(user)) continue;
    int64_t& k = user->attrs.tuple_index;
    k = std::count(kept.begin(), kept.begin() + k, true);
  }
}

void leave_out(Instruction& tuple, const std::vector<bool>& kept) {
  std::vector<Instruction*> values(tuple.operands().begin(), tuple.operands().end());
  keep(values, kept);
  tuple.set_operands(std::move(values));
  narrow(tuple, kept);
}

void remove_with_readers(Computation& c, std::vector<Instruction*> dropped) {
  InstructionSet gone(dropped);
  for (size_t n = 0; n < dropped.size(); ++n) {
    for (Instruction* user : dropped[n]->users()) {
      if (gone.insert(user)) dropped.push_back(user);
    }
  }
  if (!dropped.empty()) c.remove_all(dropped);
}

}  // namespace

bool is_taken_apart(const Instruction& loop) {
  for (const Computation* c : loop.called) {
    if (!std::ranges::all_of(c->parameters()[0]->users(), is_element)) return false;
  }
  const Computation& body = *loop.while_body();
  return body.root() != body.parameters()[0] && body.root()->users().empty();
}

Instruction* first_of_state(Instruction& loop, size_t k) {
  Instruction* state = loop.operand(0);
  return state->is(Opcode::kTuple) ? state->operand(k) : element(*loop.parent(), state, k, &loop);
}

std::vector<Instruction*> add_elements(Instruction& loop, std::span<Instruction* const> first,
                                       std::span<Instruction* const> readers) {
  Computation& body = *loop.while_body();
  const size_t count = loop.shape.elements.size();
  std::vector<Instruction*> state, reads;
  for (size_t k = 0; k < count; ++k) state.push_back(first_of_state(loop, k));
  Shape shape = loop.shape;
  for (Instruction* f : first) {
    state.push_back(f);
    shape.elements.push_back(f->shape);
  }
  keep_results(loop, count);
  loop.set_operand(0, loop.parent()->add(Opcode::kTuple, shape, std::move(state), "state", &loop));
  loop.shape = shape;
  for (Computation* c : loop.called) c->parameters()[0]->shape = shape;
  for (size_t n = 0; n < first.size(); ++n) {
    reads.push_back(element(body, body.parameters()[0], count + n, readers[n]));
    body.root()->append_operand(reads.back());
  }
  body.root()->shape = shape;
  return reads;
}

void drop_elements(Instruction& loop, const std::vector<bool>& kept) {
  Instruction* state = loop.operand(0);
  if (state->users().size() > 1 || state->is_root()) {
    state = loop.parent()->clone_instruction(*state, {state->operands().begin(), state->operands().end()}, {}, &loop);
    loop.set_operand(0, state);
  }
  leave_out(*state, kept);
  leave_out(*loop.while_body()->root(), kept);
  narrow(loop, kept);
  for (Computation* c : loop.called) {
    Instruction* parameter = c->parameters()[0];
    std::vector<Instruction*> dropped;
    for (Instruction* user : parameter->users()) {
      if (!kept[static_cast<size_t>(user->attrs.tuple_index)]) dropped.push_back(user);
    }
    remove_with_readers(*c, std::move(dropped));
    narrow(*parameter, kept);
  }
}

}  // namespace hlojit

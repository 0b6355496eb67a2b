// See sink.h.
#include "compiler/passes/sink.h"

#include <algorithm>
#include <ranges>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/passes/explain.h"
#include "compiler/plan/op_cost.h"

namespace hlojit {
namespace {

// Where a value is read, so many ops make it anew in less time than its loads take.
constexpr int kMostOps = 8;

bool only_moves(const Instruction* i) {
  return i->is(Opcode::kBroadcast) || i->is(Opcode::kReshape) || i->is(Opcode::kTranspose);
}

/// Made of places and constants by at most `ops` cheap ops, which it counts down.
bool is_made_of_places(const Instruction* i, int& ops) {
  if (!i->control_predecessors.empty() || !i->shape.is_array() || i->shape.has_dynamic_dims()) return false;
  if (i->is(Opcode::kIota)) return true;
  if (i->is(Opcode::kConstant)) return i->shape.rank() == 0;
  const bool cheap = is_elementwise(i->opcode) && price_of(*i) <= OpPrice::kCheap;
  if (!only_moves(i) && (!cheap || --ops < 0)) return false;
  return std::ranges::all_of(i->operands(), [&](const Instruction* o) { return is_made_of_places(o, ops); });
}

bool starts_loops(const Instruction* i) {
  return i->is(Opcode::kTuple) && !i->is_root() &&
         std::ranges::all_of(i->users(), [](const Instruction* u) { return u->is(Opcode::kWhile); });
}

/// By ops that compute at each place, where what they read can be computed; or the state of a loop within.
bool is_read_at_places(const Instruction* i, const Instruction* root) {
  return std::ranges::all_of(i->users(), [&](const Instruction* u) {
    if (only_moves(u)) return is_read_at_places(u, root);
    return u == root || starts_loops(u) || is_elementwise(u->opcode);
  });
}

Instruction* made_anew(Computation& c, const Instruction* i, Instruction* before) {
  std::vector<Instruction*> operands;
  for (const Instruction* o : i->operands()) operands.push_back(made_anew(c, o, before));
  return c.clone_instruction(*i, std::move(operands), {}, before);
}

/// What element `read` of the state is to be made anew of; nullptr if it stays. Numbers do: a load takes less than the
/// ops that they are made by.
const Instruction* made_of_places(const Instruction& loop, const Instruction* read) {
  const Computation& body = *loop.while_body();
  const int64_t k = state_element(read, body);
  if (k < 0 || !is_pred(read->shape.type) || read->shape.rank() == 0) return nullptr;
  const Instruction *root = body.root(), *state = loop.operand(0);
  if (std::ranges::count(root->operands(), read) != 1 || root->operand(static_cast<size_t>(k)) != read) return nullptr;
  if (read->users().size() == 1 || !is_read_at_places(read, root)) return nullptr;
  int ops = kMostOps;
  const Instruction* first = state->operand(static_cast<size_t>(k));
  return is_made_of_places(first, ops) ? first : nullptr;
}

bool sink_into(Instruction& loop, const PipelineOptions& options) {
  Computation& body = *loop.while_body();
  if (!loop.operand(0)->is(Opcode::kTuple) || !body.root()->is(Opcode::kTuple)) return false;
  bool changed = false;
  const std::vector<Instruction*> reads(body.parameters()[0]->users().begin(), body.parameters()[0]->users().end());
  for (Instruction* read : reads) {
    const Instruction* first = made_of_places(loop, read);
    if (!first) continue;
    explain(options, "sink", body, "{} into {}", first->name, loop.name);
    Instruction* made = made_anew(body, first, read);
    read->replace_all_uses_with(made);
    body.root()->set_operand(static_cast<size_t>(read->attrs.tuple_index), read);
    changed = true;
  }
  return changed;
}

}  // namespace

bool sink(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module) | std::views::reverse) {
    for (Instruction* i : c->snapshot()) {
      if (i->is(Opcode::kWhile)) changed |= sink_into(*i, options);
    }
  }
  return changed;
}

}  // namespace hlojit

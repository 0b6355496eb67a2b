// See dce.h. Marks backwards from roots and effects, then removes what is not marked; of a loop, from the elements of
// its state that are read.
#include "compiler/passes/dce.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/effects.h"
#include "compiler/ir/instruction_table.h"
#include "compiler/passes/loop_state.h"

namespace hlojit {
namespace {

/// Marks what is read, backwards from what is marked.
class Marker {
 public:
  explicit Marker(const Computation& c) : live_(c) {}

  void mark(const Instruction* i) {
    if (std::exchange(live_[i], 1) == 0) work_.push_back(i);
  }
  void spread() {
    while (!work_.empty()) {
      const Instruction* i = work_.back();
      work_.pop_back();
      for (const Instruction* o : i->operands()) mark(o);
    }
  }
  bool is_live(const Instruction* i) const { return live_[i] != 0; }

 private:
  InstructionTable<char> live_;
  std::vector<const Instruction*> work_;
};

bool sweep(Computation& c, const Effects& effects) {
  Marker marker(c);
  marker.mark(c.root());
  for (const auto& i : c.instructions()) {
    if (i->is(Opcode::kParameter) || effects.has(*i)) marker.mark(i.get());
  }
  marker.spread();
  std::vector<Instruction*> dead;
  for (const auto& i : c.instructions()) {
    if (!marker.is_live(i.get())) dead.push_back(i.get());
  }
  if (!dead.empty()) c.remove_all(dead);
  return !dead.empty();
}

/// Elements of the loop's state that its condition or who takes its result reads, and those that they are made of.
std::vector<bool> elements_read(const Instruction& loop, const Effects& effects) {
  const Computation &condition = *loop.while_condition(), &body = *loop.while_body();
  std::vector<bool> read(loop.shape.elements.size());
  for (const Instruction* u : loop.users()) read[static_cast<size_t>(u->attrs.tuple_index)] = true;
  for (const Instruction* u : condition.parameters()[0]->users())
    read[static_cast<size_t>(u->attrs.tuple_index)] = true;
  Marker marker(body);
  for (const auto& i : body.instructions()) {
    if (effects.has(*i)) marker.mark(i.get());
  }
  for (bool more = true; more;) {
    for (size_t k = 0; k < read.size(); ++k) {
      if (read[k]) marker.mark(body.root()->operand(k));
    }
    marker.spread();
    more = false;
    for (const Instruction* u : body.parameters()[0]->users()) {
      const auto k = static_cast<size_t>(u->attrs.tuple_index);
      more |= marker.is_live(u) && !read[k];
      read[k] = read[k] || marker.is_live(u);
    }
  }
  return read;
}

/// What the body computes for the elements that it drops is left to the next sweep.
bool narrow(Instruction& loop, const Effects& effects) {
  const bool apart = is_taken_apart(loop) && loop.while_body()->root()->is(Opcode::kTuple);
  const bool results = !loop.is_root() && std::ranges::all_of(loop.users(), [](const Instruction* u) {
    return u->is(Opcode::kGetTupleElement);
  });
  if (!apart || !results || !loop.operand(0)->is(Opcode::kTuple)) return false;
  const std::vector<bool> read = elements_read(loop, effects);
  if (std::ranges::find(read, false) == read.end() || std::ranges::find(read, true) == read.end()) return false;
  drop_elements(loop, read);
  return true;
}

/// Loops whose body and condition no one else runs; those within another before that, which may drop them.
std::vector<Instruction*> loops_of_their_own(const Module& module) {
  std::unordered_map<const Computation*, int> callers;
  for (const auto& c : module.computations()) {
    for (const auto& i : c->instructions()) {
      for (const Computation* called : i->called) ++callers[called];
    }
  }
  std::vector<Instruction*> loops;
  for (const Computation* c : sequential_computations(module)) {
    for (const auto& i : c->instructions()) {
      const bool own =
          i->is(Opcode::kWhile) && std::ranges::all_of(i->called, [&](auto* called) { return callers[called] == 1; });
      if (own) loops.push_back(i.get());
    }
  }
  return loops;
}

}  // namespace

bool dce(Module& module, const PipelineOptions&) {
  bool changed = false;
  const Effects effects(module);
  for (bool more = true; more;) {
    for (const auto& c : module.computations()) changed |= sweep(*c, effects);
    more = false;
    for (Instruction* loop : loops_of_their_own(module)) more |= narrow(*loop, effects);
    changed |= more;
  }
  size_t before = module.computations().size();
  module.remove_unreachable();
  return changed || module.computations().size() != before;
}

}  // namespace hlojit

// See dce.h. Marks backwards from roots and effects, then removes what is not marked.
#include "compiler/passes/dce.h"

#include <algorithm>
#include <unordered_set>

namespace hlojit {
namespace {

using Computations = std::unordered_set<const Computation*>;

/// has_side_effect, without walking into loops and branches again for each level of nesting.
bool has_effect(const Instruction& i, const Computations& with_effects) {
  if (i.info().op_class != OpClass::kControl) return has_side_effect(i);
  return std::ranges::any_of(i.called, [&](auto* c) { return with_effects.contains(c); });
}

/// Computations that hold an effect, in callees included.
Computations computations_with_effects(const Module& module) {
  Computations set;
  for (const auto& c : module.computations()) {
    for (const auto& i : c->instructions()) {
      if (has_effect(*i, set)) set.insert(c.get());
    }
  }
  return set;
}

bool sweep(Computation& c, const Computations& effects) {
  std::unordered_set<const Instruction*> live;
  std::vector<Instruction*> work;
  auto mark = [&](Instruction* i) {
    if (live.insert(i).second) work.push_back(i);
  };
  mark(c.root());
  for (const auto& i : c.instructions()) {
    if (i->is(Opcode::kParameter) || has_effect(*i, effects)) mark(i.get());
  }
  while (!work.empty()) {
    Instruction* i = work.back();
    work.pop_back();
    for (Instruction* o : i->operands()) mark(o);
  }
  std::vector<Instruction*> dead;
  for (const auto& i : c.instructions()) {
    if (!live.contains(i.get())) dead.push_back(i.get());
  }
  if (!dead.empty()) c.remove_all(dead);
  return !dead.empty();
}

}  // namespace

bool dce(Module& module, const PipelineOptions&) {
  bool changed = false;
  auto effects = computations_with_effects(module);
  for (const auto& c : module.computations()) changed |= sweep(*c, effects);
  size_t before = module.computations().size();
  module.remove_unreachable();
  return changed || module.computations().size() != before;
}

}  // namespace hlojit

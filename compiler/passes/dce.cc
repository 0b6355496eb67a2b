// See dce.h. Marks backwards from roots and effects, then removes what is not marked.
#include "compiler/passes/dce.h"

#include <unordered_set>

#include "compiler/analysis/effects.h"

namespace hlojit {
namespace {

bool sweep(Computation& c, const Effects& effects) {
  std::unordered_set<const Instruction*> live;
  std::vector<Instruction*> work;
  auto mark = [&](Instruction* i) {
    if (live.insert(i).second) work.push_back(i);
  };
  mark(c.root());
  for (const auto& i : c.instructions()) {
    if (i->is(Opcode::kParameter) || effects.has(*i)) mark(i.get());
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
  const Effects effects(module);
  for (const auto& c : module.computations()) changed |= sweep(*c, effects);
  size_t before = module.computations().size();
  module.remove_unreachable();
  return changed || module.computations().size() != before;
}

}  // namespace hlojit

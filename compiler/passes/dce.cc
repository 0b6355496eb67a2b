// See dce.h. Marks backwards from roots and effects, then removes what is not marked.
#include "compiler/passes/dce.h"

#include <utility>

#include "compiler/analysis/effects.h"
#include "compiler/ir/instruction_table.h"

namespace hlojit {
namespace {

bool sweep(Computation& c, const Effects& effects) {
  InstructionTable<char> live(c);
  std::vector<Instruction*> work;
  auto mark = [&](Instruction* i) {
    if (std::exchange(live[i], 1) == 0) work.push_back(i);
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
    if (live[i.get()] == 0) dead.push_back(i.get());
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

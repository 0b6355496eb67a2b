// See allocate.h.
#include "compiler/passes/allocate.h"

#include "compiler/analysis/dataflow.h"
#include "compiler/ir/allocation.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/rounds.h"

namespace hlojit {
namespace {

bool is_filled(const Instruction& i) {
  return i.shape.is_array() && i.shape.rank() > 0 && (i.is(Opcode::kBroadcast) || i.is(Opcode::kConstant));
}

bool allocate_for(Computation& c, Instruction* loop, const PipelineOptions& options) {
  Instruction* state = loop->operand(0);
  const auto rounds = counted_rounds(*loop);
  if (!rounds || *rounds == 0 || state->users().size() > 1) return false;
  bool changed = false;
  for (size_t k = 0; k < state->operand_count(); ++k) {
    Instruction* filled = state->operand(k);
    if (!is_filled(*filled) || !is_overwritten(*loop, static_cast<int64_t>(k), *rounds)) continue;
    explain(options, "allocate", c, "{} of {}: {} rounds write all of it", filled->name, loop->name, *rounds);
    state->set_operand(k, add_allocation(c, filled->shape, filled->name, state));
    changed = true;
  }
  return changed;
}

}  // namespace

bool allocate(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    for (Instruction* i : c->snapshot()) {
      if (i->is(Opcode::kWhile)) changed |= allocate_for(*c, i, options);
    }
  }
  return changed;
}

}  // namespace hlojit

// See split_concatenations.h.
#include "compiler/passes/split_concatenations.h"

#include <algorithm>

#include "compiler/analysis/dataflow.h"
#include "compiler/passes/explain.h"

namespace hlojit {
namespace {

constexpr size_t kMostOperands = 64;  // as many buffers as fuse gives a kernel
constexpr size_t kGroup = 32;

void split(Computation& c, Instruction* i) {
  while (i->operand_count() > kMostOperands) {
    std::vector<Instruction*> operands(i->operands().begin(), i->operands().end()), groups;
    auto dim = static_cast<size_t>(i->attrs.dimensions[0]);
    for (size_t k = 0; k < operands.size(); k += kGroup) {
      std::vector<Instruction*> members(
          operands.begin() + static_cast<std::ptrdiff_t>(k),
          operands.begin() + static_cast<std::ptrdiff_t>(std::min(k + kGroup, operands.size())));
      Instruction* group = c.clone_instruction(*i, members, i->name, i);
      group->shape.dims[dim] = 0;
      for (const Instruction* m : members) group->shape.dims[dim] += m->shape.dims[dim];
      groups.push_back(group);
    }
    i->set_operands(groups);
  }
}

}  // namespace

bool split_concatenations(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    for (Instruction* i : c->snapshot()) {
      if (!i->is(Opcode::kConcatenate) || i->operand_count() <= kMostOperands) continue;
      explain(options, "split_concatenations", *c, "{} of {} operands: groups of {}", i->name, i->operand_count(),
              kGroup);
      split(*c, i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlojit

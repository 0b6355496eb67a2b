// See graph.h.
#include "compiler/plan/graph.h"

#include <algorithm>

#include "compiler/analysis/access.h"
#include "compiler/analysis/prefix.h"
#include "compiler/plan/kernel.h"

namespace hlojit {

void refuse(std::string why) { throw Refused{std::move(why)}; }

std::string quoted(const Instruction* i) { return std::string(op_name(i->opcode)) + " " + i->name; }

bool is_result_element(const Instruction* i) {
  return i->is(Opcode::kGetTupleElement) && has_several_results(*i->operand(0));
}

const std::vector<int64_t>& dims_of(const Instruction* value) {
  return value->shape.is_tuple() ? value->shape.elements.at(0).dims : value->shape.dims;
}

KernelGraph::KernelGraph(Instructions given_members, Instructions given_roots) {
  const InstructionSet given(given_members);
  InstructionSet needed;
  needed.reserve(given.size());
  for (const Instruction* r : given_roots) {
    if (!given.contains(r)) refuse("result " + r->name + " is not computed by the kernel");
    if (!needed.insert(r)) refuse("result " + r->name + " is given twice");
    roots.push_back(r);
  }
  for (auto at = given_members.rbegin(); at != given_members.rend(); ++at) {
    const Instruction* i = *at;
    if (!needed.contains(i)) continue;
    members.push_back(i);
    for (const Instruction* o : i->operands()) {
      if (given.contains(o)) needed.insert(o);
    }
  }
  std::ranges::reverse(members);
  set = std::move(needed);
  for (const Instruction* i : members) {
    if (!is_kernel_op(*i)) refuse(quoted(i) + " is in no kernel");
    if (is_result_element(i) && !has(i->operand(0))) refuse(i->name + " is apart from its op");
    if (i->is(Opcode::kReduce)) reduces.push_back(i);
    if (i->is(Opcode::kDot)) dots.push_back(i);
    if (i->is(Opcode::kConvolution)) convolutions.push_back(i);
    if (i->is(Opcode::kDynamicUpdateSlice)) updates.push_back(i);
    if (i->is(Opcode::kScatter)) scatters.push_back(i);
    if (prefix_window(*i)) scans.push_back(i);
    for (const Instruction* o : i->operands()) {
      if (!has(o) && !o->shape.is_array()) refuse(i->name + " reads a tuple");
    }
  }
}

InstructionSet KernelGraph::dependents(Instructions sources) const {
  InstructionSet found(sources);
  for (const Instruction* i : members) {
    if (std::ranges::any_of(i->operands(), [&](auto* o) { return found.contains(o); })) found.insert(i);
  }
  return found;
}

}  // namespace hlojit

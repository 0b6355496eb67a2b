// See graph.h.
#include "compiler/plan/graph.h"

#include <algorithm>
#include <utility>

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
  given_.reserve(given_members.size());
  for (const Instruction* i : given_members) given_.insert(i);
  for (const Instruction* r : given_roots) {
    Given* given = given_.find(r);
    if (!given) refuse("result " + r->name + " is not computed by the kernel");
    if (std::exchange(given->needed, true)) refuse("result " + r->name + " is given twice");
    roots.push_back(r);
  }
  members.reserve(given_members.size());
  for (auto at = given_members.rbegin(); at != given_members.rend(); ++at) {
    const Instruction* i = *at;
    if (!has(i)) continue;
    members.push_back(i);
    for (const Instruction* o : i->operands()) {
      if (Given* given = given_.find(o)) given->needed = true;
    }
  }
  std::ranges::reverse(members);
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

// See wrap.h.
#include "compiler/passes/wrap.h"

#include <algorithm>
#include <utility>

#include "compiler/analysis/access.h"
#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/movement.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/fusion_builder.h"
#include "compiler/passes/replace_ops.h"
#include "layout/index.h"
#include "layout/index_expr.h"

namespace hlojit {
namespace {

/// Targets of an update that are constants inside the kernel, or operands of it twice, become copies.
bool own_targets(Computation& c, Instruction* update) {
  bool changed = false;
  for (size_t k = 0; k < update_count(*update); ++k) {
    Instruction* target = update->operand(k);
    if (!is_inline_constant(*target) && std::ranges::count(update->operands(), target) == 1) continue;
    Instruction* copy = c.add(Opcode::kCopy, target->shape, {target}, "copy");
    copy->location = update->location;
    update->set_operand(k, copy);
    changed = true;
  }
  return changed;
}

/// Reshapes and the like that move nothing become bitcasts, barriers are bypassed.
bool simplify_forwarding(Computation& c, const PipelineOptions& options) {
  std::vector<Instruction*> dead;
  bool changed = false;
  auto replace = [&](Instruction* i, Instruction* by) {
    hand_on_waits(*i);
    i->replace_all_uses_with(by);
    dead.push_back(i);
  };
  for (Instruction* i : c.snapshot()) {
    if (i->is(Opcode::kOptBarrier)) {
      replace(i, i->operand(0));
    } else if (i->is(Opcode::kGetTupleElement) && i->operand(0)->is(Opcode::kTuple)) {
      replace(i, i->operand(0)->operand(static_cast<size_t>(i->attrs.tuple_index)));  // through a barrier
    } else if (i->is(Opcode::kDynamicUpdateSlice) && i->operand(0) == i->operand(1)) {
      // An update with the array itself starts at 0 and changes nothing: no kernel for it.
      Instruction* copy = c.add(Opcode::kCopy, i->shape, {i->operand(0)}, "copy");
      copy->location = i->location;
      replace(i, copy);
    } else if (has_trait(*i, op_trait::kUpdates)) {
      changed |= own_targets(c, i);
    } else if (is_kernel_op(*i) && i->operand_count() == 1 && keeps_memory(*i)) {
      explain(options, "wrap", c, "{} {} moves no bytes: a bitcast", op_name(i->opcode), i->name);
      Instruction* cast = c.add(Opcode::kBitcast, i->shape, {i->operand(0)}, "bitcast");
      cast->location = i->location;
      replace(i, cast);
      // What was read as a bitcast keeps its name and its place.
      if (i->name.starts_with("bitcast")) {
        std::swap(cast->name, i->name);
        i->control_predecessors.push_back(cast);
      }
    }
  }
  if (dead.empty() && !changed) return false;
  c.sort_topologically();
  c.remove_all(dead);
  return true;
}

/// A group for each kernel op; the elements of a variadic reduce go with it.
std::vector<KernelGroup> single_groups(const Computation& c, const TargetInfo& target) {
  Products products(target);
  std::vector<KernelGroup> groups;
  for (const auto& i : c.instructions()) {
    if (!is_kernel_op(*i) || i->is(Opcode::kConstant) || i->is(Opcode::kGetTupleElement)) continue;
    KernelGroup group{.members = {i.get()}, .roots = {}, .plan = {}};
    if (i->shape.is_tuple()) {
      for (Instruction* element : i->users()) {
        group.members.push_back(element);
        group.roots.push_back(element);
      }
      if (group.roots.empty()) continue;
    } else {
      group.roots = {i.get()};
    }
    std::vector<const Instruction*> members(group.members.begin(), group.members.end());
    std::vector<const Instruction*> roots(group.roots.begin(), group.roots.end());
    std::string why;
    auto plan = plan_kernel(members, roots, products, &why);
    if (!plan) {
      throw Error(ErrorKind::kUnsupported, i->location,
                  std::string(op_name(i->opcode)) + " is not compiled yet: " + why);
    }
    group.plan = std::move(*plan);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

bool keeps_memory(const Instruction& i) {
  const Shape& from = i.operand(0)->shape;
  const Shape& to = i.shape;
  if (physical_size(from) != physical_size(to) || element_bits(from) != element_bits(to)) {
    return false;
  }
  // Data movement by a fixed map; copies are where bytes have to move.
  bool moves = i.is(Opcode::kReshape) || i.is(Opcode::kTranspose) || i.is(Opcode::kBroadcast);
  if (!moves || from.element_count() != to.element_count()) return false;
  Coords index;
  for (int d = 0; d < to.rank(); ++d) index.push_back(IndexExpr::var(d, to.dims[d]));
  std::optional<Coords> read = operand_coords(i, 0, index);
  return read && linear_index(from, *read) == linear_index(to, index);
}

bool wrap(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    changed |= simplify_forwarding(*c, options);
    changed |= split_variadic_results(*c);
    std::vector<KernelGroup> groups = single_groups(*c, options.target);
    if (!groups.empty()) build_fusions(*c, groups);
    changed |= !groups.empty();
    for (const auto& i : c->instructions()) {
      if (i->is(Opcode::kFusion)) explain(options, "wrap", *c, "{} is planned as {}", i->name, i->attrs.backend_config);
    }
  }
  if (changed) module.remove_unreachable();
  return changed;
}

}  // namespace hlojit

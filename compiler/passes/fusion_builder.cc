// See fusion_builder.h. All fused computations are cloned from the untouched graph first, only then
// is the graph rewired: a group may contain a value that another group hands out.
#include "compiler/passes/fusion_builder.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace hlojit {
namespace {

FusionKind fusion_kind(KernelKind kind) {
  switch (kind) {
    case KernelKind::kNest:
    case KernelKind::kScan:
    case KernelKind::kScatter: return FusionKind::kLoop;
    case KernelKind::kRows:
    case KernelKind::kColumns: return FusionKind::kInput;
    case KernelKind::kContraction: return FusionKind::kOutput;
  }
  return FusionKind::kLoop;
}

/// What is there instead of an instruction.
using InsteadOf = std::unordered_map<const Instruction*, Instruction*>;

/// The plan in terms of the copies.
KernelPlan renamed(KernelPlan plan, const InsteadOf& copies) {
  auto rename = [&](const Instruction*& i) {
    if (i) i = copies.at(i);
  };
  rename(plan.hero);
  for (const Instruction*& r : plan.roots) rename(r);
  for (Stage& s : plan.stages) {
    for (const Instruction*& r : s.reduces) rename(r);
    for (const Instruction*& v : s.keeps) rename(v);
  }
  return plan;
}

/// The members as their roots ask for them, operands first: equal groups are told by that (codegen/kernel_key),
/// wherever their members stood among others. (A train step has 55 units of code for 60 so.)
std::vector<Instruction*> by_demand(const KernelGroup& group) {
  std::unordered_set<const Instruction*> open(group.members.begin(), group.members.end());
  std::vector<Instruction*> order;
  std::vector<std::pair<Instruction*, size_t>> path;  // and which of its operands is next
  for (Instruction* root : group.roots) {
    if (open.erase(root)) path.emplace_back(root, 0);
    while (!path.empty()) {
      auto& [i, next] = path.back();
      if (next == i->operand_count()) {
        order.push_back(i);
        path.pop_back();
      } else if (Instruction* operand = i->operand(next++); open.erase(operand)) {
        path.emplace_back(operand, 0);
      }
    }
  }
  std::ranges::copy_if(group.members, std::back_inserter(order), [&](Instruction* m) { return open.contains(m); });
  return order;
}

/// The group as a computation; `inputs` receives what its parameters stand for, in order, `config` the plan.
Computation* clone_group(Module& module, const KernelGroup& group, std::vector<Instruction*>& inputs,
                         std::string& config) {
  Computation* fused = module.add_computation("fused");
  InsteadOf copies;
  std::unordered_set<const Instruction*> members(group.members.begin(), group.members.end());
  const std::vector<Instruction*> order = by_demand(group);
  for (Instruction* m : order) {
    for (Instruction* o : m->operands()) {
      if (members.contains(o) || copies.contains(o)) continue;
      if (is_inline_constant(*o)) {
        copies[o] = fused->clone_instruction(*o, {});
      } else {
        copies[o] = fused->add_parameter(static_cast<int64_t>(inputs.size()), o->shape, o->name);
        inputs.push_back(o);
      }
    }
  }
  for (Instruction* m : order) {
    std::vector<Instruction*> operands;
    for (Instruction* o : m->operands()) operands.push_back(copies.at(o));
    copies[m] = fused->clone_instruction(*m, std::move(operands));
  }
  if (group.roots.size() == 1) {
    fused->set_root(copies.at(group.roots[0]));
  } else {
    std::vector<Instruction*> results;
    std::vector<Shape> shapes;
    for (Instruction* r : group.roots) {
      results.push_back(copies.at(r));
      shapes.push_back(r->shape);
    }
    fused->set_root(fused->add(Opcode::kTuple, Shape::tuple(shapes), std::move(results)));
  }
  config = kernel_config(renamed(group.plan, copies));
  return fused;
}

Instruction* add_fusion(Computation& c, Computation* fused, std::vector<Instruction*> inputs, KernelKind kind,
                        std::string config) {
  Instruction* fusion = c.add(Opcode::kFusion, fused->root()->shape, std::move(inputs), "fusion");
  fusion->called = {fused};
  fusion->attrs.fusion_kind = fusion_kind(kind);
  fusion->attrs.backend_config = std::move(config);
  return fusion;
}

/// A member that its group computes anew may have readers that no group serves (a loop, or an op that
/// is left for another pass): it stays, and so does what it reads.
void keep_what_is_read(const Computation& c, const InsteadOf& replacement,
                       std::unordered_set<const Instruction*>& dead) {
  std::vector<const Instruction*> live;
  auto need = [&](const Instruction* i) {
    if (!replacement.contains(i) && dead.erase(i)) live.push_back(i);
  };
  need(c.root());
  for (const auto& i : c.instructions()) {
    if (dead.contains(i.get())) continue;
    for (const Instruction* o : i->operands()) need(o);
  }
  while (!live.empty()) {
    const Instruction* i = live.back();
    live.pop_back();
    for (const Instruction* o : i->operands()) need(o);
  }
}

/// What stays reads, and runs after, what has taken the place of what goes.
void rewire(Computation& c, const InsteadOf& replacement, const InsteadOf& fusion_of,
            const std::unordered_set<const Instruction*>& dead) {
  auto instead = [](const InsteadOf& of, Instruction* i) {
    auto at = of.find(i);
    return at == of.end() ? i : at->second;
  };
  for (const auto& i : c.instructions()) {
    if (dead.contains(i.get())) continue;
    std::vector<Instruction*> operands(i->operands().begin(), i->operands().end());
    for (Instruction*& o : operands) o = instead(replacement, o);
    if (!std::ranges::equal(operands, i->operands())) i->set_operands(std::move(operands));
    for (Instruction*& p : i->control_predecessors) p = instead(fusion_of, p);
    std::erase(i->control_predecessors, i.get());
  }
  c.set_root(instead(replacement, c.root()));
}

}  // namespace

void build_fusions(Computation& c, std::span<const KernelGroup> groups) {
  Module& module = *c.parent();
  std::vector<std::vector<Instruction*>> inputs(groups.size());
  std::vector<Computation*> fused(groups.size());
  std::vector<std::string> configs(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    fused[g] = clone_group(module, groups[g], inputs[g], configs[g]);
  }

  // A fusion stands where its last member stood.
  std::unordered_map<const Instruction*, size_t> position;
  for (const auto& i : c.instructions()) position.emplace(i.get(), position.size());

  // Fusions of old inputs first, then one rewiring pass over everything that stays.
  InsteadOf replacement;
  InsteadOf fusion_of;  // any member -> its home fusion
  std::vector<Instruction*> dead;
  std::unordered_set<const Instruction*> is_dead;
  for (size_t g = 0; g < groups.size(); ++g) {
    const KernelGroup& group = groups[g];
    Instruction* fusion = add_fusion(c, fused[g], inputs[g], group.plan.kind, configs[g]);
    position[fusion] = position.at(group.members.back());
    fusion->location = group.roots[0]->location;
    fusion->attrs.metadata = group.roots[0]->attrs.metadata;
    for (Instruction* m : group.members) {
      if (is_dead.insert(m).second) dead.push_back(m);
      fusion->control_predecessors.insert(fusion->control_predecessors.end(), m->control_predecessors.begin(),
                                          m->control_predecessors.end());
      fusion_of[m] = fusion;
    }
    for (size_t k = 0; k < group.roots.size(); ++k) {
      Instruction* result = fusion;
      if (group.roots.size() > 1) {
        result = c.add(Opcode::kGetTupleElement, group.roots[k]->shape, {fusion});
        result->attrs.tuple_index = static_cast<int64_t>(k);
        position[result] = position.at(fusion);
      }
      replacement[group.roots[k]] = result;
    }
  }
  keep_what_is_read(c, replacement, is_dead);
  std::erase_if(dead, [&](const Instruction* i) { return !is_dead.contains(i); });
  rewire(c, replacement, fusion_of, is_dead);
  c.remove_all(dead);
  std::vector<Instruction*> order = c.snapshot();
  std::ranges::stable_sort(order, {}, [&](const Instruction* i) { return position.at(i); });
  c.set_order(order);
  c.sort_topologically();
}

namespace {

/// A scatter needs memory for each of its results, read or not: one element instruction each.
bool complete_results(Computation& c, Instruction* scatter) {
  std::vector<Instruction*> elements(scatter->shape.elements.size());
  std::vector<Instruction*> users(scatter->users().begin(), scatter->users().end());
  bool changed = false;
  for (Instruction* user : users) {
    Instruction*& element = elements[static_cast<size_t>(user->attrs.tuple_index)];
    if (!element) {
      element = user;
      continue;
    }
    user->replace_all_uses_with(element);
    c.remove(user);
    changed = true;
  }
  for (size_t k = 0; k < elements.size(); ++k) {
    if (elements[k]) continue;
    c.add(Opcode::kGetTupleElement, scatter->shape.elements[k], {scatter})->attrs.tuple_index = static_cast<int64_t>(k);
    changed = true;
  }
  return changed;
}

}  // namespace

bool split_variadic_results(Computation& c) {
  bool changed = false;
  for (Instruction* i : c.snapshot()) {
    if (!has_several_results(*i)) continue;
    bool whole = i->is_root() ||
                 std::ranges::any_of(i->users(), [](Instruction* user) { return !user->is(Opcode::kGetTupleElement); });
    if (!whole) {
      changed |= i->is(Opcode::kScatter) && complete_results(c, i);
      continue;
    }
    std::vector<Instruction*> readers(i->users().begin(), i->users().end());
    std::vector<Instruction*> elements;
    for (size_t k = 0; k < i->shape.elements.size(); ++k) {
      Instruction* e = c.add(Opcode::kGetTupleElement, i->shape.elements[k], {i});
      e->attrs.tuple_index = static_cast<int64_t>(k);
      elements.push_back(e);
    }
    Instruction* tuple = c.add(Opcode::kTuple, i->shape, std::move(elements));
    for (Instruction* user : readers) {
      if (user->is(Opcode::kGetTupleElement)) continue;
      for (size_t k = 0; k < user->operand_count(); ++k) {
        if (user->operand(k) == i) user->set_operand(k, tuple);
      }
    }
    if (i->is_root()) c.set_root(tuple);
    changed = true;
  }
  if (changed) c.sort_topologically();
  return changed;
}

Instruction* add_copy_fusion(Instruction* value) {
  Computation& c = *value->parent();
  Computation* fused = c.parent()->add_computation("fused_copy");
  Instruction* parameter = fused->add_parameter(0, value->shape);
  fused->set_root(fused->add(Opcode::kCopy, value->shape, {parameter}));
  Instruction* fusion = add_fusion(c, fused, {value}, KernelKind::kNest, kernel_config(KernelPlan{}));
  fusion->location = value->location;
  return fusion;
}

}  // namespace hlojit

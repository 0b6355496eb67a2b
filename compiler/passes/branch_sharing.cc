// See branch_sharing.h. Callees first, what results of conditionals come from; then callers first, what is shared:
// whether a branch may overwrite its parameter is known when the conditionals in it are looked at.
#include "compiler/passes/branch_sharing.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/plan/kernel.h"

namespace hlojit {
namespace {

bool is_conditional(const std::unique_ptr<Instruction>& i) { return i->is(Opcode::kConditional); }

// Everything that cannot but run after `from`.
std::unordered_set<const Instruction*> after(const Instruction* from) {
  std::unordered_set<const Instruction*> seen;
  std::vector<const Instruction*> work = {from};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    for (const Instruction* user : i->users()) {
      if (seen.insert(user).second) work.push_back(user);
    }
  }
  return seen;
}

}  // namespace

BranchSharing::BranchSharing(const Module& module, const Dataflow& flow) : flow_(flow) {
  std::vector<Computation*> computations = sequential_computations(module);
  for (const Computation* c : computations) find_origins(*c);
  for (auto at = computations.rbegin(); at != computations.rend(); ++at) look_at(**at);
}

void BranchSharing::look_at(Computation& c) {
  if (std::ranges::none_of(c.instructions(), is_conditional)) return;
  Readers readers;
  for (const auto& i : c.instructions()) {
    if (forwards(*i)) continue;
    for (const ArrayValue& v : flow_.reads(i.get())) readers[v].push_back(i.get());
  }
  for (const auto& i : c.instructions()) {
    if (is_conditional(i)) share(*i, readers);
  }
}

void BranchSharing::share(Instruction& conditional, const Readers& readers) {
  std::span<const ArrayValue> results = flow_.values(&conditional);
  for (const Computation* branch : conditional.called) leaves_[branch].assign(results.size(), -1);
  std::unordered_set<ArrayValue, ArrayValueHash> given;
  std::optional<std::unordered_set<const Instruction*>> later;  // once somebody asks
  for (size_t k = 0; k < results.size(); ++k) {
    const ArrayValue v = origins_.at(results[k]);
    if (!v.def || given.contains(v) || !may_be_given(v, conditional)) continue;
    const std::vector<Instruction*>& reading = readers.at(v);  // in order
    if (reading.back() != &conditional) {
      if (!later) later = after(&conditional);
      if (std::ranges::any_of(reading, [&](const Instruction* i) { return later->contains(i); })) continue;
    }
    given.insert(v);
    for (size_t b = 0; b < conditional.called.size(); ++b) {
      std::span<const ArrayValue> handed = flow_.values(conditional.operand(b + 1));
      auto at = std::ranges::find(handed, v);
      if (at != handed.end()) leaves_[conditional.called[b]][k] = at - handed.begin();
    }
  }
}

// Memory that the caller may have written, once in each branch's operand at most.
bool BranchSharing::may_be_given(const ArrayValue& v, const Instruction& conditional) const {
  const Computation& c = *conditional.parent();
  if (v.def->is(Opcode::kParameter)) {
    const Instruction* caller = flow_.caller(&c);
    if (!caller) return false;
    if (caller->is(Opcode::kConditional)) {
      if (std::ranges::find(leaves_.at(&c), v.leaf) == leaves_.at(&c).end()) return false;
    } else if (caller->while_body() != &c || flow_.invariant(caller, v.leaf)) {
      return false;
    }
  } else if (!makes_arrays(*v.def) && !v.def->is(Opcode::kWhile) && !is_donated_copy(*v.def)) {
    return false;
  }
  if (std::ranges::find(flow_.values(c.root()), v) != flow_.values(c.root()).end()) return false;
  if (flow_.values(conditional.operand(0))[0] == v) return false;
  for (size_t b = 0; b < conditional.called.size(); ++b) {
    if (std::ranges::count(flow_.values(conditional.operand(b + 1)), v) > 1) return false;
  }
  return true;
}

void BranchSharing::find_origins(const Computation& c) {
  for (const auto& i : c.instructions()) {
    if (!is_conditional(i)) continue;
    for (const ArrayValue& result : flow_.values(i.get())) origins_[result] = common_origin(*i, result.leaf);
  }
}

// The value at the caller that a result comes from in all branches where it comes from one at all.
ArrayValue BranchSharing::common_origin(const Instruction& conditional, int64_t leaf) const {
  ArrayValue common;
  for (size_t b = 0; b < conditional.called.size(); ++b) {
    const ArrayValue inside = origin(flow_.values(conditional.called[b]->root())[static_cast<size_t>(leaf)]);
    if (!inside.def) continue;
    const ArrayValue v = flow_.values(conditional.operand(b + 1))[static_cast<size_t>(inside.leaf)];
    if (common.def && common != v) return {};
    common = v;
  }
  return common;
}

// The parameter's leaf that `v` is, or is made of in place; no instruction: none.
ArrayValue BranchSharing::origin(ArrayValue v) const {
  while (v.def && !v.def->is(Opcode::kParameter)) v = source(v);
  return v;
}

// The array that `v` may take the memory of; no instruction: none.
ArrayValue BranchSharing::source(const ArrayValue& v) const {
  const Instruction& i = *v.def;
  if (i.is(Opcode::kWhile)) return flow_.values(i.operand(0))[static_cast<size_t>(v.leaf)];
  if (i.is(Opcode::kConditional)) return origins_.at(v);
  if (!i.is(Opcode::kFusion)) return {};
  for (const Update& u : updated_parameters(*i.to_apply())) {
    if (u.result == v.leaf) return flow_.values(i.operand(static_cast<size_t>(u.parameter)))[0];
  }
  return {};
}

}  // namespace hlojit

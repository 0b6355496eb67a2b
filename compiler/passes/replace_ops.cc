// See replace_ops.h.
#include "compiler/passes/replace_ops.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/passes/explain.h"
#include "compiler/passes/inline_calls.h"

namespace hlojit {
namespace {

// A small text may double at each level: maps of maps, branches in branches.
constexpr size_t kMaxInstructions = 1'000'000;

using Waits = std::vector<Instruction*>;

Waits redirected(const Waits& waits, const StandIns& instead) {
  Waits all, open(waits.rbegin(), waits.rend());
  std::unordered_set<const Instruction*> seen;  // what stands for one may have been replaced, too
  while (!open.empty()) {
    Instruction* p = open.back();
    open.pop_back();
    if (!seen.insert(p).second) continue;
    auto at = instead.find(p);
    if (at == instead.end())
      all.push_back(p);
    else
      open.insert(open.end(), at->second.rbegin(), at->second.rend());
  }
  return all;
}

}  // namespace

bool replace_ops(Computation& c, std::string_view pass, const PipelineOptions& options,
                 const std::function<Instruction*(const Instruction&)>& make) {
  StandIns instead;
  std::vector<Instruction*> dead;
  for (Instruction* i : c.snapshot()) {
    size_t before = c.instructions().size();
    Instruction* made = make(*i);
    if (!made) continue;
    if (c.instructions().size() > kMaxInstructions) {
      throw Error(ErrorKind::kFailed, i->location,
                  fmt::format("{}: {} becomes more than {} instructions", pass, c.name, kMaxInstructions));
    }
    const Waits& waits = i->control_predecessors;
    bool is_new = false;
    for (size_t k = before; k < c.instructions().size(); ++k) {
      Instruction& fresh = *c.instructions()[k];
      fresh.location = i->location;
      fresh.control_predecessors = waits;
      is_new |= &fresh == made;
    }
    explain(options, pass, c, "{} {}: {} instructions", op_name(i->opcode), i->name, c.instructions().size() - before);
    instead[i] = {made};
    if (!is_new) hand_on_waits(*i, instead);
    i->replace_all_uses_with(made);
    dead.push_back(i);
  }
  if (dead.empty()) return false;
  redirect_waits(c, instead);
  return remove_replaced(c, dead);
}

void hand_on_waits(const Instruction& i, StandIns& instead) {
  const Waits& waits = i.control_predecessors;
  if (waits.empty()) return;
  Waits& whom = instead[&i];
  whom.insert(whom.end(), waits.begin(), waits.end());
  hand_on_waits(i);
}

void hand_on_waits(const Instruction& i) {
  for (Instruction* user : i.users()) {
    Waits& waits = user->control_predecessors;
    for (Instruction* p : i.control_predecessors) {
      if (std::ranges::find(waits, p) == waits.end()) waits.push_back(p);
    }
  }
}

void redirect_waits(Computation& c, const StandIns& instead) {
  if (instead.empty()) return;
  for (const auto& i : c.instructions()) {
    if (i->control_predecessors.empty()) continue;
    i->control_predecessors = redirected(i->control_predecessors, instead);
    std::erase(i->control_predecessors, i.get());
  }
}

bool remove_replaced(Computation& c, std::span<Instruction* const> dead) {
  if (dead.empty()) return false;
  c.remove_all(dead);
  bypass_tuples(c);
  c.sort_topologically();
  return true;
}

}  // namespace hlojit

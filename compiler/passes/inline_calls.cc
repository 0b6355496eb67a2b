// See inline_calls.h. Callers come first: a body is pasted where its call is, calls and all, which are then met there.
// So calls nested in a line cost no more than they leave. A computation called n times is cloned n times; since that
// doubles at each level of a hostile module, the total is bounded.
#include "compiler/passes/inline_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "compiler/analysis/effects.h"
#include "compiler/ir/instruction_set.h"
#include "compiler/ir/module.h"
#include "compiler/passes/replace_ops.h"
#include "compiler/plan/kernel.h"

namespace hlojit {
namespace {

constexpr int64_t kMaxInstructions = 1'000'000;
constexpr size_t kMaxKept = 1000;  // of a fusion: `fuse` makes none larger; kernels are emitted recursively

[[noreturn]] void refuse_size() {
  throw Error(ErrorKind::kFailed, "inlining the calls of this module makes more than " +
                                      std::to_string(kMaxInstructions) + " instructions");
}

class Inliner {
 public:
  Inliner(Module& module, const TargetInfo& target) : module_(module), target_(target) {
    refuse_explosion();
    for (const auto& c : module_.computations()) total_ += c->instructions().size();
  }

  bool run() {
    std::unordered_set<const Computation*> needed = {module_.entry()};
    for (const auto& c : std::views::reverse(module_.computations())) {
      if (!needed.contains(c.get())) continue;
      inline_into(*c);
      for (const auto& i : c->instructions()) needed.insert(i->called.begin(), i->called.end());
    }
    changed_ |= needed.size() < module_.computations().size();
    changed_ |= unshare(module_);
    if (changed_) module_.remove_unreachable();
    return changed_;
  }

 private:
  // What the entry will hold, counted before anything is made: a small text may double at each level.
  void refuse_explosion() const {
    std::unordered_map<const Computation*, int64_t> size;
    for (const auto& c : module_.computations()) {
      auto n = static_cast<int64_t>(c->instructions().size());
      for (const auto& i : c->instructions()) {
        bool runs = i->is(Opcode::kCall) || i->is(Opcode::kFusion) || has_trait(*i, op_trait::kRuns);
        if (!runs) continue;
        for (const Computation* callee : i->called) n = std::min(n + size.at(callee), kMaxInstructions + 1);
      }
      size[c.get()] = n;
    }
    if (size.at(module_.entry()) > kMaxInstructions) refuse_size();
  }

  bool dissolves(const Instruction& i) {
    if (i.is(Opcode::kCall)) return true;
    if (!i.is(Opcode::kFusion)) return false;
    if (i.to_apply()->instructions().size() > kMaxKept || !has_kernel_config(i)) return true;
    auto [kept, is_new] = kept_.try_emplace({i.to_apply(), i.attrs.backend_config});
    if (is_new) kept->second = plan_kernel(*i.to_apply(), target_, i.attrs.backend_config).has_value();
    return !kept->second;
  }

  void grow(size_t instructions) {
    total_ += static_cast<int64_t>(instructions);
    if (total_ > kMaxInstructions) refuse_size();
  }

  void inline_into(Computation& c) {
    std::vector<Instruction*> dead, open = c.snapshot();
    InstructionSet awaited;
    for (const Instruction* i : open) awaited.insert_all(i->control_predecessors);
    StandIns instead;
    for (size_t k = 0; k < open.size(); ++k) {
      Instruction* i = open[k];
      if (!dissolves(*i)) continue;
      grow(i->to_apply()->instructions().size());
      const size_t before = c.instructions().size();
      Instruction* result = paste(c, *i->to_apply(), i->operands());
      const auto pasted = std::span(c.instructions()).subspan(before);
      for (const auto& p : pasted) {
        open.push_back(p.get());
        awaited.insert_all(p->control_predecessors);
      }
      if (awaited.contains(i)) {
        instead[i] = last_effects(pasted);
        instead[i].push_back(result);
        awaited.insert_all(instead[i]);
      }
      for (const auto& p : pasted) {
        auto& waits = p->control_predecessors;
        waits.insert(waits.end(), i->control_predecessors.begin(), i->control_predecessors.end());
      }
      const bool is_new = std::ranges::find(pasted, result, &std::unique_ptr<Instruction>::get) != pasted.end();
      if (!is_new) hand_on_waits(*i, instead);
      i->replace_all_uses_with(result);
      dead.push_back(i);
    }
    if (!dead.empty()) {
      redirect_waits(c, instead);
      c.remove_all(dead);
      changed_ = true;
    }
    changed_ |= bypass_tuples(c);
    if (!dead.empty()) c.sort_topologically();
  }

  /// What has an effect in a body that was pasted, but what runs before another such anyway. (That a call is over says
  /// more than that its result is there.)
  std::vector<Instruction*> last_effects(std::span<const std::unique_ptr<Instruction>> pasted) {
    if (!effects_) effects_.emplace(module_);
    std::vector<Instruction*> last;
    InstructionSet before_another;
    for (const auto& i : std::views::reverse(pasted)) {
      const bool followed = before_another.contains(i.get()), acts = effects_->has(*i);
      if (acts && !followed) last.push_back(i.get());
      if (!acts && !followed) continue;
      before_another.insert_all(i->operands());
      before_another.insert_all(i->control_predecessors);
    }
    return last;
  }

  Module& module_;
  const TargetInfo& target_;
  std::map<std::pair<const Computation*, std::string>, bool> kept_;  // fusions of our own
  std::optional<Effects> effects_;
  int64_t total_ = 0;
  bool changed_ = false;
};

}  // namespace

Instruction* paste(Computation& into, const Computation& body, std::span<Instruction* const> arguments) {
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const auto& i : body.instructions()) {
    Instruction*& copy = copies[i.get()];
    if (i->is(Opcode::kParameter)) {
      copy = arguments[static_cast<size_t>(i->attrs.parameter_number)];
      continue;
    }
    std::vector<Instruction*> operands;
    for (Instruction* o : i->operands()) operands.push_back(copies.at(o));
    copy = into.clone_instruction(*i, std::move(operands));
    for (Instruction* p : i->control_predecessors) copy->control_predecessors.push_back(copies.at(p));
  }
  return copies.at(body.root());
}

bool bypass_tuples(Computation& c) {
  std::vector<Instruction*> dead, open = c.snapshot();
  InstructionSet done;
  for (size_t k = 0; k < open.size(); ++k) {
    Instruction* i = open[k];
    if (!i->is(Opcode::kGetTupleElement) || !i->operand(0)->is(Opcode::kTuple) || done.contains(i)) continue;
    Instruction* element = i->operand(0)->operand(i->attrs.tuple_index);
    if (element->is(Opcode::kTuple)) open.insert(open.end(), i->users().begin(), i->users().end());
    hand_on_waits(*i);
    i->replace_all_uses_with(element);
    done.insert(i);
    dead.push_back(i);
  }
  if (!dead.empty()) c.remove_all(dead);
  return !dead.empty();
}

bool unshare(Module& module) {
  int64_t total = 0;
  std::unordered_set<const Computation*> taken;
  for (const auto& c : module.computations()) {
    total += std::ssize(c->instructions());
    for (const auto& i : c->instructions()) {
      if (has_trait(*i, op_trait::kRuns)) continue;
      taken.insert(i->called.begin(), i->called.end());
    }
  }
  bool changed = false;
  std::vector<Computation*> work = {module.entry()};
  while (!work.empty()) {
    Computation* c = work.back();
    work.pop_back();
    for (const auto& i : c->instructions()) {
      if (!has_trait(*i, op_trait::kRuns)) continue;
      for (Computation*& called : i->called) {
        if (!taken.insert(called).second) {
          total += std::ssize(called->instructions());
          if (total > kMaxInstructions) refuse_size();
          called = module.clone_computation(*called, called->name);
          taken.insert(called);
          changed = true;
        }
        work.push_back(called);
      }
    }
  }
  return changed;
}

bool inline_calls(Module& module, const PipelineOptions& options) { return Inliner(module, options.target).run(); }

}  // namespace hlojit

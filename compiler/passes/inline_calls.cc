// See inline_calls.h. Callees come before callers, so by the time a call is inlined its callee holds no
// call any more. A computation called n times is cloned n times; since that doubles at each level of a
// hostile module, the total is bounded.
#include "compiler/passes/inline_calls.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/module.h"
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
    for (const auto& c : module.computations()) total_ += c->instructions().size();
  }

  bool run() {
    for (const auto& c : module_.computations()) inline_into(*c);
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

  bool dissolves(const Instruction& i) const {
    if (i.is(Opcode::kCall)) return true;
    if (!i.is(Opcode::kFusion)) return false;
    bool small = i.to_apply()->instructions().size() <= kMaxKept;
    return !small || !has_kernel_config(i) || !plan_kernel(*i.to_apply(), target_, i.attrs.backend_config);
  }

  void grow(size_t instructions) {
    total_ += static_cast<int64_t>(instructions);
    if (total_ > kMaxInstructions) refuse_size();
  }

  void inline_into(Computation& c) {
    std::vector<Instruction*> dead;
    std::unordered_map<Instruction*, Instruction*> result_of;
    for (Instruction* i : c.snapshot()) {
      if (!dissolves(*i)) continue;
      grow(i->to_apply()->instructions().size());
      const size_t before = c.instructions().size();
      Instruction* result = paste(c, *i->to_apply(), i->operands());
      for (size_t k = before; k < c.instructions().size(); ++k) {
        auto& waits = c.instructions()[k]->control_predecessors;
        waits.insert(waits.end(), i->control_predecessors.begin(), i->control_predecessors.end());
      }
      result_of[i] = result;
      i->replace_all_uses_with(result);
      dead.push_back(i);
    }
    if (!dead.empty()) {
      for (const auto& i : c.instructions()) {
        for (Instruction*& p : i->control_predecessors) {
          while (result_of.contains(p)) p = result_of.at(p);
        }
        std::erase(i->control_predecessors, i.get());
      }
      c.remove_all(dead);
      changed_ = true;
    }
    changed_ |= bypass_tuples(c);
    if (!dead.empty()) c.sort_topologically();
  }

  Module& module_;
  const TargetInfo& target_;
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
  std::vector<Instruction*> dead;
  for (Instruction* i : c.snapshot()) {
    if (!i->is(Opcode::kGetTupleElement) || !i->operand(0)->is(Opcode::kTuple)) continue;
    i->replace_all_uses_with(i->operand(0)->operand(i->attrs.tuple_index));
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

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

class Inliner {
 public:
  Inliner(Module& module, const TargetInfo& target) : module_(module), target_(target) {
    refuse_explosion();
    for (const auto& c : module.computations()) total_ += c->instructions().size();
  }

  bool run() {
    for (const auto& c : module_.computations()) inline_into(*c);
    unshare();
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
    if (size.at(module_.entry()) > kMaxInstructions) refuse();
  }

  [[noreturn]] static void refuse() {
    throw Error(ErrorKind::kFailed, "inlining the calls of this module makes more than " +
                                        std::to_string(kMaxInstructions) + " instructions");
  }

  bool dissolves(const Instruction& i) const {
    if (i.is(Opcode::kCall)) return true;
    if (!i.is(Opcode::kFusion)) return false;
    bool small = i.to_apply()->instructions().size() <= kMaxKept;
    return !small || !has_kernel_config(i) || !plan_kernel(*i.to_apply(), target_, i.attrs.backend_config);
  }

  void grow(size_t instructions) {
    total_ += static_cast<int64_t>(instructions);
    if (total_ > kMaxInstructions) refuse();
  }

  void inline_into(Computation& c) {
    std::vector<Instruction*> dead;
    std::unordered_map<Instruction*, Instruction*> result_of;
    for (Instruction* i : c.snapshot()) {
      if (!dissolves(*i)) continue;
      Instruction* result = paste(c, *i);
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

  /// Appends the body of what `call` calls; returns its result.
  Instruction* paste(Computation& c, const Instruction& call) {
    const Computation& callee = *call.to_apply();
    grow(callee.instructions().size());
    std::unordered_map<const Instruction*, Instruction*> copies;
    for (const auto& i : callee.instructions()) {
      if (i->is(Opcode::kParameter)) {
        copies[i.get()] = call.operand(i->attrs.parameter_number);
        continue;
      }
      std::vector<Instruction*> operands;
      for (Instruction* o : i->operands()) operands.push_back(copies.at(o));
      Instruction* copy = c.clone_instruction(*i, std::move(operands));
      copy->control_predecessors = call.control_predecessors;
      for (Instruction* p : i->control_predecessors) {
        copy->control_predecessors.push_back(copies.at(p));
      }
      copies[i.get()] = copy;
    }
    return copies.at(callee.root());
  }

  /// Clones computations that control flow runs from two places, or that are also applied to scalars.
  void unshare() {
    std::unordered_set<const Computation*> taken;
    for (const auto& c : module_.computations()) {
      for (const auto& i : c->instructions()) {
        if (has_trait(*i, op_trait::kRuns)) continue;
        taken.insert(i->called.begin(), i->called.end());
      }
    }
    std::vector<Computation*> work = {module_.entry()};
    while (!work.empty()) {
      Computation* c = work.back();
      work.pop_back();
      for (const auto& i : c->instructions()) {
        if (!has_trait(*i, op_trait::kRuns)) continue;
        for (Computation*& called : i->called) {
          if (!taken.insert(called).second) {
            grow(called->instructions().size());
            called = module_.clone_computation(*called, called->name);
            taken.insert(called);
            changed_ = true;
          }
          work.push_back(called);
        }
      }
    }
  }

  Module& module_;
  const TargetInfo& target_;
  int64_t total_ = 0;
  bool changed_ = false;
};

}  // namespace

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

bool inline_calls(Module& module, const PipelineOptions& options) { return Inliner(module, options.target).run(); }

}  // namespace hlojit

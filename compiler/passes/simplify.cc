// See simplify.h. A work list: first every instruction in order, then whatever was made and whoever
// reads it. Each instruction is visited once and again for each change next to it, so the work is
// linear in the module and the rewrites.
#include "compiler/passes/simplify.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/dataflow.h"
#include "compiler/passes/dce.h"
#include "compiler/passes/simplify_rules.h"

namespace hlojit {
namespace {

using RulesOf = std::vector<std::vector<SimplifyRule>>;  // by opcode

RulesOf all_rules() {
  RulesOf rules(static_cast<size_t>(op_count()));
  for (auto table : {arithmetic_rules(), counter_rules(), width_rules(), movement_rules(), control_rules()}) {
    for (const SimplifyRule& r : table) rules[static_cast<size_t>(r.opcode)].push_back(r);
  }
  return rules;
}

/// Somebody sees where the value's bytes lie.
bool layout_is_seen(const Instruction* i) {
  return i->is_root() || std::ranges::any_of(i->users(), [](const Instruction* u) {
           return u->is(Opcode::kBitcast) || u->is(Opcode::kCustomCall) || u->is(Opcode::kFusion);
         });
}

bool is_dynamic(const Instruction* i) {
  return i->shape.has_dynamic_dims() ||
         std::ranges::any_of(i->operands(), [](const Instruction* o) { return o->shape.has_dynamic_dims(); });
}

/// Left out, it would leave its readers without what it waits for.
bool waits(const Instruction* i) { return !i->control_predecessors.empty(); }

class Simplifier {
 public:
  Simplifier(Computation& c, const RulesOf& rules, bool strict, const Instruction* loop)
      : c_(c), rules_(rules), context_{Builder(&c), strict, loop} {}

  bool run() {
    for (const auto& i : c_.instructions()) push(i.get());
    while (!work_.empty()) {
      Instruction* i = work_.front();
      work_.pop_front();
      waiting_[i->number()] = false;
      visit(i);
    }
    if (changed_) c_.sort_topologically();
    return changed_;
  }

 private:
  void push(Instruction* i) {
    if (waiting_.size() < c_.numbers()) waiting_.resize(c_.numbers());
    if (waiting_[i->number()]) return;
    waiting_[i->number()] = true;
    work_.push_back(i);
  }

  void visit(Instruction* i) {
    if (waits(i) || std::ranges::any_of(i->operands(), waits) || is_dynamic(i)) return;
    if (i->users().empty() && !i->is_root()) return;
    for (const SimplifyRule& rule : rules_[static_cast<size_t>(i->opcode)]) {
      size_t before = c_.instructions().size();
      Instruction* made = rule.apply(context_, i);
      for (size_t k = before; k < c_.instructions().size(); ++k) {
        c_.instructions()[k]->location = i->location;
        push(c_.instructions()[k].get());
      }
      if (made && replace(i, made, before)) return;
    }
  }

  /// Readers of `old` read `made`, which counts as new if it came after the first `before`.
  bool replace(Instruction* old, Instruction* made, size_t before) {
    if (!compatible(made->shape, old->shape)) return false;  // operands of several types
    if (made->shape != old->shape && layout_is_seen(old)) {
      if (!old->shape.is_array() || old->is(Opcode::kCopy)) return false;
      bool is_new = before < c_.instructions().size() && made == c_.instructions().back().get();
      if (is_new && made->users().empty()) {
        made->shape.layout = old->shape.layout;
      } else {
        made = c_.add(Opcode::kCopy, old->shape, {made}, old->name);
        made->location = old->location;
      }
    }
    std::vector<Instruction*> readers(old->users().begin(), old->users().end());
    old->replace_all_uses_with(made);
    for (Instruction* r : readers) push(r);
    changed_ = true;
    return true;
  }

  Computation& c_;
  const RulesOf& rules_;
  SimplifyContext context_;
  std::deque<Instruction*> work_;
  std::vector<bool> waiting_;  // by number
  bool changed_ = false;
};

}  // namespace

const Literal* splat_value(const Instruction* i) {
  if (i->is(Opcode::kBroadcast)) i = i->operand(0);
  if (!i->is(Opcode::kConstant) || !i->shape.is_array() || i->shape.element_count() == 0) {
    return nullptr;
  }
  return i->shape.element_count() == 1 || i->literal->is_splat() ? i->literal.get() : nullptr;
}

bool simplify(Module& module, const PipelineOptions& options) {
  static const RulesOf rules = all_rules();
  bool changed = false;
  const std::vector<Computation*> computations = sequential_computations(module);
  std::unordered_map<const Computation*, const Instruction*> loops;  // by their bodies, which come before their callers
  for (const Computation* c : computations) {
    for (const auto& i : c->instructions()) {
      if (!i->is(Opcode::kWhile)) continue;
      const auto [at, is_first] = loops.emplace(i->while_body(), i.get());
      if (!is_first) at->second = nullptr;  // one body of two loops counts their rounds alike or not
    }
  }
  for (Computation* c : computations) {
    const auto loop = loops.find(c);
    changed |= Simplifier(*c, rules, options.strict, loop == loops.end() ? nullptr : loop->second).run();
  }
  if (changed) dce(module, options);  // a branch that was inlined must not be there twice
  return changed;
}

}  // namespace hlojit

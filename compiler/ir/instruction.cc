// Instruction: edges between values, kept in both directions, and facts that follow from the
// opcode.
#include <algorithm>
#include <unordered_set>

#include "compiler/ir/annotation.h"
#include "compiler/ir/ensure.h"
#include "compiler/ir/module.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

// Whether the instruction has an effect by itself, not by what it calls.
bool has_own_effect(const Instruction& i) {
  if (i.is(Opcode::kCustomCall)) {
    return i.attrs.custom_call_has_side_effect && !is_annotation(i) && !is_remark(i);
  }
  // The sugar form of a wrapped op has no computation to look into: assume the worst.
  if (i.is(Opcode::kAsyncStart)) return i.called.empty();
  return i.info().op_class == OpClass::kEffect && !has_trait(i, op_trait::kSilent);
}

bool any_has_effect(const auto& computations) {
  // Each computation once: calls that share callees would take exponential time otherwise.
  std::vector<const Computation*> reached(std::begin(computations), std::end(computations));
  std::unordered_set<const Computation*> seen(reached.begin(), reached.end());
  while (!reached.empty()) {
    const Computation* c = reached.back();
    reached.pop_back();
    for (const auto& i : c->instructions()) {
      if (has_own_effect(*i)) return true;
      for (const Computation* callee : i->called) {
        if (seen.insert(callee).second) reached.push_back(callee);
      }
    }
  }
  return false;
}

}  // namespace

bool Instruction::is_root() const { return parent_ && parent_->root_ == this; }

void Instruction::drop_user(Instruction* user) {
  // Edits come in clusters of recent instructions: search from the back.
  auto at = std::find(users_.rbegin(), users_.rend(), user);
  ensure(at != users_.rend(), "a user is not listed");
  *at = users_.back();
  users_.pop_back();
}

void Instruction::set_operand(size_t i, Instruction* value) {
  Instruction* old = operands_[i];
  if (old == value) return;
  bool known = contains(operands_, value);
  operands_[i] = value;
  if (!known) value->users_.push_back(this);
  if (!contains(operands_, old)) old->drop_user(this);
}

void Instruction::append_operand(Instruction* value) {
  // Either list tells whether the edge exists; the shorter one keeps wide tuples and much-used
  // constants linear.
  bool known = operands_.size() < value->users_.size() ? contains(operands_, value) : contains(value->users_, this);
  operands_.push_back(value);
  if (!known) value->users_.push_back(this);
}

void Instruction::set_operands(std::vector<Instruction*> values) {
  std::vector<Instruction*> old = std::move(operands_);
  operands_.clear();
  std::ranges::sort(old);
  auto [first, last] = std::ranges::unique(old);
  old.erase(first, last);
  for (Instruction* o : old) o->drop_user(this);
  operands_.reserve(values.size());
  for (Instruction* v : values) append_operand(v);
}

void Instruction::replace_all_uses_with(Instruction* value) {
  if (value == this) return;
  std::vector<Instruction*> users = users_;
  for (Instruction* user : users) {
    if (user == value) continue;  // x -> f(x): f keeps reading x
    for (size_t i = 0; i < user->operands_.size(); ++i) {
      if (user->operands_[i] == this) user->set_operand(i, value);
    }
  }
  if (is_root()) parent_->root_ = value;
}

CompareType default_compare_type(DType element) {
  if (is_signed(element)) return CompareType::kSigned;
  if (is_unsigned(element) || is_pred(element)) return CompareType::kUnsigned;
  return CompareType::kFloat;
}

CompareType effective_compare_type(const Instruction& compare) {
  if (compare.attrs.compare_type != CompareType::kDefault) return compare.attrs.compare_type;
  return default_compare_type(compare.operand(0)->shape.type);
}

bool has_side_effect(const Instruction& instruction) {
  return has_own_effect(instruction) || any_has_effect(instruction.called);
}

bool has_side_effect(const Computation& computation) {
  const Computation* one[] = {&computation};
  return any_has_effect(one);
}

}  // namespace hlojit

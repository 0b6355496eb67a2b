// See dataflow.h. One pass over each computation in order, callees first: a while is analysed after
// its body, so which leaves of its state never change is known when its users ask.
#include "compiler/analysis/dataflow.h"

#include <unordered_set>

#include "compiler/analysis/steps.h"
#include "compiler/ir/allocation.h"
#include "compiler/ir/module.h"

namespace hlojit {

std::vector<Computation*> sequential_computations(const Module& module) {
  // Callees stand before callers, so going backwards meets every caller before what it calls.
  std::unordered_set<const Computation*> sequential = {module.entry()};
  std::vector<Computation*> order;
  const auto& all = module.computations();
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    Computation* c = at->get();
    if (!sequential.contains(c)) continue;
    order.push_back(c);
    for (const auto& i : c->instructions()) {
      if (!has_trait(*i, op_trait::kRuns)) continue;
      sequential.insert(i->called.begin(), i->called.end());
    }
  }
  return {order.rbegin(), order.rend()};
}

bool forwards(const Instruction& i) { return has_trait(i, op_trait::kForwards); }

bool makes_arrays(const Instruction& i) {
  return i.is(Opcode::kFusion) || i.is(Opcode::kConditional) || is_step(i) || is_allocation(i);
}

int64_t first_leaf(const Shape& tuple, int64_t index) {
  int64_t leaf = 0;
  for (int64_t k = 0; k < index; ++k) leaf += leaf_count(tuple.elements[k]);
  return leaf;
}

int64_t leaf_at(const Shape& shape, std::span<const int64_t> path) {
  int64_t leaf = 0;
  const Shape* at = &shape;
  for (int64_t index : path) {
    leaf += first_leaf(*at, index);
    at = &at->elements.at(index);
  }
  return leaf;
}

std::vector<int64_t> donors(const Module& module) {
  const Computation& entry = *module.entry();
  std::vector<int64_t> donor(static_cast<size_t>(leaf_count(entry.root()->shape)), -1), first{0};
  for (const Instruction* p : entry.parameters()) first.push_back(first.back() + leaf_count(p->shape));
  for (const Alias& a : module.config.input_output_alias) {
    const auto operand = static_cast<size_t>(a.operand);
    const int64_t in = first.at(operand) + leaf_at(entry.parameters()[operand]->shape, a.operand_index);
    const int64_t out = leaf_at(entry.root()->shape, a.output_index);
    // An alias may be of () or of a token, which have no leaf.
    if (in < first[operand + 1] && out < std::ssize(donor)) donor[static_cast<size_t>(out)] = in;
  }
  return donor;
}

Dataflow::Dataflow(const Module& module) {
  for (Computation* c : sequential_computations(module)) {
    for (const auto& i : c->instructions()) {
      if (i->is(Opcode::kWhile)) {
        // The body was analysed before: leaf k is invariant if the root's leaf k is the parameter's.
        const Instruction* parameter = i->while_body()->parameters().at(0);
        std::span<const ArrayValue> after = values_.at(i->while_body()->root());
        std::vector<bool>& same = invariant_[i.get()];
        for (size_t k = 0; k < after.size(); ++k) {
          same.push_back(after[k].def == parameter && after[k].leaf == static_cast<int64_t>(k));
        }
      }
      if (has_trait(*i, op_trait::kRuns)) {
        for (const Computation* called : i->called) callers_[called] = i.get();
      }
      values_[i.get()] = compute(i.get());
    }
  }
}

std::vector<ArrayValue> Dataflow::compute(const Instruction* i) const {
  auto slice = [](std::span<const ArrayValue> all, int64_t first, int64_t count) {
    auto part = all.subspan(first, count);
    return std::vector<ArrayValue>(part.begin(), part.end());
  };
  if (i->is(Opcode::kGetTupleElement)) {
    const Instruction* tuple = i->operand(0);
    return slice(values_.at(tuple), first_leaf(tuple->shape, i->attrs.tuple_index), leaf_count(i->shape));
  }
  if (i->is(Opcode::kTuple)) return reads(i);
  if (forwards(*i)) return values_.at(i->operand(0));
  std::vector<ArrayValue> own;
  for (int64_t k = 0, n = leaf_count(i->shape); k < n; ++k) {
    own.push_back({const_cast<Instruction*>(i), k});
  }
  if (i->is(Opcode::kWhile)) {
    std::span<const ArrayValue> init = values_.at(i->operand(0));
    for (size_t k = 0; k < own.size(); ++k) {
      if (invariant(i, k)) own[k] = init[k];
    }
  }
  return own;
}

std::vector<ArrayValue> Dataflow::reads(const Instruction* instruction) const {
  std::vector<ArrayValue> all;
  for (const Instruction* o : instruction->operands()) {
    std::span<const ArrayValue> part = values_.at(o);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

bool Dataflow::update(const Instruction* instruction) {
  std::vector<ArrayValue> fresh = compute(instruction);
  std::vector<ArrayValue>& old = values_[instruction];
  if (fresh == old) return false;
  old = std::move(fresh);
  return true;
}

Instruction* Dataflow::caller(const Computation* computation) const {
  auto at = callers_.find(computation);
  return at == callers_.end() ? nullptr : at->second;
}

}  // namespace hlojit

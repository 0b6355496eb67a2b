// See hoist.h.
#include "compiler/passes/hoist.h"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/loop_state.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/op_cost.h"
#include "layout/index.h"

namespace hlojit {
namespace {

/// Arithmetic on an array that is there anyway and is not narrower: to read the result takes no longer than to read
/// that.
bool takes_no_more_room(const Instruction& i) {
  return is_elementwise(i.opcode) && std::ranges::any_of(i.operands(), [&](const Instruction* o) {
           const OpClass c = o->info().op_class;
           bool kept = c != OpClass::kSource && !o->is(Opcode::kBroadcast);
           return kept && o->shape.dims == i.shape.dims && element_bits(o->shape) >= element_bits(i.shape);
         });
}

/// An array that the library makes, alone or with others.
bool is_of_library(const Instruction& i) {
  const Instruction& made = i.is(Opcode::kGetTupleElement) ? *i.operand(0) : i;
  return made.info().op_class == OpClass::kLibrary && i.shape.is_array() &&
         std::ranges::all_of(made.shape.elements, &Shape::is_array);
}

/// Goes from place to place as it is told at run time. Elements that a round reads in order instead; rows are read as
/// fast where they lie.
bool is_scattered(const Instruction& i) {
  if (!has_trait(i, op_trait::kRandomPlaces)) return false;
  return has_trait(i, op_trait::kUpdates) || i.shape.element_count() <= i.operand(1)->shape.element_count();
}

/// Worth memory for all of the loop.
bool is_dear(const Instruction& i) {
  if (is_of_library(i)) return true;
  if (i.shape.is_scalar() || i.is(Opcode::kConstant)) return false;
  if (i.is(Opcode::kCopy)) return i.shape.layout != i.operand(0)->shape.layout;
  if (is_scattered(i)) return true;
  const OpClass c = i.info().op_class;
  if (c == OpClass::kContracts || c == OpClass::kReduces || i.info().price == OpPrice::kTranscendental) return true;
  auto contracts = [](const Instruction* user) { return user->info().op_class == OpClass::kContracts; };
  // A part of a matrix would be packed each time, and what is put together for a product put together.
  const bool made = c == OpClass::kMoves && !has_trait(i, op_trait::kForwards);
  if (made && (i.is(Opcode::kSlice) || !folds_into_packing(&i)) && std::ranges::any_of(i.users(), contracts))
    return true;
  return takes_no_more_room(i) && (price_of(i) == OpPrice::kDivide || std::ranges::any_of(i.users(), contracts));
}

class Hoister {
 public:
  Hoister(Computation& outside, Instruction* loop, const PipelineOptions& options)
      : outside_(outside), loop_(loop), body_(*loop->while_body()), options_(options) {}

  bool run() {
    if (!is_taken_apart(*loop_)) return false;
    const InstructionSet invariant = invariant_values(body_);
    std::vector<Instruction*> dear;
    for (const auto& i : body_.instructions()) {
      if (invariant.contains(i.get()) && is_dear(*i)) dear.push_back(i.get());
    }
    if (dear.empty()) return false;
    before_loop(dear);
    // Those that the body itself reads, not only others of them.
    const InstructionSet all(dear);
    std::erase_if(dear, [&](const Instruction* i) {
      return std::ranges::all_of(i->users(), [&](const Instruction* u) { return all.contains(u); });
    });
    std::vector<Instruction*> first;
    for (const Instruction* i : dear) {
      explain(options_, "hoist", body_, "{} out of {}", i->name, loop_->name);
      first.push_back(outer_.at(i));
    }
    const std::vector<Instruction*> reads = add_elements(*loop_, first, dear);
    for (size_t n = 0; n < dear.size(); ++n) dear[n]->replace_all_uses_with(reads[n]);
    remove_unread(invariant);
    return true;
  }

 private:
  /// Clones before the loop, and of what they are made of.
  void before_loop(const std::vector<Instruction*>& dear) {
    InstructionSet needed(dear);
    for (const Instruction* i : body_.snapshot() | std::views::reverse) {
      if (needed.contains(i) && state_element(i, body_) < 0) needed.insert_all(i->operands());
    }
    std::vector<Instruction*> order = outside_.snapshot();
    for (const auto& i : body_.instructions()) {
      if (!needed.contains(i.get())) continue;
      if (const int64_t k = state_element(i.get(), body_); k >= 0) {
        outer_[i.get()] = first_of_state(*loop_, static_cast<size_t>(k));
        continue;
      }
      std::vector<Instruction*> operands;
      for (const Instruction* o : i->operands()) operands.push_back(outer_.at(o));
      outer_[i.get()] = outside_.clone_instruction(*i, std::move(operands), i->name);
    }
    place_before_loop(order);
  }

  /// All that `order` lacks of the outside, at once.
  void place_before_loop(std::vector<Instruction*>& order) {
    const std::vector<Instruction*> now = outside_.snapshot();
    const InstructionSet were(order);
    std::vector<Instruction*> made;
    std::ranges::copy_if(now, std::back_inserter(made), [&](const Instruction* i) { return !were.contains(i); });
    order.insert(std::ranges::find(order, loop_), made.begin(), made.end());
    outside_.set_order(order);
  }

  void remove_unread(const InstructionSet& invariant) {
    InstructionSet dead;
    std::vector<Instruction*> unread;
    for (Instruction* i : body_.snapshot() | std::views::reverse) {
      const bool read = std::ranges::any_of(i->users(), [&](const Instruction* u) { return !dead.contains(u); });
      if (!invariant.contains(i) || read || i == body_.root()) continue;
      dead.insert(i);
      unread.push_back(i);
    }
    if (!unread.empty()) body_.remove_all(unread);
  }

  Computation& outside_;
  Instruction* loop_;
  Computation& body_;
  const PipelineOptions& options_;
  InstructionMap<Instruction*> outer_;
};

}  // namespace

bool hoist(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    for (Instruction* i : c->snapshot()) {
      if (i->is(Opcode::kWhile)) changed |= Hoister(*c, i, options).run();
    }
  }
  return changed;
}

}  // namespace hlojit

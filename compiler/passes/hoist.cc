// See hoist.h.
#include "compiler/passes/hoist.h"

#include <algorithm>
#include <ranges>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/passes/explain.h"
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

/// Worth memory for all of the loop.
bool is_dear(const Instruction& i) {
  if (i.shape.is_scalar() || i.is(Opcode::kConstant)) return false;
  if (i.is(Opcode::kCopy)) return i.shape.layout != i.operand(0)->shape.layout;
  const OpClass c = i.info().op_class;
  if (c == OpClass::kContracts || c == OpClass::kReduces || i.info().price == OpPrice::kTranscendental) return true;
  auto contracts = [](const Instruction* user) { return user->info().op_class == OpClass::kContracts; };
  return takes_no_more_room(i) && (i.info().price == OpPrice::kDivide || std::ranges::any_of(i.users(), contracts));
}

class Hoister {
 public:
  Hoister(Computation& outside, Instruction* loop, const PipelineOptions& options)
      : outside_(outside), loop_(loop), body_(*loop->while_body()), options_(options) {}

  bool run() {
    for (const Computation* c : loop_->called) {
      if (!std::ranges::all_of(c->parameters()[0]->users(), is_element)) return false;
    }
    if (body_.root() == body_.parameters()[0] || !body_.root()->users().empty()) return false;  // it grows below
    const InstructionSet invariant = invariant_values(body_);
    std::vector<Instruction*> dear;
    for (const auto& i : body_.instructions()) {
      if (invariant.contains(i.get()) && is_dear(*i)) dear.push_back(i.get());
    }
    if (dear.empty()) return false;
    for (Instruction* i : dear) before_loop(i);
    // Those that the body itself reads, not only others of them.
    const InstructionSet all(dear);
    std::erase_if(dear, [&](const Instruction* i) {
      return std::ranges::all_of(i->users(), [&](const Instruction* u) { return all.contains(u); });
    });
    widen(dear);
    for (Instruction* i : body_.snapshot() | std::views::reverse) {
      if (invariant.contains(i) && i->users().empty() && i != body_.root()) body_.remove(i);
    }
    return true;
  }

 private:
  static bool is_element(const Instruction* user) { return user->is(Opcode::kGetTupleElement); }

  static Instruction* element(Computation& c, Instruction* tuple, size_t k, Instruction* before) {
    Instruction* e = c.add(Opcode::kGetTupleElement, tuple->shape.elements[k], {tuple}, "get-tuple-element", before);
    e->attrs.tuple_index = static_cast<int64_t>(k);
    return e;
  }

  Instruction* initial(size_t k) {
    Instruction* state = loop_->operand(0);
    return state->is(Opcode::kTuple) ? state->operand(k) : element(outside_, state, k, loop_);
  }

  /// A clone before the loop, and of what it is made of.
  Instruction* before_loop(Instruction* i) {
    if (Instruction** known = outer_.find(i)) return *known;
    int64_t k = state_element(i, body_);
    Instruction* made = nullptr;
    if (k >= 0) {
      made = initial(static_cast<size_t>(k));
    } else {
      std::vector<Instruction*> operands;
      for (Instruction* o : i->operands()) operands.push_back(before_loop(o));
      made = outside_.clone_instruction(*i, std::move(operands), i->name, loop_);
    }
    return outer_[i] = made;
  }

  /// Makes these elements of the loop's state.
  void widen(const std::vector<Instruction*>& values) {
    std::vector<Instruction*> state;
    const Shape was = loop_->shape;
    for (size_t k = 0; k < was.elements.size(); ++k) state.push_back(initial(k));
    Shape shape = was;
    for (Instruction* v : values) {
      explain(options_, "hoist", body_, "{} out of {}", v->name, loop_->name);
      state.push_back(outer_.at(v));
      shape.elements.push_back(v->shape);
    }
    keep_results(was.elements.size());
    loop_->set_operand(0, outside_.add(Opcode::kTuple, shape, std::move(state), "state", loop_));
    loop_->shape = shape;
    for (Computation* c : loop_->called) c->parameters()[0]->shape = shape;
    for (size_t n = 0; n < values.size(); ++n) {
      Instruction* read = element(body_, body_.parameters()[0], was.elements.size() + n, values[n]);
      values[n]->replace_all_uses_with(read);
      body_.root()->append_operand(read);
    }
    body_.root()->shape = shape;
  }

  /// Who takes all of the loop's results gets those that it had.
  void keep_results(size_t count) {
    std::vector<Instruction*> whole;
    for (Instruction* u : loop_->users()) {
      if (!is_element(u)) whole.push_back(u);
    }
    if (whole.empty() && outside_.root() != loop_) return;
    const auto order = outside_.snapshot();
    auto after = std::ranges::find(order, loop_) + 1;
    Instruction* before = after == order.end() ? nullptr : *after;
    std::vector<Instruction*> results;
    for (size_t k = 0; k < count; ++k) results.push_back(element(outside_, loop_, k, before));
    Instruction* tuple = outside_.add(Opcode::kTuple, loop_->shape, std::move(results), "results", before);
    for (Instruction* u : whole) {
      for (size_t n = 0; n < u->operand_count(); ++n) {
        if (u->operand(n) == loop_) u->set_operand(n, tuple);
      }
    }
    if (outside_.root() == loop_) outside_.set_root(tuple);
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

// See alias.h.
//
// The idea: values that share one buffer form a chain (memory_chains.h). Where a link is not legal (a reader of a
// depends on b), or a's memory is not ours to write (parameters, constants, loop state that no iteration changes), a
// copy starts a new chain. Links come from four places: updates in place, loops (state in, state out), results of
// conditionals that take an operand's memory, and the ends of a loop body or branch, whose parameter leaf k and root
// leaf k (in a branch: those that branch_sharing names) are one buffer.
//
// Termination of the last case: a copy of the root's leaf has no reader but the root, so nothing that
// must run before it can depend on it, unless it already had to run before a reader itself; one more
// copy then cuts that tie.
#include "compiler/passes/alias.h"

#include <algorithm>

#include "compiler/analysis/dataflow.h"
#include "compiler/passes/branch_sharing.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/memory_chains.h"
#include "compiler/plan/kernel.h"

namespace hlojit {
namespace {

class ComputationAlias {
  using Slot = MemoryChains::Slot;

 public:
  ComputationAlias(Computation& c, Dataflow& flow, const BranchSharing& sharing, const PipelineOptions& options)
      : c_(c),
        flow_(flow),
        sharing_(sharing),
        options_(options),
        caller_(flow.caller(&c)),
        is_body_(caller_ && caller_->is(Opcode::kWhile) && caller_->while_body() == &c),
        is_condition_(caller_ && caller_->is(Opcode::kWhile) && !is_body_),
        is_branch_(caller_ && caller_->is(Opcode::kConditional)),
        instructions_(c.snapshot()),
        chains_(c, flow, options, !is_condition_) {}

  bool run() {
    if (!is_condition_) give_results_their_own();
    for (Instruction* i : instructions_) link_operands(i);
    if (is_body_ || is_branch_) close();
    if (!caller_) join_donated();
    if (chains_.changed() && !c_.sort_topologically()) {
      throw Error(ErrorKind::kFailed, "alias: the order of " + c_.name + " has become circular");
    }
    return chains_.changed();
  }

 private:
  const std::vector<Slot>& root_slots() const { return chains_.root_slots(); }

  // ---- the cases -----------------------------------------------------------------------------------

  /// Memory that this computation may overwrite.
  bool writable(const ArrayValue& v) const {
    if (makes_arrays(*v.def)) return true;
    if (v.def->is(Opcode::kParameter)) {
      if (is_branch_) return std::ranges::find(sharing_.leaves(&c_), v.leaf) != sharing_.leaves(&c_).end();
      return is_body_ && !flow_.invariant(caller_, v.leaf);
    }
    return v.def->is(Opcode::kWhile) || is_donated_copy(*v.def);
  }

  /// Root leaves of the entry, of branches and of bodies: a value each that was made here.
  void give_results_their_own() {
    for (size_t k = 0; k < root_slots().size(); ++k) {
      ArrayValue v = chains_.value(root_slots()[k]);
      if (v == state(k)) continue;
      bool made = makes_arrays(*v.def) || v.def->is(Opcode::kWhile) || is_donated_copy(*v.def);
      if (!made || chains_.root_uses(v) > 1) chains_.copy(root_slots()[k], nullptr);
    }
  }

  void link_operands(Instruction* i) {
    if (i->is(Opcode::kFusion)) {
      for (const Update& u : updated_parameters(*i->to_apply())) {
        link_operand({i, static_cast<size_t>(u.parameter)}, {i, u.result}, i);
      }
    } else if (i->is(Opcode::kWhile)) {
      std::vector<Slot> state = chains_.slots(i, i->operand(0));
      for (size_t k = 0; k < state.size(); ++k) {
        if (flow_.invariant(i, static_cast<int64_t>(k))) continue;
        link_operand(state[k], {i, static_cast<int64_t>(k)}, i);
      }
    } else if (i->is(Opcode::kConditional)) {
      link_branches(i);
    }
  }

  /// Each result that takes an operand's memory does so in all branches that are handed it.
  void link_branches(Instruction* i) {
    std::vector<std::vector<Slot>> takers(flow_.values(i).size());
    for (size_t b = 0; b < i->called.size(); ++b) {
      const std::vector<int64_t>& leaves = sharing_.leaves(i->called[b]);
      if (std::ranges::all_of(leaves, [](int64_t leaf) { return leaf < 0; })) continue;
      std::vector<Slot> handed = chains_.slots(i, i->operand(b + 1), b + 1);
      for (size_t k = 0; k < leaves.size(); ++k) {
        if (leaves[k] >= 0) takers[k].push_back(handed[static_cast<size_t>(leaves[k])]);
      }
    }
    for (size_t k = 0; k < takers.size(); ++k) {
      if (takers[k].empty()) continue;
      link_slots(takers[k], {i, static_cast<int64_t>(k)}, i);
    }
  }

  /// The slot's value and `result` of instruction `i` share memory, by a copy if there is no other way.
  void link_operand(const Slot& s, const ArrayValue& result, Instruction* i) { link_slots({s}, result, i); }

  /// The same where all `slots` hand over one value, each to a branch of its own.
  void link_slots(const std::vector<Slot>& slots, const ArrayValue& result, Instruction* i) {
    ArrayValue v = chains_.value(slots[0]);
    bool alone = std::ranges::count(flow_.reads(i), v) == std::ssize(slots);
    if (alone && writable(v) && chains_.link(v, result, true)) return;
    v = chains_.copy(slots[0], i);
    for (const Slot& s : std::span(slots).subspan(1)) chains_.put(s, chains_.get(slots[0]), i);
    chains_.link(v, result, true);
  }

  /// The parameter's leaf whose memory root leaf `k` has to be in; no instruction: none.
  ArrayValue state(size_t k) const {
    int64_t leaf = static_cast<int64_t>(k);
    if (is_branch_) leaf = sharing_.leaves(&c_)[k];
    if (leaf < 0 || (!is_body_ && !is_branch_)) return {};
    return {c_.parameters()[0], leaf};
  }

  void close() {
    const Instruction* parameter = c_.parameters()[0];
    // A leaf made in place of another leaf's state, or handed over from there, is copied home first.
    for (size_t k = 0; k < root_slots().size(); ++k) {
      ArrayValue first = chains_.head(chains_.value(root_slots()[k]));
      if (first.def == parameter && first != state(k)) chains_.copy(root_slots()[k], nullptr);
    }
    for (size_t k = 0; k < root_slots().size(); ++k) {
      ArrayValue first = chains_.head(chains_.value(root_slots()[k]));
      if (first == state(k) || !state(k).def) continue;
      ArrayValue last = chains_.tail(state(k));
      if (chains_.link(last, first, chains_.overwrites_in_place(first.def, first.leaf, last))) continue;
      for (int attempt = 0; attempt < 2; ++attempt) {
        first = chains_.copy(root_slots()[k], nullptr);
        if (chains_.link(last, first, false)) break;
      }
    }
  }

  // ---- donated parameters ---------------------------------------------------------------------------

  void join_donated() {
    const ModuleConfig& config = c_.parent()->config;
    for (const Alias& a : config.input_output_alias) {
      Instruction* parameter = c_.parameters().at(a.operand);
      int64_t in = leaf_at(parameter->shape, a.operand_index);
      int64_t out = leaf_at(c_.root()->shape, a.output_index);
      if (in >= leaf_count(parameter->shape) || out >= static_cast<int64_t>(root_slots().size())) {
        continue;  // an aliased () or token
      }
      int64_t leaf = in;
      for (int64_t p = 0; p < a.operand; ++p) leaf += leaf_count(c_.parameters()[p]->shape);
      join(ArrayValue{parameter, in}, chains_.head(chains_.value(root_slots()[out])), leaf, out);
    }
  }

  /// `first` begins the chain of result `out`; the caller may have given it the memory of `donated`.
  void join(const ArrayValue& donated, ArrayValue first, int64_t leaf, int64_t out) {
    if (is_copy_of(first.def, donated)) first.def = plain_copy(first.def, leaf, out);
    bool is_copy = first.def->is(Opcode::kCopy);
    bool own_read = is_copy || chains_.overwrites_in_place(first.def, first.leaf, donated);
    const InstructionSet later = chains_.after(first.def);
    std::vector<Instruction*> early, late;
    for (Instruction* i : chains_.readers(donated)) {
      bool conflict = i == first.def ? !own_read : later.contains(i);
      (conflict ? late : early).push_back(i);
    }
    if (!late.empty()) {
      // They read a copy that is made before the memory is overwritten.
      Instruction* kept = chains_.keep(donated);
      explain(options_, "alias", c_, "a copy of {}, which is read after its memory is given to a result",
              MemoryChains::text(donated));
      for (Instruction* i : late) chains_.redirect(i, donated, kept);
      early.push_back(kept);
    }
    for (Instruction* i : early) chains_.order(i, first.def);
  }

  bool is_copy_of(const Instruction* i, const ArrayValue& v) const {
    if (!i->is(Opcode::kFusion) || i->operand_count() != 1 || flow_.values(i->operand(0))[0] != v) {
      return false;
    }
    const Instruction* root = i->to_apply()->root();
    return root->is(Opcode::kCopy) && root->operand(0)->is(Opcode::kParameter) &&
           root->shape == root->operand(0)->shape;
  }

  /// Turns a copy fusion into the plain copy that entry code may skip.
  Instruction* plain_copy(Instruction* fusion, int64_t leaf, int64_t out) {
    Instruction* made = c_.add(Opcode::kCopy, fusion->shape, {fusion->operand(0)}, "copy");
    made->location = fusion->location;
    made->attrs.backend_config =
        R"({"hlojit":{"donated":)" + std::to_string(leaf) + R"(,"result":)" + std::to_string(out) + "}}";
    chains_.replace(fusion, made);
    return made;
  }

  Computation& c_;
  const Dataflow& flow_;
  const BranchSharing& sharing_;
  const PipelineOptions& options_;
  Instruction* const caller_;
  const bool is_body_, is_condition_, is_branch_;
  const std::vector<Instruction*> instructions_;  // as they were
  MemoryChains chains_;
};

}  // namespace

bool alias(Module& module, const PipelineOptions& options) {
  bool changed = false;
  Dataflow flow(module);
  const BranchSharing sharing(module, flow);
  for (Computation* c : sequential_computations(module)) {
    changed |= ComputationAlias(*c, flow, sharing, options).run();
  }
  if (changed) module.remove_unreachable();
  return changed;
}

}  // namespace hlojit

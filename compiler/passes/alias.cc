// See alias.h.
//
// The idea: values that share one buffer form a chain v0 -> v1 -> ..., each dead when the next is
// written. A link a -> b is legal if b's instruction can run after everybody who reads a; control
// predecessors then make it so. If it cannot (a reader of a depends on b), or a's memory is not ours to
// write (parameters, constants, loop state that no iteration changes), a copy starts a new chain.
// Links come from four places: updates in place, loops (state in, state out), results of conditionals
// that take an operand's memory, and the ends of a loop body or branch, whose parameter leaf k and root
// leaf k (in a branch: those that branch_sharing names) are one buffer.
//
// Termination of the last case: a copy of the root's leaf has no reader but the root, so nothing that
// must run before it can depend on it, unless it already had to run before a reader itself; one more
// copy then cuts that tie.
#include "compiler/passes/alias.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/analysis/dataflow.h"
#include "compiler/passes/branch_sharing.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/fusion_builder.h"

namespace hlojit {
namespace {

/// Where a leaf is handed over: operand `index` of `tuple`, or the root of the computation.
struct Slot {
  Instruction* user = nullptr;  // nullptr: the computation's root itself
  size_t index = 0;
};

using Instructions = std::unordered_set<Instruction*>;

class ComputationAlias {
 public:
  ComputationAlias(Computation& c, Dataflow& flow, const BranchSharing& sharing, const PipelineOptions& options)
      : c_(c), flow_(flow), sharing_(sharing), options_(options) {
    caller_ = flow.caller(&c);
    is_body_ = caller_ && caller_->is(Opcode::kWhile) && caller_->while_body() == &c;
    is_condition_ = caller_ && caller_->is(Opcode::kWhile) && !is_body_;
    is_branch_ = caller_ && caller_->is(Opcode::kConditional);
  }

  bool run() {
    find_readers();
    if (!is_condition_) give_results_their_own();
    for (Instruction* i : order_) link_operands(i);
    if (is_body_ || is_branch_) close();
    if (!caller_) join_donated();
    if (changed_ && !c_.sort_topologically()) {
      throw Error(ErrorKind::kFailed, "alias: the order of " + c_.name + " has become circular");
    }
    return changed_;
  }

 private:
  // ---- who reads what ------------------------------------------------------------------------------

  void find_readers() {
    order_ = c_.snapshot();
    for (Instruction* i : order_) {
      for (Instruction* p : i->control_predecessors) control_successors_[p].push_back(i);
      if (forwards(*i)) continue;
      for (const ArrayValue& v : flow_.reads(i)) add_reader(v, i);
    }
    if (is_condition_) return;
    root_slots_ = slots(nullptr, c_.root());
    for (const Slot& s : root_slots_) ++root_uses_[value(s)];
  }

  void add_reader(const ArrayValue& v, Instruction* i) {
    std::vector<Instruction*>& list = readers_[v];
    if (std::ranges::find(list, i) == list.end()) list.push_back(i);
  }

  const std::vector<Instruction*>& readers(const ArrayValue& v) { return readers_[v]; }
  bool leaves_at_root(const ArrayValue& v) {
    auto at = root_uses_.find(v);
    return at != root_uses_.end() && at->second > 0;
  }

  // ---- slots: tuples made explicit ------------------------------------------------------------------

  /// One slot a leaf of an operand of `user` (nullptr: of the root). A tuple gets an instruction of its
  /// own, read by `user` only, so that leaves can be exchanged.
  std::vector<Slot> slots(Instruction* user, Instruction* operand, size_t number = 0) {
    std::vector<Slot> found;
    if (operand->shape.is_array()) {
      found.push_back({user, number});
    } else if (operand->shape.is_tuple()) {
      Instruction* tuple = own_tuple(operand, found);
      if (user) {
        user->set_operand(number, tuple);
      } else {
        c_.set_root(tuple);
      }
    }
    return found;
  }

  /// A tuple equal to `source`, nested tuples included, with a slot for each leaf.
  Instruction* own_tuple(Instruction* source, std::vector<Slot>& found) {
    std::vector<Instruction*> elements;
    bool explicit_tuple = source->is(Opcode::kTuple);
    for (size_t k = 0; k < source->shape.elements.size(); ++k) {
      elements.push_back(explicit_tuple ? source->operand(k) : element(source, k));
    }
    bool reuse = explicit_tuple && uses(*source) <= 1;
    Instruction* tuple = reuse ? source : track(c_.add(Opcode::kTuple, source->shape, elements, "tuple"));
    for (size_t k = 0; k < elements.size(); ++k) {
      if (source->shape.elements[k].is_array()) {
        found.push_back({tuple, k});
      } else if (source->shape.elements[k].is_tuple()) {
        tuple->set_operand(k, own_tuple(elements[k], found));
      }
    }
    return tuple;
  }

  /// Operands that `i` is, and the root: tuple(t, t) uses t twice.
  static int64_t uses(const Instruction& i) {
    int64_t n = i.is_root();
    for (const Instruction* user : i.users()) n += std::ranges::count(user->operands(), &i);
    return n;
  }

  Instruction* element(Instruction* tuple, size_t k) {
    Instruction* e = c_.add(Opcode::kGetTupleElement, tuple->shape.elements[k], {tuple});
    e->attrs.tuple_index = static_cast<int64_t>(k);
    return track(e);
  }

  /// Makes an instruction that was just added known to the analysis.
  Instruction* track(Instruction* i) {
    flow_.update(i);
    changed_ = true;
    return i;
  }

  Instruction* get(const Slot& s) const { return s.user ? s.user->operand(s.index) : c_.root(); }
  ArrayValue value(const Slot& s) const { return flow_.values(get(s))[0]; }

  /// Replaces what the slot hands over. `reader` reads it (nullptr: the root).
  void put(const Slot& s, Instruction* what, Instruction* reader) {
    ArrayValue old = value(s);
    if (s.user) {
      s.user->set_operand(s.index, what);
      update_forwarders({s.user});
    } else {
      c_.set_root(what);
    }
    if (!reader) {
      --root_uses_[old];
      ++root_uses_[value(s)];
      return;
    }
    std::vector<ArrayValue> reads = flow_.reads(reader);
    if (std::ranges::find(reads, old) == reads.end()) std::erase(readers_[old], reader);
    add_reader(value(s), reader);
  }

  /// The slot hands over a copy from now on.
  ArrayValue copy(const Slot& s, Instruction* reader) {
    ArrayValue old = value(s);
    Instruction* fusion = track(add_copy_fusion(get(s)));
    explain(options_, "alias", c_, "a copy of {} for {}", text(old), reader ? reader->name : "the root");
    add_reader(old, fusion);
    put(s, fusion, reader);
    return {fusion, 0};
  }

  /// "state.2{1}": leaf 1 of a tuple.
  static std::string text(const ArrayValue& v) {
    return v.def->shape.is_tuple() ? fmt::format("{}{{{}}}", v.def->name, v.leaf) : v.def->name;
  }

  // ---- links ---------------------------------------------------------------------------------------

  /// Memory that this computation may overwrite.
  bool writable(const ArrayValue& v) const {
    if (makes_arrays(*v.def)) return true;
    if (v.def->is(Opcode::kParameter)) {
      if (is_branch_) return std::ranges::find(sharing_.leaves(&c_), v.leaf) != sharing_.leaves(&c_).end();
      return is_body_ && !flow_.invariant(caller_, v.leaf);
    }
    return v.def->is(Opcode::kWhile) || is_donated_copy(*v.def);
  }

  ArrayValue head(ArrayValue v) const {
    for (auto at = previous_.find(v); at != previous_.end(); at = previous_.find(v)) v = at->second;
    return v;
  }
  ArrayValue tail(ArrayValue v) const {
    for (auto at = next_.find(v); at != next_.end(); at = next_.find(v)) v = at->second;
    return v;
  }

  /// Everything that runs after `from` in any order we may still choose, itself included.
  Instructions after(Instruction* from) const {
    Instructions seen = {from};
    std::vector<Instruction*> work = {from};
    while (!work.empty()) {
      Instruction* i = work.back();
      work.pop_back();
      auto visit = [&](Instruction* next) {
        if (seen.insert(next).second) work.push_back(next);
      };
      for (Instruction* user : i->users()) visit(user);
      if (auto at = control_successors_.find(i); at != control_successors_.end()) {
        for (Instruction* successor : at->second) visit(successor);
      }
    }
    return seen;
  }

  /// What runs before `to` already.
  static Instructions before(Instruction* to) {
    Instructions seen = {to};
    std::vector<Instruction*> work = {to};
    while (!work.empty()) {
      Instruction* i = work.back();
      work.pop_back();
      for (const auto& earlier : {i->operands(), std::span<Instruction* const>(i->control_predecessors)}) {
        for (Instruction* p : earlier) {
          if (seen.insert(p).second) work.push_back(p);
        }
      }
    }
    return seen;
  }

  void order(Instruction* first, Instruction* then) {
    auto& predecessors = then->control_predecessors;
    if (first == then || std::ranges::find(predecessors, first) != predecessors.end()) return;
    if (std::ranges::find(then->operands(), first) != then->operands().end()) return;
    predecessors.push_back(first);
    control_successors_[first].push_back(then);
    changed_ = true;
  }

  /// `writer` may overwrite `v` while it reads it.
  bool overwrites_in_place(Instruction* writer, int64_t leaf, const ArrayValue& v) {
    if (!writer->is(Opcode::kFusion)) return false;
    int64_t operand = -1;
    for (size_t k = 0; k < writer->operand_count(); ++k) {
      std::span<const ArrayValue> values = flow_.values(writer->operand(k));
      if (values.empty() || values[0] != v) continue;
      if (operand >= 0 || writer->operand(k)->is(Opcode::kBitcast)) return false;
      operand = static_cast<int64_t>(k);
    }
    return operand >= 0 && reads_in_place(*writer->to_apply(), operand, leaf);
  }

  /// Who has to run before `b` is written if `b` takes `a`'s memory, b's own instruction apart.
  std::vector<Instruction*> before(const ArrayValue& a, const ArrayValue& b) {
    std::vector<Instruction*> list = readers(a);
    bool follows = std::ranges::find(list, b.def) != list.end();
    if (!follows && !a.def->is(Opcode::kParameter)) list.push_back(a.def);
    std::erase(list, b.def);
    return list;
  }

  /// Links a -> b if it can be: `reads_allowed` if b's instruction may itself read a.
  bool link(const ArrayValue& a, const ArrayValue& b, bool reads_allowed) {
    if (next_.contains(a) || leaves_at_root(a) || a.def == b.def) return false;
    if (!reads_allowed && std::ranges::find(readers(a), b.def) != readers(a).end()) return false;
    std::vector<Instruction*> first = before(a, b);
    if (!first.empty()) {
      Instructions later = after(b.def);
      for (Instruction* i : first) {
        if (later.contains(i)) return false;
      }
      Instructions earlier = before(b.def);
      for (Instruction* i : first) {
        if (!earlier.contains(i)) order(i, b.def);
      }
    }
    explain(options_, "alias", c_, "{} takes the memory of {}", text(b), text(a));
    next_[a] = b;
    previous_[b] = a;
    return true;
  }

  // ---- the cases -----------------------------------------------------------------------------------

  /// Root leaves of the entry, of branches and of bodies: a value each that was made here.
  void give_results_their_own() {
    for (size_t k = 0; k < root_slots_.size(); ++k) {
      ArrayValue v = value(root_slots_[k]);
      if (v == state(k)) continue;
      bool made = makes_arrays(*v.def) || v.def->is(Opcode::kWhile) || is_donated_copy(*v.def);
      if (!made || root_uses_[v] > 1) copy(root_slots_[k], nullptr);
    }
  }

  void link_operands(Instruction* i) {
    if (i->is(Opcode::kFusion)) {
      for (const Update& u : updated_parameters(*i->to_apply())) {
        link_operand({i, static_cast<size_t>(u.parameter)}, {i, u.result}, i);
      }
    } else if (i->is(Opcode::kWhile)) {
      std::vector<Slot> state = slots(i, i->operand(0));
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
      std::vector<Slot> handed = slots(i, i->operand(b + 1), b + 1);
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
    ArrayValue v = value(slots[0]);
    bool alone = std::ranges::count(flow_.reads(i), v) == std::ssize(slots);
    if (alone && writable(v) && link(v, result, true)) return;
    v = copy(slots[0], i);
    for (const Slot& s : std::span(slots).subspan(1)) put(s, get(slots[0]), i);
    link(v, result, true);
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
    for (size_t k = 0; k < root_slots_.size(); ++k) {
      ArrayValue first = head(value(root_slots_[k]));
      if (first.def == parameter && first != state(k)) copy(root_slots_[k], nullptr);
    }
    for (size_t k = 0; k < root_slots_.size(); ++k) {
      ArrayValue first = head(value(root_slots_[k]));
      if (first == state(k) || !state(k).def) continue;
      ArrayValue last = tail(state(k));
      if (link(last, first, overwrites_in_place(first.def, first.leaf, last))) continue;
      for (int attempt = 0; attempt < 2; ++attempt) {
        first = copy(root_slots_[k], nullptr);
        if (link(last, first, false)) break;
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
      if (in >= leaf_count(parameter->shape) || out >= static_cast<int64_t>(root_slots_.size())) {
        continue;  // an aliased () or token
      }
      int64_t leaf = in;
      for (int64_t p = 0; p < a.operand; ++p) leaf += leaf_count(c_.parameters()[p]->shape);
      join(ArrayValue{parameter, in}, head(value(root_slots_[out])), leaf, out);
    }
  }

  /// `first` begins the chain of result `out`; the caller may have given it the memory of `donated`.
  void join(const ArrayValue& donated, ArrayValue first, int64_t leaf, int64_t out) {
    if (is_copy_of(first.def, donated)) first.def = plain_copy(first, leaf, out);
    bool is_copy = first.def->is(Opcode::kCopy);
    bool own_read = is_copy || overwrites_in_place(first.def, first.leaf, donated);
    Instructions later = after(first.def);
    std::vector<Instruction*> early, late;
    for (Instruction* i : readers(donated)) {
      bool conflict = i == first.def ? !own_read : later.contains(i);
      (conflict ? late : early).push_back(i);
    }
    if (!late.empty()) {
      // They read a copy that is made before the memory is overwritten.
      Instruction* source = array(donated);
      Instruction* kept = track(add_copy_fusion(source));
      explain(options_, "alias", c_, "a copy of {}, which is read after its memory is given to a result",
              text(donated));
      for (Instruction* i : late) redirect(i, donated, kept);
      add_reader(donated, kept);
      early.push_back(kept);
    }
    for (Instruction* i : early) order(i, first.def);
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
  Instruction* plain_copy(const ArrayValue& fusion, int64_t leaf, int64_t out) {
    Instruction* old = fusion.def;
    Instruction* made = c_.add(Opcode::kCopy, old->shape, {old->operand(0)}, "copy");
    made->location = old->location;
    made->attrs.backend_config =
        R"({"hlojit":{"donated":)" + std::to_string(leaf) + R"(,"result":)" + std::to_string(out) + "}}";
    track(made);
    ArrayValue source = flow_.values(old->operand(0))[0];
    ArrayValue from = fusion, to{made, 0};
    std::ranges::replace(readers_[source], old, made);
    readers_[to] = readers_[from];
    root_uses_[to] = root_uses_[from];
    if (auto at = next_.find(from); at != next_.end()) {
      next_[to] = at->second;
      previous_[at->second] = to;
    }
    for (Instruction* p : old->control_predecessors) order(p, made);
    for (Instruction* s : control_successors_[old]) {
      std::erase(s->control_predecessors, old);
      order(made, s);
    }
    for (Instruction* p : old->control_predecessors) std::erase(control_successors_[p], old);
    std::vector<Instruction*> users(old->users().begin(), old->users().end());
    old->replace_all_uses_with(made);
    update_forwarders(std::move(users));
    c_.remove(old);
    return made;
  }

  /// An array-shaped instruction for a parameter's leaf.
  Instruction* array(const ArrayValue& v) {
    Instruction* at = v.def;
    int64_t leaf = v.leaf;
    while (at->shape.is_tuple()) {
      size_t k = 0;
      for (; leaf >= leaf_count(at->shape.elements[k]); ++k) {
        leaf -= leaf_count(at->shape.elements[k]);
      }
      at = element(at, k);
    }
    return at;
  }

  /// The memory of `array` by another name.
  Instruction* as_shape(Instruction* array, const Shape& shape) {
    return array->shape == shape ? array : track(c_.add(Opcode::kBitcast, shape, {array}, "bitcast"));
  }

  /// `reader` reads `instead` wherever it read `v`.
  void redirect(Instruction* reader, const ArrayValue& v, Instruction* instead) {
    ArrayValue fresh{instead, 0};
    for (size_t k = 0; k < reader->operand_count(); ++k) {
      Instruction* o = reader->operand(k);
      if (o->shape.is_array() && flow_.values(o)[0] == v) {
        reader->set_operand(k, as_shape(instead, o->shape));
      } else if (o->shape.is_tuple()) {
        std::vector<Slot> found;
        Instruction* tuple = own_tuple(o, found);
        reader->set_operand(k, tuple);
        for (const Slot& s : found) {
          if (value(s) == v) put(s, as_shape(instead, get(s)->shape), reader);
        }
      }
    }
    std::erase(readers_[v], reader);
    add_reader(fresh, reader);
  }

  /// The analysis follows an edit of the operands of `work`. (A while forwards invariant state.)
  void update_forwarders(std::vector<Instruction*> work) {
    while (!work.empty()) {
      Instruction* i = work.back();
      work.pop_back();
      if (!forwards(*i) && !i->is(Opcode::kWhile)) continue;
      if (flow_.update(i)) work.insert(work.end(), i->users().begin(), i->users().end());
    }
  }

  Computation& c_;
  Dataflow& flow_;
  const BranchSharing& sharing_;
  const PipelineOptions& options_;
  Instruction* caller_ = nullptr;
  bool is_body_ = false, is_condition_ = false, is_branch_ = false, changed_ = false;
  std::vector<Instruction*> order_;
  std::vector<Slot> root_slots_;
  std::unordered_map<ArrayValue, std::vector<Instruction*>, ArrayValueHash> readers_;
  std::unordered_map<ArrayValue, int, ArrayValueHash> root_uses_;
  std::unordered_map<ArrayValue, ArrayValue, ArrayValueHash> next_, previous_;
  std::unordered_map<Instruction*, std::vector<Instruction*>> control_successors_;
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

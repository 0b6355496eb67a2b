// See memory_chains.h.
#include "compiler/passes/memory_chains.h"

#include <algorithm>

#include "compiler/passes/explain.h"
#include "compiler/passes/fusion_builder.h"

namespace hlojit {
namespace {

/// Operands that `i` is, and the root: tuple(t, t) uses t twice.
int64_t uses(const Instruction& i) {
  int64_t n = i.is_root();
  for (const Instruction* user : i.users()) n += std::ranges::count(user->operands(), &i);
  return n;
}

/// What runs before `to` already, itself included.
InstructionSet before(Instruction* to) {
  InstructionSet seen;
  seen.insert(to);
  std::vector<const Instruction*> work = {to};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    for (const auto& earlier : {i->operands(), std::span<Instruction* const>(i->control_predecessors)}) {
      for (const Instruction* p : earlier) {
        if (seen.insert(p)) work.push_back(p);
      }
    }
  }
  return seen;
}

}  // namespace

MemoryChains::MemoryChains(Computation& c, Dataflow& flow, const PipelineOptions& options, bool with_root)
    : c_(c), flow_(flow), options_(options) {
  for (Instruction* i : c.snapshot()) {
    for (Instruction* p : i->control_predecessors) control_successors_[p].push_back(i);
    if (forwards(*i)) continue;
    for (const ArrayValue& v : flow.reads(i)) {
      std::vector<Instruction*>& list = readers_[v];
      if (list.empty() || list.back() != i) list.push_back(i);
    }
  }
  if (!with_root) return;
  root_slots_ = slots(nullptr, c.root());
  for (const Slot& s : root_slots_) ++root_uses_[value(s)];
}

std::string MemoryChains::text(const ArrayValue& v) {
  return v.def->shape.is_tuple() ? fmt::format("{}{{{}}}", v.def->name, v.leaf) : v.def->name;
}

// ---- who reads what ------------------------------------------------------------------------------

void MemoryChains::add_reader(const ArrayValue& v, Instruction* i) {
  std::vector<Instruction*>& list = readers_[v];
  if (std::ranges::find(list, i) == list.end()) list.push_back(i);
}

int MemoryChains::root_uses(const ArrayValue& v) const {
  auto at = root_uses_.find(v);
  return at == root_uses_.end() ? 0 : at->second;
}

InstructionSet MemoryChains::after(Instruction* from) const {
  InstructionSet seen;
  seen.insert(from);
  std::vector<Instruction*> work = {from};
  while (!work.empty()) {
    Instruction* i = work.back();
    work.pop_back();
    auto visit = [&](Instruction* next) {
      if (seen.insert(next)) work.push_back(next);
    };
    for (Instruction* user : i->users()) visit(user);
    if (auto at = control_successors_.find(i); at != control_successors_.end()) {
      for (Instruction* successor : at->second) visit(successor);
    }
  }
  return seen;
}

bool MemoryChains::overwrites_in_place(Instruction* writer, int64_t leaf, const ArrayValue& v) const {
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

// ---- slots: tuples made explicit ------------------------------------------------------------------

std::vector<MemoryChains::Slot> MemoryChains::slots(Instruction* user, Instruction* operand, size_t number) {
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
Instruction* MemoryChains::own_tuple(Instruction* source, std::vector<Slot>& found) {
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

Instruction* MemoryChains::element(Instruction* tuple, size_t k) {
  Instruction* e = c_.add(Opcode::kGetTupleElement, tuple->shape.elements[k], {tuple});
  e->attrs.tuple_index = static_cast<int64_t>(k);
  return track(e);
}

void MemoryChains::put(const Slot& s, Instruction* what, Instruction* reader) {
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

ArrayValue MemoryChains::copy(const Slot& s, Instruction* reader) {
  ArrayValue old = value(s);
  Instruction* fusion = track(add_copy_fusion(get(s)));
  explain(options_, "alias", c_, "a copy of {} for {}", text(old), reader ? reader->name : "the root");
  add_reader(old, fusion);
  put(s, fusion, reader);
  return {fusion, 0};
}

// ---- chains --------------------------------------------------------------------------------------

ArrayValue MemoryChains::head(ArrayValue v) const {
  for (auto at = previous_.find(v); at != previous_.end(); at = previous_.find(v)) v = at->second;
  return v;
}

ArrayValue MemoryChains::tail(ArrayValue v) const {
  for (auto at = next_.find(v); at != next_.end(); at = next_.find(v)) v = at->second;
  return v;
}

/// Who has to run before `b` is written if `b` takes `a`'s memory, b's own instruction apart.
std::vector<Instruction*> MemoryChains::before_taking(const ArrayValue& a, const ArrayValue& b) {
  std::vector<Instruction*> list = readers(a);
  bool follows = std::ranges::find(list, b.def) != list.end();
  if (!follows && !a.def->is(Opcode::kParameter)) list.push_back(a.def);
  std::erase(list, b.def);
  return list;
}

bool MemoryChains::link(const ArrayValue& a, const ArrayValue& b, bool reads_allowed) {
  if (next_.contains(a) || root_uses(a) > 0 || a.def == b.def) return false;
  if (!reads_allowed && std::ranges::find(readers(a), b.def) != readers(a).end()) return false;
  std::vector<Instruction*> first = before_taking(a, b);
  if (!first.empty()) {
    const InstructionSet later = after(b.def);
    if (std::ranges::any_of(first, [&](const Instruction* i) { return later.contains(i); })) return false;
    const InstructionSet earlier = before(b.def);
    for (Instruction* i : first) {
      if (!earlier.contains(i)) order(i, b.def);
    }
  }
  explain(options_, "alias", c_, "{} takes the memory of {}", text(b), text(a));
  next_[a] = b;
  previous_[b] = a;
  return true;
}

void MemoryChains::order(Instruction* first, Instruction* then) {
  auto& predecessors = then->control_predecessors;
  if (first == then || std::ranges::find(predecessors, first) != predecessors.end()) return;
  if (std::ranges::find(then->operands(), first) != then->operands().end()) return;
  predecessors.push_back(first);
  control_successors_[first].push_back(then);
  changed_ = true;
}

// ---- other edits ---------------------------------------------------------------------------------

Instruction* MemoryChains::keep(const ArrayValue& v) {
  Instruction* kept = track(add_copy_fusion(array(v)));
  add_reader(v, kept);
  return kept;
}

/// An array-shaped instruction for a parameter's leaf.
Instruction* MemoryChains::array(const ArrayValue& v) {
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

void MemoryChains::redirect(Instruction* reader, const ArrayValue& v, Instruction* instead) {
  auto as_shape = [&](const Shape& shape) {  // its memory by another name
    return instead->shape == shape ? instead : track(c_.add(Opcode::kBitcast, shape, {instead}, "bitcast"));
  };
  for (size_t k = 0; k < reader->operand_count(); ++k) {
    Instruction* o = reader->operand(k);
    if (o->shape.is_array() && flow_.values(o)[0] == v) {
      reader->set_operand(k, as_shape(o->shape));
    } else if (o->shape.is_tuple()) {
      std::vector<Slot> found;
      Instruction* tuple = own_tuple(o, found);
      reader->set_operand(k, tuple);
      for (const Slot& s : found) {
        if (value(s) == v) put(s, as_shape(get(s)->shape), reader);
      }
    }
  }
  std::erase(readers_[v], reader);
  add_reader({instead, 0}, reader);
}

void MemoryChains::replace(Instruction* old, Instruction* made) {
  track(made);
  const ArrayValue from{old, 0}, to{made, 0};
  for (const ArrayValue& read : flow_.reads(old)) std::ranges::replace(readers_[read], old, made);
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
}

/// Makes an instruction that was just added known to the analysis.
Instruction* MemoryChains::track(Instruction* i) {
  flow_.update(i);
  changed_ = true;
  return i;
}

/// The analysis follows an edit of the operands of `work`. (A while forwards invariant state.)
void MemoryChains::update_forwarders(std::vector<Instruction*> work) {
  while (!work.empty()) {
    Instruction* i = work.back();
    work.pop_back();
    if (!forwards(*i) && !i->is(Opcode::kWhile)) continue;
    if (flow_.update(i)) work.insert(work.end(), i->users().begin(), i->users().end());
  }
}

}  // namespace hlojit

// See update_parts.h.
#include "compiler/passes/update_parts.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/analysis/movement.h"
#include "compiler/builder.h"
#include "compiler/ir/instruction_set.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/loop_state.h"
#include "compiler/passes/replace_ops.h"
#include "compiler/passes/rounds.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

/// Dims of more or less than one element; a reshape that keeps their sizes only adds and drops the others.
std::vector<size_t> long_dims(const Shape& shape) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < shape.dims.size(); ++d) {
    if (shape.dims[d] != 1) dims.push_back(d);
  }
  return dims;
}

bool keeps_long_dims(const Instruction& reshape) {
  auto sizes = [](const Shape& s) {
    Ints kept = s.dims;
    std::erase(kept, 1);
    return kept;
  };
  return sizes(reshape.shape) == sizes(reshape.operand(0)->shape);
}

bool has_starts(const Instruction& i, size_t before) {
  return i.operand_count() == before + i.operand(0)->shape.dims.size();  // not one vector of them
}

/// A part that is put back where it was taken, and what has been replaced of it.
struct Part {
  Instruction* taken = nullptr;             ///< a slice
  std::vector<const Instruction*> updates;  ///< of the part, the first one first
  std::vector<Instruction*> updated;        ///< values of the part after all of them
  const Instruction* whole() const { return taken->operand(0); }
};

/// Along each dim all of the array is taken, or one element of it, from where it is put.
bool is_put_where_taken(const Instruction& put, const Instruction& taken) {
  const Ints &all = put.shape.dims, &part = taken.shape.dims;
  if (!takes_updated_box(taken, put)) return false;
  return std::ranges::equal(part, all, [](int64_t some, int64_t of) { return some == 1 || some == of; });
}

bool is_put(const Instruction& i) { return i.is(kDynamicUpdateSlice) && has_starts(i, 2); }

/// An update that can be one of the whole. A scatter's dims are those of the whole, less all of size 1.
bool updates_part(const Instruction& i) {
  return is_put(i) || (i.is(kScatter) && i.operand_count() == 3 && !contains(i.shape.dims, 1));
}

/// Nothing where something has to wait: for who reads the part as it is now, it may be.
std::optional<Part> updated_part(const Instruction& put) {
  if (!is_put(put) || !put.control_predecessors.empty()) return std::nullopt;
  Part p;
  Instruction* value = put.operand(1);
  for (bool inside = false;;) {
    const bool update = updates_part(*value);
    if (!update && !(value->is(kReshape) && keeps_long_dims(*value))) break;
    if ((inside && value->users().size() > 1) || !value->control_predecessors.empty()) return std::nullopt;
    if (update) p.updates.insert(p.updates.begin(), value);
    if (!inside) p.updated.push_back(value);
    inside |= update;
    value = value->operand(0);
  }
  if (p.updates.empty() || value->users().size() > 1 || !is_put_where_taken(put, *value)) return std::nullopt;
  p.taken = value;
  return p;
}

/// What `i` is made of, and of what that is made.
InstructionSet sources_of(const Instruction& i) {
  InstructionSet sources;
  std::vector<const Instruction*> open = {&i};
  while (!open.empty()) {
    const Instruction* next = open.back();
    open.pop_back();
    for (const Instruction* o : next->operands()) {
      if (sources.insert(o)) open.push_back(o);
    }
  }
  return sources;
}

/// Is the part put where it was taken, and has everybody else who reads the array done so by then? (The part of the
/// layer before, where layers are written out.)
bool is_last_read(const Instruction& put, const Part& part) {
  if (part.whole() != put.operand(0)) return false;
  if (part.whole()->users().size() == 2) return true;
  const InstructionSet before = sources_of(put);
  auto are_before = [&](const Instruction* reader) {
    return std::ranges::all_of(reader->users(), [&](const Instruction* u) { return before.contains(u); });
  };
  return std::ranges::all_of(part.whole()->users(), [&](const Instruction* reader) {
    if (reader == &put || reader == part.taken) return true;
    return (reader->is(kSlice) || reader->is(kDynamicSlice)) && are_before(reader);
  });
}

/// Updates of parts as such of the whole.
class WholeUpdater {
 public:
  WholeUpdater(Builder& b, const Instruction& put, const Part& part)
      : b_(b), put_(put), part_(part), of_part_(long_dims(part.taken->shape)) {}

  Instruction* run() {
    Instruction* all = put_.operand(0);
    for (const Instruction* u : part_.updates) all = u->is(kScatter) ? scattered(all, *u) : replaced(all, *u);
    return all;
  }

  /// The part as it is in the updated whole.
  Instruction* part_of(Instruction* all) {
    std::vector<Instruction*> operands(part_.taken->operands().begin(), part_.taken->operands().end());
    operands[0] = all;
    return b_.computation()->clone_instruction(*part_.taken, std::move(operands));
  }

 private:
  /// Where the part begins along a dim of which it is one element, in bounds: slices move back what is not.
  Instruction* start(size_t d, DType type) {
    Instruction* at = put_.operand(d + 2);
    const int64_t last = put_.shape.dims[d] - 1;
    if (last == 0) return b_.constant(type, 0);  // whatever it says, and may say only when the part has been read
    if (at->is(kConstant)) {
      const auto number = std::clamp<int64_t>(at->literal->as_int(0), 0, last);
      return b_.constant(type, static_cast<double>(number));
    }
    auto bound = [&](int64_t n) { return b_.constant(at->shape.type, static_cast<double>(n)); };
    Instruction* inside = b_.op(kClamp, {bound(0), at, bound(last)});
    return at->shape.type == type ? inside : b_.convert(inside, type);
  }

  Instruction* replaced(Instruction* all, const Instruction& u) {
    Ints sizes(all->shape.dims.size(), 1);
    Builder::Values at(put_.operands().begin() + 2, put_.operands().end());
    const DType type = u.operand(2)->shape.type;
    for (size_t d = 0; d < at.size(); ++d) {
      const bool as_it_is = at[d]->shape.type == type && put_.shape.dims[d] != 1;
      if (part_.taken->shape.dims[d] == 1 && !as_it_is) at[d] = start(d, type);
    }
    const std::vector<size_t> of_update = long_dims(u.shape);
    for (size_t k = 0; k < of_part_.size(); ++k) {
      sizes[of_part_[k]] = u.operand(1)->shape.dims[of_update[k]];
      at[of_part_[k]] = u.operand(of_update[k] + 2);
    }
    return b_.dynamic_update_slice(all, b_.reshape(u.operand(1), sizes), at);
  }

  /// Where the part starts is one more index, the same for all windows.
  Instruction* scattered(Instruction* all, const Instruction& u) {
    ScatterDims s = u.attrs.scatter;
    for (Ints* dims : {&s.inserted_window_dims, &s.scatter_dims_to_operand_dims, &s.input_batching_dims}) {
      for (int64_t& d : *dims) d = static_cast<int64_t>(of_part_[static_cast<size_t>(d)]);
    }
    Ints sizes = u.operand(1)->shape.dims;
    if (s.index_vector_dim == std::ssize(sizes)) sizes.push_back(1);
    Builder::Values indices = {b_.reshape(u.operand(1), sizes)};
    sizes[static_cast<size_t>(s.index_vector_dim)] = 1;
    for (int64_t d = 0; d < all->shape.rank(); ++d) {
      if (part_.taken->shape.dims[static_cast<size_t>(d)] != 1) continue;
      s.inserted_window_dims.push_back(d);
      s.scatter_dims_to_operand_dims.push_back(d);
      indices.push_back(b_.broadcast(start(static_cast<size_t>(d), indices[0]->shape.type), sizes));
    }
    std::ranges::sort(s.inserted_window_dims);
    Instruction* made =
        b_.computation()->clone_instruction(u, {all, b_.concat_in_dim(indices, s.index_vector_dim), u.operand(2)});
    made->shape = all->shape;
    made->attrs.scatter = std::move(s);
    return made;
  }

  Builder& b_;
  const Instruction& put_;
  const Part& part_;
  const std::vector<size_t> of_part_;
};

bool update_in(Computation& c, const PipelineOptions& options) {
  Builder b(&c);
  return replace_ops(c, "update_parts", options, [&](const Instruction& put) -> Instruction* {
    const auto part = updated_part(put);
    if (!part || !is_last_read(put, *part)) return nullptr;
    WholeUpdater updater(b, put, *part);
    Instruction* all = updater.run();
    for (Instruction* value : part->updated) {
      if (value->users().size() == 1) continue;  // only put
      Instruction* made = b.reshape(updater.part_of(all), value->shape.dims);
      made->shape.layout = value->shape.layout;
      value->replace_all_uses_with(made);
    }
    all->shape.layout = put.shape.layout;
    return all;
  });
}

// ---- two elements of a loop's state that are one

/// Who reads each element of a tuple, or null; empty if it is read otherwise, or one of them more than once.
std::vector<Instruction*> elements_of(const Instruction& tuple) {
  std::vector<Instruction*> found(tuple.shape.elements.size());
  for (Instruction* user : tuple.users()) {
    if (!user->is(kGetTupleElement)) return {};
    Instruction*& element = found[static_cast<size_t>(user->attrs.tuple_index)];
    if (element) return {};
    element = user;
  }
  return found;
}

class StateMerger {
 public:
  StateMerger(Instruction& loop, const PipelineOptions& options) : loop_(loop), options_(options) {}

  bool run() {
    bool changed = false;
    while (merge_one()) changed = true;
    return changed;
  }

 private:
  bool merge_one() {
    const auto rounds = counted_rounds(loop_);
    const Instruction *state = loop_.operand(0), *root = loop_.while_body()->root();
    if (!rounds || *rounds == 0 || !state->is(kTuple) || state->users().size() > 1 || !root->is(kTuple)) return false;
    if (loop_.is_root() || !root->users().empty()) return false;
    read_ = elements_of(*loop_.while_body()->parameters()[0]);
    asked_ = elements_of(*loop_.while_condition()->parameters()[0]);
    results_ = elements_of(loop_);
    if (read_.empty() || asked_.empty() || results_.empty()) return false;
    for (size_t to = 0; to < read_.size(); ++to) {
      const Instruction* put = root->operand(to);
      if (!is_put(*put) || put->operand(0) != read_[to]) continue;
      if (!is_overwritten(loop_, static_cast<int64_t>(to), *rounds)) continue;
      const auto part = updated_part(*put);
      for (size_t from = 0; from < read_.size(); ++from) {
        const Instruction* taken = taken_of(from);
        if (!taken || !compatible(read_[from]->shape, put->shape) || !is_put_where_taken(*put, *taken)) continue;
        if (part ? taken != part->taken : !comes_back(from, to)) continue;
        merge(from, to);
        return true;
      }
    }
    return false;
  }

  /// What the rounds take of an element that they do not change, if nothing else reads it.
  const Instruction* taken_of(size_t k) const {
    const Instruction *whole = read_[k], *root = loop_.while_body()->root();
    if (!whole || asked_[k] || whole->users().size() != 2 || root->operand(k) != whole) return nullptr;
    if (std::ranges::count(root->operands(), whole) > 1) return nullptr;
    return whole->users()[whole->users()[0] == root ? 1 : 0];
  }

  /// Is the loop in another one, of whose state an element comes in as the one and goes out as the other?
  bool comes_back(size_t from, size_t to) const {
    const Computation& outside = *loop_.parent();
    const Instruction *first = loop_.operand(0)->operand(from), *last = results_[to];
    const int64_t k = state_element(first, outside);
    if (k < 0 || !last || !outside.root()->is(kTuple) || first->users().size() > 1) return false;
    return last->users().size() == 1 && outside.root()->operand(static_cast<size_t>(k)) == last;
  }

  /// What is taken of element `from` is taken of element `to`, which begins as that one.
  void merge(size_t from, size_t to) {
    Instruction* state = loop_.operand(0);
    Computation& body = *loop_.while_body();
    explain(options_, "update_parts", body, "{} and {} of {} are one", state->operand(from)->name,
            state->operand(to)->name, loop_.name);
    state->set_operand(to, state->operand(from));
    if (Instruction* result = results_[from]) {
      result->replace_all_uses_with(state->operand(from));
      result->parent()->remove(result);
    }
    const std::vector<Instruction*> readers(read_[from]->users().begin(), read_[from]->users().end());
    for (Instruction* user : readers) {
      if (user != body.root()) user->set_operand(0, read_[to]);
    }
    std::vector<bool> kept(read_.size(), true);
    kept[from] = false;
    drop_elements(loop_, kept);
  }

  Instruction& loop_;
  const PipelineOptions& options_;
  std::vector<Instruction*> read_, asked_, results_;  // the state's elements in the body, in the condition and behind
};

}  // namespace

bool update_parts(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    for (Instruction* i : c->snapshot()) {
      if (i->is(kWhile)) changed |= StateMerger(*i, options).run();
    }
  }
  for (Computation* c : sequential_computations(module)) changed |= update_in(*c, options);
  return changed;
}

}  // namespace hlojit

// Who reads which value of a computation, which values share one buffer, and the edits that make it so: what `alias`
// decides with.
//
// Values that share a buffer form a chain v0 -> v1 -> ..., each dead when the next is written. A link a -> b is legal
// if b's instruction can run after everybody who reads a; control predecessors then make it so.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/dataflow.h"
#include "compiler/ir/instruction_set.h"
#include "compiler/pipeline.h"

namespace hlojit {

class MemoryChains {
 public:
  /// Where a leaf is handed over: operand `index` of `user`, or the root of the computation.
  struct Slot {
    Instruction* user = nullptr;  ///< nullptr: the computation's root itself
    size_t index = 0;
  };

  /// `flow` is kept up to date with every edit. `with_root`: the root hands values over (a condition's does not).
  MemoryChains(Computation& c, Dataflow& flow, const PipelineOptions& options, bool with_root);

  bool changed() const { return changed_; }
  /// "state.2{1}": leaf 1 of a tuple.
  static std::string text(const ArrayValue& v);

  // ---- who reads what

  const std::vector<Instruction*>& readers(const ArrayValue& v) { return readers_[v]; }
  /// How many leaves of the root are this value.
  int root_uses(const ArrayValue& v) const;
  /// Everything that runs after `from` in any order we may still choose, itself included.
  InstructionSet after(Instruction* from) const;
  /// `writer` may overwrite `v` while it reads it.
  bool overwrites_in_place(Instruction* writer, int64_t leaf, const ArrayValue& v) const;

  // ---- slots: tuples made explicit

  /// One slot a leaf of an operand of `user` (nullptr: of the root). A tuple gets an instruction of its own, read by
  /// `user` only, so that leaves can be exchanged.
  std::vector<Slot> slots(Instruction* user, Instruction* operand, size_t number = 0);
  /// Of the root, a slot a leaf.
  const std::vector<Slot>& root_slots() const { return root_slots_; }
  Instruction* get(const Slot& s) const { return s.user ? s.user->operand(s.index) : c_.root(); }
  ArrayValue value(const Slot& s) const { return flow_.values(get(s))[0]; }
  /// Replaces what the slot hands over. `reader` reads it (nullptr: the root).
  void put(const Slot& s, Instruction* what, Instruction* reader);
  /// The slot hands over a copy from now on.
  ArrayValue copy(const Slot& s, Instruction* reader);

  // ---- chains

  /// Where the chain of `v` begins and ends.
  ArrayValue head(ArrayValue v) const;
  ArrayValue tail(ArrayValue v) const;
  /// Links a -> b if it can be: `reads_allowed` if b's instruction may itself read a.
  bool link(const ArrayValue& a, const ArrayValue& b, bool reads_allowed);
  /// `then` runs after `first`.
  void order(Instruction* first, Instruction* then);

  // ---- other edits

  /// A copy of a parameter's leaf, for those who are to read it later.
  Instruction* keep(const ArrayValue& v);
  /// `reader` reads `instead`, an array, wherever it read `v`.
  void redirect(Instruction* reader, const ArrayValue& v, Instruction* instead);
  /// `made`, a single array as `old` and just added, takes its place in its chain and for its readers; `old` is
  /// removed.
  void replace(Instruction* old, Instruction* made);

 private:
  void add_reader(const ArrayValue& v, Instruction* i);
  std::vector<Instruction*> before_taking(const ArrayValue& a, const ArrayValue& b);
  Instruction* own_tuple(Instruction* source, std::vector<Slot>& found);
  Instruction* element(Instruction* tuple, size_t k);
  Instruction* array(const ArrayValue& v);
  Instruction* track(Instruction* i);
  void update_forwarders(std::vector<Instruction*> work);

  Computation& c_;
  Dataflow& flow_;
  const PipelineOptions& options_;
  bool changed_ = false;
  std::vector<Slot> root_slots_;
  std::unordered_map<ArrayValue, std::vector<Instruction*>, ArrayValueHash> readers_;
  std::unordered_map<ArrayValue, int, ArrayValueHash> root_uses_;
  std::unordered_map<ArrayValue, ArrayValue, ArrayValueHash> next_, previous_;
  std::unordered_map<Instruction*, std::vector<Instruction*>> control_successors_;
};

}  // namespace hlojit

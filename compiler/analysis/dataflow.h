// Where array values come from. Tuples, get-tuple-elements, bitcasts and loop state that no
// iteration changes compute nothing: they forward memory. An ArrayValue is one leaf of an instruction that
// does compute (a fusion, a parameter, a constant, a changing leaf of a while, a conditional), and
// every leaf of every instruction of the sequential computations has one ArrayValue behind it.
//
//   t = (f32[], f32[8]) tuple(a, b)        leaves: {a, 0}, {b, 0}
//   g = f32[8] get-tuple-element(t), 1     leaf:   {b, 0}
//
// `alias`, `schedule` and buffer assignment all reason about ArrayValues, so they agree.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

/// The entry and what it runs through while and conditional, callees first. Each has one call site
/// once `inline_calls` has run.
std::vector<Computation*> sequential_computations(const Module& module);

struct ArrayValue {
  Instruction* def = nullptr;
  int64_t leaf = 0;
  bool operator==(const ArrayValue&) const = default;
};

struct ArrayValueHash {
  size_t operator()(const ArrayValue& v) const {
    return std::hash<const void*>()(v.def) * 31 + static_cast<size_t>(v.leaf);
  }
};

/// Computes nothing itself: its leaves are leaves of its operands.
bool forwards(const Instruction& instruction);

/// Its results are new arrays that this instruction alone writes: a fusion, a branch, a step.
bool makes_arrays(const Instruction& instruction);

class Dataflow {
 public:
  /// Analyses all sequential computations of `module`.
  explicit Dataflow(const Module& module);

  /// The value behind each leaf of `instruction`, depth first.
  std::span<const ArrayValue> values(const Instruction* instruction) const { return values_.at(instruction); }
  /// The body hands leaf `leaf` of its state on as it got it: one buffer, written by nobody.
  bool invariant(const Instruction* while_loop, int64_t leaf) const { return invariant_.at(while_loop)[leaf]; }
  /// Values of all operands, operand after operand: what an instruction that does not forward reads.
  std::vector<ArrayValue> reads(const Instruction* instruction) const;
  /// After an edit: recomputes the leaves of one instruction from its operands; whether they changed.
  bool update(const Instruction* instruction);
  /// The instruction whose called computation this is (nullptr for the entry).
  Instruction* caller(const Computation* computation) const;

 private:
  std::vector<ArrayValue> compute(const Instruction* instruction) const;

  std::unordered_map<const Instruction*, std::vector<ArrayValue>> values_;
  std::unordered_map<const Instruction*, std::vector<bool>> invariant_;
  std::unordered_map<const Computation*, Instruction*> callers_;
};

/// Position of the leaf range of tuple element `index` in the leaves of `tuple`.
int64_t first_leaf(const Shape& tuple, int64_t index);
/// Leaf number at the end of a path of tuple indices; the path may stop above the arrays.
int64_t leaf_at(const Shape& shape, std::span<const int64_t> path);

/// For each leaf of the entry's result the leaf of its parameters, counted over all of them, whose memory it may be
/// given (input_output_alias); -1: none.
std::vector<int64_t> donors(const Module& module);

}  // namespace hlojit

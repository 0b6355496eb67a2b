// The IR: Module > Computation > Instruction, HLO as a graph.
//
// Meaning. An instruction computes its value once its operands and control predecessors have theirs;
// nothing else orders it, except that effects (tokens, channels) follow their tokens. Values are
// immutable: "in place" is a decision of buffer assignment that no instruction can observe. Integers
// wrap, floats follow IEEE with NaN payloads free, narrow floats are computed in f32 and rounded
// after every op. Shapes carry layouts: they never change a value, only where its bytes go (bitcast
// excepted). Every operand is in the same computation as its user; called computations come before
// their callers in Module::computations(); no recursion.
//
// Ownership: a Module owns its computations, a Computation its instructions, in an order that is
// always a valid execution order (operands first). Pointers stay valid until the node is removed.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ir/attributes.h"
#include "compiler/ir/literal.h"
#include "compiler/ir/ops.h"
#include "layout/shape.h"

namespace hlojit {

class Computation;
class Module;

class Instruction {
 public:
  Opcode opcode;
  std::string name;  ///< unique in its computation (in its module after import)
  Shape shape;
  Attributes attrs;
  std::shared_ptr<const Literal> literal;  ///< constants
  /// while: {condition, body}; conditional: branches (pred form: {true, false}); fusion: {calls};
  /// select-and-scatter: {select, scatter}; others: {to_apply}; custom-call: called_computations.
  std::vector<Computation*> called;
  std::vector<Instruction*> control_predecessors;
  Location location;  ///< in the text it came from

  Computation* parent() const { return parent_; }
  /// Unlike those of all others that its computation ever had, and below Computation::numbers().
  size_t number() const { return number_; }
  std::span<Instruction* const> operands() const { return operands_; }
  Instruction* operand(size_t i) const { return operands_[i]; }
  size_t operand_count() const { return operands_.size(); }
  /// Distinct users, in no particular order. An instruction using this twice is listed once.
  std::span<Instruction* const> users() const { return users_; }
  bool is_root() const;

  void set_operand(size_t i, Instruction* value);
  void append_operand(Instruction* value);
  void set_operands(std::vector<Instruction*> values);
  /// Every user (and the computation's root, if this is it) uses `value` instead.
  void replace_all_uses_with(Instruction* value);

  /// The single called computation (to_apply, calls).
  Computation* to_apply() const { return called.at(0); }
  Computation* while_condition() const { return called.at(0); }
  Computation* while_body() const { return called.at(1); }
  const OpInfo& info() const { return op_info(opcode); }
  bool is(Opcode o) const { return opcode == o; }

 private:
  friend class Computation;
  Instruction(Opcode opcode, std::string name, Shape shape)
      : opcode(opcode), name(std::move(name)), shape(std::move(shape)) {}
  void drop_user(Instruction* user);

  Computation* parent_ = nullptr;
  size_t number_ = 0;
  std::vector<Instruction*> operands_;
  std::vector<Instruction*> users_;
};

class Computation {
 public:
  std::string name;
  std::string execution_thread;
  Location location;

  Module* parent() const { return parent_; }
  Instruction* root() const { return root_; }
  void set_root(Instruction* root) { root_ = root; }
  /// Parameters by number.
  const std::vector<Instruction*>& parameters() const { return parameters_; }

  /// All instructions, operands before users.
  const std::vector<std::unique_ptr<Instruction>>& instructions() const { return instructions_; }
  /// Snapshot of pointers in that order: safe to iterate while adding or removing.
  std::vector<Instruction*> snapshot() const;
  /// How many instructions it ever had.
  size_t numbers() const { return numbers_; }

  /// Appends (or inserts before `before`). The name is made unique by a numeric suffix if taken.
  Instruction* add(Opcode opcode, Shape shape, std::vector<Instruction*> operands, std::string_view name = {},
                   Instruction* before = nullptr);
  Instruction* add_parameter(int64_t number, Shape shape, std::string_view name = {});
  Instruction* add_constant(Literal literal, std::string_view name = {}, Instruction* before = nullptr);
  /// Copies opcode, shape, attributes, literal, called computations; new operands.
  Instruction* clone_instruction(const Instruction& from, std::vector<Instruction*> operands,
                                 std::string_view name = {}, Instruction* before = nullptr);
  /// Removes an instruction without users; Error-free by contract (asserted).
  void remove(Instruction* instruction);
  /// Removes a set of instructions that have no users outside the set.
  void remove_all(std::span<Instruction* const> dead);
  /// Takes parameters out of order / re-numbers after a parameter was removed.
  void renumber_parameters();
  /// Reorders instructions_ so that operands and control predecessors come first; stable w.r.t. the
  /// present order. Needed after edits that break the order. Returns false on a cycle.
  bool sort_topologically();
  /// Puts the instructions into `order`: all of them, each once, operands and control predecessors
  /// first.
  void set_order(std::span<Instruction* const> order);
  Instruction* find(std::string_view instruction_name) const;
  std::string unique_name(std::string_view base);

 private:
  friend class Module;
  friend class Instruction;
  bool is_sorted() const;
  Module* parent_ = nullptr;
  Instruction* root_ = nullptr;
  std::vector<std::unique_ptr<Instruction>> instructions_;
  size_t numbers_ = 0;
  std::vector<Instruction*> parameters_;
  std::unordered_map<std::string, int> names_;  // name -> next suffix to try
};

/// Module-level facts of the HloModule line.
struct ModuleConfig {
  bool is_scheduled = false;
  /// Shapes (with layouts) the caller sees; empty result type = not given (taken from the entry).
  std::vector<Shape> entry_parameters;
  Shape entry_result;
  bool has_entry_layout = false;
  std::vector<Alias> input_output_alias;
  std::vector<std::pair<int64_t, Ints>> buffer_donor;
  int64_t replica_count = 1;
  int64_t num_partitions = 1;
  /// Other header attributes: name -> text, in printing order.
  std::vector<std::pair<std::string, std::string>> other;
};

class Module {
 public:
  explicit Module(std::string name) : name(std::move(name)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::string name;
  ModuleConfig config;
  /// The text the module was parsed from (for carets in diagnostics); may be empty.
  std::shared_ptr<const std::string> source;

  Computation* entry() const { return entry_; }
  /// What the caller passes and gets, layouts included: entry_computation_layout, else as the entry says.
  const Shape& parameter_shape(size_t k) const;
  const Shape& result_shape() const;
  /// Writes both into the config, so that what happens to the entry's instructions cannot change them.
  void freeze_entry_layout();
  void set_entry(Computation* c) { entry_ = c; }
  /// Callees before callers.
  const std::vector<std::unique_ptr<Computation>>& computations() const { return computations_; }
  Computation* add_computation(std::string_view name);
  /// Inserts before `before` in the order (a new fusion computation before its caller).
  Computation* add_computation_before(std::string_view name, const Computation* before);
  Computation* find(std::string_view computation_name) const;
  /// Removes computations that nothing reaches from the entry; reorders callees before callers.
  void remove_unreachable();
  std::unique_ptr<Module> clone() const;
  /// Deep copy of a computation (not of those it calls) under a new unique name.
  Computation* clone_computation(const Computation& from, std::string_view name);

 private:
  std::vector<std::unique_ptr<Computation>> computations_;
  Computation* entry_ = nullptr;
  std::unordered_map<std::string, int> names_;
};

/// Type of comparison where none is written: FLOAT for floats and complex, SIGNED for signed integers,
/// UNSIGNED for unsigned ones and pred.
CompareType default_compare_type(DType element);
/// Type of comparison after that rule.
CompareType effective_compare_type(const Instruction& compare);
/// Instructions that must not be removed, duplicated or merged (tokens, rng, side-effecting calls).
bool has_side_effect(const Instruction& instruction);
bool has_side_effect(const Computation& computation);

inline bool has_trait(const Instruction& i, uint32_t traits) { return has_trait(i.opcode, traits); }

}  // namespace hlojit

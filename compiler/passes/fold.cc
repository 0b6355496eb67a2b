// See fold.h. One walk in order, so that what was folded feeds what follows. Elementwise ops on
// splats are computed once, on scalars.
#include "compiler/passes/fold.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/known_index.h"
#include "compiler/builder.h"
#include "compiler/eval/evaluator.h"
#include "compiler/ir/instruction_table.h"
#include "compiler/passes/dce.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/simplify_rules.h"
#include "compiler/plan/op_cost.h"

namespace hlojit {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;
constexpr int64_t kSmallBytes = 256;            // may be larger than what it is made of
constexpr int64_t kMaxPlaces = 64 << 10;        // bytes of indices
constexpr int64_t kMaxTable = 256 << 10;        // bytes of other numbers
constexpr size_t kMostSources = 64;             // instructions that they are made by
constexpr int64_t kMaxWork = int64_t{1} << 24;  // element operations a module: some 0.1 s
constexpr double kWorthTable = 10;              // cycles for a vector: half a function, two divisions

class Folder {
 public:
  Folder(Computation& c, const PipelineOptions& options, double& work) : c_(c), options_(options), work_(work) {
    eval_.scatter_oob_window = options.scatter_oob_window;
    eval_.max_bytes = kMaxBytes;
    eval_.max_steps = kMaxWork;
  }

  bool run() {
    for (Instruction* i : c_.snapshot()) {
      if (!may_fold(*i)) continue;
      bool constants = std::ranges::all_of(i->operands(), [](auto* o) { return o->is(Opcode::kConstant); });
      if (constants) {
        fold_whole(i);
      } else if (std::ranges::all_of(i->operands(), [](auto* o) { return splat_value(o) != nullptr; })) {
        fold_splats(i);
      }
    }
    if (changed_) c_.sort_topologically();
    return changed_;
  }

  bool run_places() {
    for (Instruction* i : c_.snapshot()) {
      if (has_trait(*i, op_trait::kRandomPlaces) && (i->is_root() || !i->users().empty())) places_of(*i);
    }
    if (changed_) c_.sort_topologically();
    return changed_;
  }

  bool run_tables() {
    std::vector<Instruction*> tables;
    const InstructionTable<char> undecided = undecided_by_inputs();
    for (Instruction* i : c_.snapshot()) {
      if (undecided[i] && is_table(*i)) tables.push_back(i);
    }
    std::unordered_map<const Instruction*, Literal> known;
    for (Instruction* i : tables) {
      if (const Literal* value = fold_source(*i, known)) replace(i, c_.add_constant(*value, i->name));
    }
    if (changed_) c_.sort_topologically();
    return changed_;
  }

 private:
  /// Where elements are, if no input decides it: numbers of rows scaled and rounded, as a nearest resize has them. What
  /// is known as an expression is left, for it is addressed without looking.
  void places_of(const Instruction& i) {
    if (!i.shape.is_array() || has_trait(i, op_trait::kUpdates)) return;
    VarSource vars;
    Coords at;
    for (int64_t n : i.shape.dims) at.push_back(IndexExpr::var(vars.fresh(), n));
    for (const Symbol& s : known_relation(i, at, {}, vars).symbols) {
      Instruction* places = i.operand(s.operand);
      Sources sources;
      if (splat_value(places) || places->is(Opcode::kConstant)) continue;
      if (!made_of_constants(*places, kMaxPlaces, sources)) continue;
      std::unordered_map<const Instruction*, Literal> known;
      if (const Literal* value = fold_source(*places, known)) replace(places, c_.add_constant(*value, places->name));
    }
  }

  /// What iotas and constants are made by.
  struct Sources {
    std::unordered_set<const Instruction*> seen;
    double cycles = 0;  ///< of all elements' functions, by lanes of one vector; whole numbers are left to addresses
    void add(const Instruction& i) {
      if (!is_float(i.shape.type) && !is_complex(i.shape.type)) return;
      cycles += cycles_per_vector(i) * static_cast<double>(i.shape.element_count());
    }
  };

  /// What is made of small constants and iotas alone, by one walk; of how many steps is asked of these only.
  InstructionTable<char> undecided_by_inputs() const {
    InstructionTable<char> undecided(c_);
    for (const auto& i : c_.instructions()) {
      undecided[i.get()] =
          may_be_source(*i, kMaxTable) && std::ranges::all_of(i->operands(), [&](auto* o) { return undecided[o]; });
    }
    return undecided;
  }

  /// What no input decides and takes longer to compute than to read: the angles of a position, a window's weights. The
  /// last of its kind, for what is made of it alone is a table, too.
  static bool is_table(const Instruction& i) {
    Sources sources;
    if (!may_be_table(i, sources)) return false;
    auto goes_further = [](const Instruction* user) {
      Sources more;
      return may_be_table(*user, more);
    };
    if (!i.is_root() && std::ranges::all_of(i.users(), goes_further)) return false;
    if (i.shape.element_count() <= kFewExponents && is_exponent(i)) return true;
    return sources.cycles >= kWorthTable * static_cast<double>(i.shape.element_count());
  }

  /// By how much it is known what a power is.
  static bool is_exponent(const Instruction& i) {
    return std::ranges::any_of(i.users(), [&](const Instruction* user) {
      if (user->is(Opcode::kBroadcast) || user->is(Opcode::kReshape)) return is_exponent(*user);
      return user->is(Opcode::kPower) && user->operand(1) == &i;
    });
  }

  static bool may_be_source(const Instruction& i, int64_t most_bytes) {
    if (!i.shape.is_array() || i.shape.dense_bytes() > most_bytes) return false;
    return i.is(Opcode::kConstant) || i.is(Opcode::kIota) || i.is(Opcode::kBroadcast) || may_fold(i);
  }

  static bool may_be_table(const Instruction& i, Sources& sources) {
    return may_fold(i) && i.shape.rank() > 0 && !splat_value(&i) && made_of_constants(i, kMaxTable, sources);
  }

  /// Of iotas and constants, by few steps over small arrays. Asked first, so that nothing is evaluated in vain.
  static bool made_of_constants(const Instruction& i, int64_t most_bytes, Sources& sources) {
    if (!sources.seen.insert(&i).second) return true;
    if (!may_be_source(i, most_bytes) || sources.seen.size() > kMostSources) return false;
    if (i.is(Opcode::kConstant) || i.is(Opcode::kIota)) return true;
    sources.add(i);
    return std::ranges::all_of(i.operands(), [&](auto* o) { return made_of_constants(*o, most_bytes, sources); });
  }

  /// The value of what is made so; nullptr if the evaluator has none.
  const Literal* fold_source(const Instruction& i, std::unordered_map<const Instruction*, Literal>& known) {
    if (auto at = known.find(&i); at != known.end()) return &at->second;
    if (i.is(Opcode::kConstant)) return &known.emplace(&i, *i.literal).first->second;
    std::vector<Literal> operands;
    for (const Instruction* o : i.operands()) {
      const Literal* value = fold_source(*o, known);
      if (!value) return nullptr;
      operands.push_back(*value);
    }
    auto value = evaluated(i, operands);
    return value ? &known.emplace(&i, std::move(*value)).first->second : nullptr;
  }

  static bool may_fold(const Instruction& i) {
    if (i.operand_count() == 0 || !i.shape.is_array() || i.shape.has_dynamic_dims()) return false;
    if (i.users().empty() && !i.is_root()) return false;  // folded before
    if (!i.control_predecessors.empty() || has_side_effect(i)) return false;
    switch (i.info().op_class) {
      case OpClass::kElementwise:
      case OpClass::kReduces:
      case OpClass::kContracts: return true;
      case OpClass::kMoves:
        if (i.is(Opcode::kBroadcast)) return i.shape.element_count() == i.operand(0)->shape.element_count();
        return !i.is(Opcode::kBitcast) && !i.is(Opcode::kCopy);
      default: return false;
    }
  }

  /// Upper bound of what evaluating costs, in element operations (a double: sizes multiply).
  static double price(const Instruction& i) {
    auto made = static_cast<double>(i.shape.element_count()), read = 1.0;
    for (const Instruction* o : i.operands()) read += static_cast<double>(o->shape.element_count());
    for (const WindowDim& w : i.attrs.window) made *= static_cast<double>(w.size);
    switch (i.info().op_class) {
      case OpClass::kContracts: return made * read;
      case OpClass::kReduces: return 16 * (made + read);  // an interpreted step each
      default: return made + read;
    }
  }

  void fold_whole(Instruction* i) {
    int64_t read = 0, bytes = i->shape.dense_bytes();
    std::vector<Literal> operands;
    for (const Instruction* o : i->operands()) read += o->shape.dense_bytes();
    if (bytes > kMaxBytes || read > kMaxBytes || (bytes > read && bytes > kSmallBytes)) return;
    for (const Instruction* o : i->operands()) operands.push_back(*o->literal);
    if (auto value = evaluated(*i, operands)) replace(i, c_.add_constant(std::move(*value), i->name));
  }

  void fold_splats(Instruction* i) {
    if (!is_elementwise(i->opcode) || i->is(Opcode::kMap) || i->shape.rank() == 0) return;
    if (i->is(Opcode::kBitcastConvert) && i->operand(0)->shape.dims != i->shape.dims) return;
    std::vector<Literal> operands;
    for (const Instruction* o : i->operands()) {
      const Literal& from = *splat_value(o);
      Literal scalar(Shape::scalar(from.shape().type));
      std::ranges::copy(from.bytes().first(scalar.bytes().size()), scalar.bytes().begin());
      operands.push_back(std::move(scalar));
    }
    // The op itself on scalars, for as long as the evaluator looks at it.
    Computation scratch;
    Instruction* one = scratch.clone_instruction(*i, {});
    one->shape = Shape::scalar(i->shape.type);
    std::vector<Instruction*> constants;
    for (const Literal& l : operands) constants.push_back(scratch.add_constant(l, {}, one));
    one->set_operands(constants);
    auto value = evaluated(*one, operands);
    if (!value) return;
    Builder b(&c_);
    replace(i, b.broadcast(b.constant(std::move(*value)), i->shape.dims));
  }

  std::optional<Literal> evaluated(const Instruction& i, std::span<const Literal> operands) {
    double cost = price(i);
    if (cost > work_) return std::nullopt;
    work_ -= cost;
    try {
      return evaluate_instruction(i, operands, eval_);
    } catch (const Error&) {
      return std::nullopt;  // too large or without a meaning to the evaluator: run time will say
    }
  }

  void replace(Instruction* old, Instruction* made) {
    made->shape = old->shape;
    made->location = old->location;
    explain(options_, "fold", c_, "{} is computed here: {}", old->name, made->shape.to_string());
    old->replace_all_uses_with(made);
    changed_ = true;
  }

  Computation& c_;
  const PipelineOptions& options_;
  double& work_;
  EvalOptions eval_;
  bool changed_ = false;
};

bool in_all(Module& module, const PipelineOptions& options, bool (Folder::*run)()) {
  double work = kMaxWork;
  bool changed = false;
  for (Computation* c : sequential_computations(module)) changed |= (Folder(*c, options, work).*run)();
  return changed;
}

}  // namespace

bool fold(Module& module, const PipelineOptions& options) { return in_all(module, options, &Folder::run); }
bool fold_places(Module& module, const PipelineOptions& options) {
  return in_all(module, options, &Folder::run_places);
}
bool fold_tables(Module& module, const PipelineOptions& options) {
  const bool changed = in_all(module, options, &Folder::run_tables);
  if (changed) dce(module, options);  // what a table is made of, or each part of it were the next round's table
  return changed;
}

}  // namespace hlojit

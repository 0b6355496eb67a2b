// See unroll.h.
#include "compiler/passes/unroll.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/analysis/movement.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/replace_ops.h"
#include "compiler/passes/rounds.h"

namespace hlojit {
namespace {

constexpr int64_t kMaxRounds = 16;
constexpr int64_t kMaxInstructions = 1500;

/// Nothing in it ends a kernel.
bool is_elementwise_work(const Computation& body) {
  for (const auto& i : body.instructions()) {
    switch (i->info().op_class) {
      case OpClass::kElementwise:
      case OpClass::kSource: continue;
      case OpClass::kMoves:
        if (i->is(Opcode::kDynamicUpdateSlice) || i->is(Opcode::kScatter)) return false;
        continue;
      default:
        if (!i->is(Opcode::kTuple) && !i->is(Opcode::kGetTupleElement)) return false;
    }
  }
  return true;
}

/// Reads large state at other places than it makes it: of rounds in one kernel each would be computed several times for
/// the next.
bool moves_state(const Computation& body) {
  constexpr int64_t kFew = 64;
  const InstructionSet fixed = invariant_values(body);
  return std::ranges::any_of(body.instructions(), [&](const auto& i) {
    if (i->info().op_class != OpClass::kMoves) return false;
    if (i->is(Opcode::kBroadcast) || i->is(Opcode::kReshape) || i->is(Opcode::kTranspose)) return false;
    return std::ranges::any_of(moved_operands(*i), [&](const Instruction* o) {
      return !fixed.contains(o) && o->shape.element_count() > kFew;
    });
  });
}

/// Something in it waits for what it does not read: clones would not.
bool has_waits(const Computation& body) {
  return std::ranges::any_of(body.instructions(), [](const auto& i) { return !i->control_predecessors.empty(); });
}

/// Why a loop stays one; empty if it is unrolled.
std::string kept_because(const Instruction* loop, std::optional<int64_t> rounds) {
  if (!loop->control_predecessors.empty()) return "it waits for others";
  if (!rounds) return "how often it runs is not known";
  if (*rounds <= 1 && !has_waits(*loop->while_body())) return {};
  if (*rounds > kMaxRounds) return fmt::format("{} rounds are more than {}", *rounds, kMaxRounds);
  if (!is_elementwise_work(*loop->while_body())) return "its body is more than elementwise";
  if (moves_state(*loop->while_body())) return "its state is read at other places";
  auto size = static_cast<int64_t>(loop->while_body()->instructions().size());
  if (size * *rounds > kMaxInstructions) return fmt::format("{} rounds of {} instructions are too long", *rounds, size);
  return {};
}

bool unroll_in(Computation& c, const PipelineOptions& options) {
  std::vector<Instruction*> dead;
  for (Instruction* i : c.snapshot()) {
    if (!i->is(Opcode::kWhile)) continue;
    auto n = counted_rounds(*i);
    if (n) set_known_rounds(*i, *n);
    if (std::string why = kept_because(i, n); !why.empty()) {
      explain(options, "unroll", c, "{}: {}: no", i->name, why);
      continue;
    }
    explain(options, "unroll", c, "{}: {} rounds: yes", i->name, *n);
    Instruction* state = i->operand(0);
    for (int64_t round = 0; round < *n; ++round) state = paste_round(c, *i->while_body(), state);
    i->replace_all_uses_with(state);
    dead.push_back(i);
  }
  return remove_replaced(c, dead);
}

}  // namespace

bool unroll(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) changed |= unroll_in(*c, options);
  if (changed) module.remove_unreachable();
  return changed;
}

}  // namespace hlojit

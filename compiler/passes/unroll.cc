// See unroll.h.
#include "compiler/passes/unroll.h"

#include <optional>
#include <unordered_map>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/replace_ops.h"

namespace hlojit {
namespace {

constexpr int64_t kMaxRounds = 16;
constexpr int64_t kMaxInstructions = 1500;

std::optional<int64_t> integer(const Instruction* i) {
  if (!i->is(Opcode::kConstant) || !i->shape.is_scalar() || !is_integral(i->shape.type)) {
    return std::nullopt;
  }
  return i->literal->as_int(0);
}

/// How often the body runs, if the text says so.
std::optional<int64_t> rounds(const Instruction* loop) {
  const Computation& condition = *loop->while_condition();
  const Computation& body = *loop->while_body();
  const Instruction* test = condition.root();
  if (!loop->operand(0)->is(Opcode::kTuple) || !body.root()->is(Opcode::kTuple)) return std::nullopt;
  if (!test->is(Opcode::kCompare) || test->attrs.direction != Direction::kLt) return std::nullopt;
  int64_t k = state_element(test->operand(0), condition);
  auto bound = integer(test->operand(1));
  if (k < 0 || !bound) return std::nullopt;
  auto first = integer(loop->operand(0)->operand(k));
  const Instruction* next = body.root()->operand(k);
  if (!first || !next->is(Opcode::kAdd)) return std::nullopt;
  int counter = state_element(next->operand(0), body) == k ? 0 : 1;
  if (state_element(next->operand(counter), body) != k) return std::nullopt;
  auto step = integer(next->operand(1 - counter));
  // Small numbers only: no wrapping to think about.
  constexpr int64_t kSmall = 1 << 20;
  if (!step || *step <= 0 || *step > kSmall || std::abs(*first) > kSmall || std::abs(*bound) > kSmall) {
    return std::nullopt;
  }
  if (dtype_bits(next->shape.type) < 32) return std::nullopt;
  return *bound <= *first ? 0 : (*bound - *first + *step - 1) / *step;
}

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

/// The state after one more round, made of clones of the body.
Instruction* paste_round(Computation& c, const Computation& body, Instruction* state) {
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const auto& i : body.instructions()) {
    Instruction*& copy = copies[i.get()];
    if (i->is(Opcode::kParameter)) {
      copy = state;
    } else if (i->is(Opcode::kGetTupleElement) && copies.at(i->operand(0))->is(Opcode::kTuple)) {
      copy = copies.at(i->operand(0))->operand(i->attrs.tuple_index);
    } else {
      std::vector<Instruction*> operands;
      for (Instruction* o : i->operands()) operands.push_back(copies.at(o));
      copy = c.clone_instruction(*i, std::move(operands));
    }
  }
  return copies.at(body.root());
}

/// Why a loop stays one; empty if it is unrolled.
std::string kept_because(const Instruction* loop, std::optional<int64_t> rounds) {
  if (!loop->control_predecessors.empty()) return "it waits for others";
  if (!rounds) return "how often it runs is not known";
  if (*rounds > kMaxRounds) return fmt::format("{} rounds are more than {}", *rounds, kMaxRounds);
  if (!is_elementwise_work(*loop->while_body())) return "its body is more than elementwise";
  auto size = static_cast<int64_t>(loop->while_body()->instructions().size());
  if (size * *rounds > kMaxInstructions) return fmt::format("{} rounds of {} instructions are too long", *rounds, size);
  return {};
}

bool unroll_in(Computation& c, const PipelineOptions& options) {
  std::vector<Instruction*> dead;
  for (Instruction* i : c.snapshot()) {
    if (!i->is(Opcode::kWhile)) continue;
    auto n = rounds(i);
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

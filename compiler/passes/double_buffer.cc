// See double_buffer.h.
#include "compiler/passes/double_buffer.h"

#include <algorithm>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/rounds.h"
#include "compiler/plan/kernel.h"
#include "layout/index.h"

namespace hlojit {
namespace {

// Copying less takes no time to speak of. (Of 1.2 kB it took a seventh of a round of a few operations.)
constexpr int64_t kWorthBytes = 1 << 10;
constexpr size_t kMaxInstructions = 300;  // of the body
constexpr size_t kMaxBefore = 150;        // of a round before the loop, whose kernels are compiled once more

/// Instructions, those in kernels too.
size_t size_of(const Computation& body) {
  size_t n = body.instructions().size();
  for (const auto& i : body.instructions()) n += i->is(Opcode::kFusion) ? i->to_apply()->instructions().size() : 0;
  return n;
}

/// Nothing in it must run in the order it is written in, or runs other computations.
bool is_plain(const Computation& body) {
  if (has_side_effect(body)) return false;
  return std::ranges::all_of(body.instructions(), [](const auto& i) {
    return i->info().op_class != OpClass::kEffect && !has_trait(*i, op_trait::kRuns) && i->control_predecessors.empty();
  });
}

/// Element k of the state is made by a kernel that reads the old one at other places too.
bool needs_other_memory(const Computation& body, size_t k) {
  const Instruction* made = body.root()->operand(k);
  if (!made->shape.is_array() || physical_size(made->shape) < kWorthBytes) return false;
  int64_t leaf = 0;
  if (made->is(Opcode::kGetTupleElement)) {
    leaf = made->attrs.tuple_index;
    made = made->operand(0);
  }
  if (!made->is(Opcode::kFusion)) return false;
  for (size_t o = 0; o < made->operand_count(); ++o) {
    if (state_element(made->operand(o), body) != static_cast<int64_t>(k)) continue;
    const std::vector<Update> updates = updated_parameters(*made->to_apply());
    bool updated = std::ranges::any_of(
        updates, [&](const Update& u) { return u.parameter == static_cast<int64_t>(o) && u.result == leaf; });
    return !updated && !reads_in_place(*made->to_apply(), static_cast<int64_t>(o), leaf);
  }
  return false;
}

bool double_in(Computation& c, const PipelineOptions& options) {
  bool changed = false;
  for (Instruction* loop : c.snapshot()) {
    if (!loop->is(Opcode::kWhile)) continue;
    Computation& body = *loop->while_body();
    const std::optional<int64_t> rounds = known_rounds(*loop);
    if (!rounds || *rounds < 2 || !body.root()->is(Opcode::kTuple) || body.instructions().size() > kMaxInstructions) {
      continue;
    }
    size_t k = 0;
    while (k < body.root()->operand_count() && !needs_other_memory(body, k)) ++k;
    if (k == body.root()->operand_count() || !is_plain(body) || !is_plain(*loop->while_condition())) continue;
    if (!loop->control_predecessors.empty()) continue;
    if (*rounds % 2 == 1 && size_of(body) > kMaxBefore) continue;
    explain(options, "double_buffer", c, "{}: element {} of its state has two buffers in turn", loop->name, k);
    if (*rounds % 2 == 1) {
      loop->set_operand(0, paste_round(c, body, loop->operand(0)));
      c.sort_topologically();
    }
    body.set_root(paste_round(body, body, body.root()));
    set_known_rounds(*loop, *rounds / 2);
    changed = true;
  }
  return changed;
}

}  // namespace

bool double_buffer(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) changed |= double_in(*c, options);
  return changed;
}

}  // namespace hlojit

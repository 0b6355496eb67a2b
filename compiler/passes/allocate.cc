// See allocate.h.
#include "compiler/passes/allocate.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/ir/allocation.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/rounds.h"

namespace hlojit {
namespace {

/// The element of the loop's state as the body gets it, if that is read there once and nowhere else. Null if not.
const Instruction* read_once(const Instruction& loop, int64_t k) {
  const Instruction* found = nullptr;
  for (const Computation* c : loop.called) {
    for (const Instruction* user : c->parameters()[0]->users()) {
      const int64_t element = state_element(user, *c);
      if (element >= 0 && element != k) continue;
      if (element < 0 || found || c != loop.while_body()) return nullptr;
      found = user;
    }
  }
  return found && found->users().size() == 1 ? found : nullptr;
}

/// Of dim `dim` the places that an update replaces: in each round `size` of them, from `from` on.
struct Replaced {
  int64_t dim, size;
  Progress from;
};

/// nullopt if that is not known, or if not whole rows of the other dims are replaced.
std::optional<Replaced> replaced_by(const Instruction& update, const Instruction& loop) {
  const Ints &all = update.shape.dims, &part = update.operand(1)->shape.dims;
  if (update.operand_count() != all.size() + 2) return std::nullopt;  // one vector of starts
  std::optional<Replaced> found;
  for (size_t d = 0; d < all.size(); ++d) {
    if (part[d] == all[d]) continue;
    const auto from = progress_of(*update.operand(d + 2), loop);
    if (found || !from) return std::nullopt;
    found = Replaced{static_cast<int64_t>(d), part[d], *from};
  }
  return found;
}

/// The parts of a round lie side by side, the next round's behind them or before them, and the last is the end.
bool are_whole(std::vector<Replaced> parts, int64_t rounds, const Shape& shape) {
  std::ranges::sort(parts, {}, [](const Replaced& r) { return r.from.first; });
  const int64_t dim = parts[0].dim, step = parts[0].from.step;
  int64_t end = parts[0].from.first;
  for (const Replaced& p : parts) {
    if (p.dim != dim || p.from.step != step || p.from.first != end) return false;
    end += p.size;
  }
  const int64_t each = end - parts[0].from.first, last = parts[0].from.first + (rounds - 1) * step;
  const int64_t size = shape.dims[static_cast<size_t>(dim)];
  if (size > INT32_MAX) return false;  // counters of 32 bits would begin anew
  return std::abs(step) == each && std::min(parts[0].from.first, last) == 0 && rounds * each == size;
}

/// No round reads element k of the state as it was before the loop.
bool is_overwritten(const Instruction& loop, int64_t k, int64_t rounds) {
  const Instruction* value = read_once(loop, k);
  const Instruction* root = loop.while_body()->root();
  std::vector<Replaced> parts;
  while (value && value->users().size() == 1) {
    const Instruction* next = value->users()[0];
    if (next == root) break;
    if (!next->is(Opcode::kDynamicUpdateSlice) || next->is_root()) return false;
    if (next->operand(0) != value || std::ranges::count(next->operands(), value) > 1) return false;
    const auto part = replaced_by(*next, loop);
    if (!part) return false;
    parts.push_back(*part);
    value = next;
  }
  if (!value || parts.empty() || root->operand(static_cast<size_t>(k)) != value) return false;
  return std::ranges::count(root->operands(), value) == 1 && are_whole(std::move(parts), rounds, value->shape);
}

bool is_filled(const Instruction& i) {
  return i.shape.is_array() && i.shape.rank() > 0 && (i.is(Opcode::kBroadcast) || i.is(Opcode::kConstant));
}

bool allocate_for(Computation& c, Instruction* loop, const PipelineOptions& options) {
  Instruction* state = loop->operand(0);
  const auto rounds = counted_rounds(*loop);
  if (!rounds || *rounds == 0 || state->users().size() > 1) return false;
  bool changed = false;
  for (size_t k = 0; k < state->operand_count(); ++k) {
    Instruction* filled = state->operand(k);
    if (!is_filled(*filled) || !is_overwritten(*loop, static_cast<int64_t>(k), *rounds)) continue;
    explain(options, "allocate", c, "{} of {}: {} rounds write all of it", filled->name, loop->name, *rounds);
    state->set_operand(k, add_allocation(c, filled->shape, filled->name, state));
    changed = true;
  }
  return changed;
}

}  // namespace

bool allocate(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    for (Instruction* i : c->snapshot()) {
      if (i->is(Opcode::kWhile)) changed |= allocate_for(*c, i, options);
    }
  }
  return changed;
}

}  // namespace hlojit

// See look_ahead.h.
#include "codegen/kernels/look_ahead.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "codegen/kernels/stages.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit::codegen {
namespace {

// Operations of a pass along rows that memory has the time of. (Softmax of 4096x4096 floats, a Zen 4, one core and two:
// 8.9 and 4.5 ms, 4.9 and 2.6 so; 1024x16384 7.8 and 4.4, 5.9 and 3.5. Of fewer, a variance: 2.5 and 1.6 ms, 3.2 and
// 1.9; but where the last pass falls behind for what rows share, as layernorms of 4096x4096 do: 6.4 and 3.0, 5.1 and
// 2.5.) Strips of columns, of which each row is far from the next, no prefetcher brings: any pass may ask. (Variances
// of 1024x16384 down the columns 8.2 and 4.2 ms, 4.4 and 2.6 so; softmax 10.9 and 6.3, 8.2 and 5.1.)
constexpr int kFewestOperations = 12;

Coords element_of(const Coords& row, const KernelPlan& plan, const Stages& stages, VarSource& vars) {
  Coords along;
  for (int64_t n : plan.inner_sizes()) along.push_back(IndexExpr::var(vars.fresh(), n));
  return stages.joined(row, along);
}

// What these are is there: nothing that they read is walked to.
void take_as_made(AccessWalk& w, std::span<const Instruction* const> values) {
  for (const Instruction* v : values) w.stop_at(v, [](const Coords&) { return IndexExpr(0); });
}

// All that the first stages read of an element; results of reductions are there. (What is first read by the stage that
// asks comes while it is computed with.)
AccessWalk reads_of(size_t first, const KernelPlan& plan, const Stages& stages, const Coords& coords, VarSource& vars) {
  AccessWalk w(vars);
  for (const Stage& stage : plan.stages) take_as_made(w, stage.reduces);
  for (size_t k = 0; k < first; ++k) stages.walk(w, plan.stages[k], coords);
  return w;
}

// What this pass computes for each element: for another one of the row, that is, when there is all that the first
// takes.
int operations_of(size_t number, const KernelPlan& plan, const Stages& stages, const Coords& row, VarSource& vars) {
  AccessWalk w(vars);
  for (size_t k = 0; k <= number; ++k) {
    take_as_made(w, plan.stages[k].reduces);
    if (k < number) take_as_made(w, plan.stages[k].keeps);
  }
  stages.walk(w, plan.stages[number], element_of(row, plan, stages, vars));
  const int first = w.operations();
  stages.walk(w, plan.stages[number], element_of(row, plan, stages, vars));
  return w.operations() - first;
}

// Elements from what is read to what is asked for; 0: not known, or the same.
int64_t apart(const Access& a, const LookAhead& ahead, const ElementEmitter* e) {
  if (!a.parameter || a.random || element_bits(a.parameter->shape) < 8) return 0;
  if (!ahead.loop) return e->lane_count(a.address);
  const int64_t row = a.address.coefficient(*ahead.loop).value_or(0);
  return row != 0 && ahead.bytes > 0 ? ahead.bytes / a.bytes : row * ahead.step;
}

// The pass that computes most, of those behind the first that may ask: with operations enough, or any, or any that
// leaves memory alone.
enum class Askers { kWithOperations, kWithoutStores, kAny };
size_t busiest(const KernelPlan& plan, const Stages& stages, const Coords& row, Askers askers, VarSource& vars) {
  size_t stage = 0;
  int most = -1;
  for (size_t k = 1; k < plan.stages.size(); ++k) {
    if (!plan.stages[k].inner) continue;
    const int operations = operations_of(k, plan, stages, row, vars);
    const bool asks = operations >= kFewestOperations || askers == Askers::kAny ||
                      (askers == Askers::kWithoutStores && plan.stages[k].stores.empty());
    if (asks && operations > most) most = operations, stage = k;
  }
  return stage;
}

// Rows of up to a page a prefetcher brings along with those before them, and what is first read later keeps memory busy
// for two; of a single array they are close enough to stay in the first cache. None: not worth it.
std::optional<Cache> into_cache(const std::vector<int64_t>& bytes, bool all, const TargetInfo& target) {
  if (bytes.empty() || std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) > target.l2_bytes) return std::nullopt;
  const int64_t longest = std::ranges::max(bytes);
  if (all && bytes.size() == 1 && longest <= kPage) return Cache::kFirst;
  if (longest <= (all ? kPage : 2 * kPage)) return std::nullopt;
  return Cache::kSecond;
}

// An element, of what all rows read at the same places.
int64_t shared_bytes(const AccessWalk& reads, int row, int lane) {
  int64_t bytes = 0;
  for (const Access& a : reads.accesses()) bytes += is_shared_by_rows(a, row, lane) ? a.bytes : 0;
  return bytes;
}

// All rows read the same of some arrays, which are more than the first cache holds beside a row.
bool shares_much(const KernelPlan& plan, const Stages& stages, const LoopPiece& piece, const TargetInfo& target,
                 VarSource& vars) {
  const Coords element = element_of(piece.coords, plan, stages, vars);
  const AccessWalk reads = reads_of(plan.stages.size(), plan, stages, element, vars);
  const std::vector<int> along = stages.apart(element).second.back().variables();
  if (along.empty()) return false;
  return shared_bytes(reads, piece.loops.back().var, along[0]) * product(plan.inner_sizes()) > target.l1_bytes / 2;
}

// A map that reads along rows from memory, and beside them much that is the same for all. (Four values a channel,
// 8192x4096 floats, one core and two of a Zen 4: 12.9 and 6.6 ms, 10.6 and 5.6 so; two 10.4 and 5.2, 9.4 and 4.6. Rows
// alone gain nothing.)
std::optional<LookAhead> beside_shared(const KernelPlan& plan, const Stages& stages, const LoopPiece& piece,
                                       const TargetInfo& target, VarSource& vars) {
  if (!piece.has_lanes || piece.apart || piece.looked_up || piece.together > 1 || piece.loops.size() < 2)
    return std::nullopt;
  const LoopDigit &row = piece.loops[piece.loops.size() - 2], &lane = piece.loops.back();
  const AccessWalk reads = reads_of(1, plan, stages, piece.coords, vars);
  if (shared_bytes(reads, row.var, lane.var) * lane.extent <= target.l1_bytes / 2) return std::nullopt;
  return LookAhead{.reads = 1, .loop = row.var, .bytes = kPage / 2};
}

}  // namespace

std::optional<LookAhead> look_ahead(const KernelPlan& plan, const Stages& stages, const LoopPiece& piece,
                                    int64_t rows_of_turn, int64_t bytes, const TargetInfo& target, VarSource& vars) {
  const bool rows = plan.kind == KernelKind::kRows, columns = plan.kind == KernelKind::kColumns;
  // (Softmax of 1024x1024 floats, which a Granite Rapids has in its last level, one core and two: 347 and 181 us, 280
  // and 147 so, its logarithm of sums 261 and 99, 159 and 85. Down the columns 1.2 times as long.)
  if (bytes <= (rows ? target.near_bytes() : target.llc_bytes) || piece.loops.empty()) return std::nullopt;
  if (plan.kind == KernelKind::kNest) return beside_shared(plan, stages, piece, target, vars);
  if (!rows && !columns) return std::nullopt;
  LookAhead ahead;
  const Askers askers = columns                                          ? Askers::kAny
                        : shares_much(plan, stages, piece, target, vars) ? Askers::kWithoutStores
                                                                         : Askers::kWithOperations;
  ahead.stage = ahead.reads = busiest(plan, stages, piece.coords, askers, vars);
  if (ahead.stage == 0) return std::nullopt;
  if (columns) return ahead;
  const LoopDigit& loop = piece.loops.back();
  if (loop.extent < 2) return std::nullopt;
  ahead.loop = loop.var;
  if (loop.steps) ahead.step = loop.steps->step;
  const Coords element = element_of(piece.coords, plan, stages, vars);
  // Bytes of a turn, of each array.
  auto read_before = [&](size_t stage) {
    std::vector<int64_t> read;
    for (const Access& a : reads_of(stage, plan, stages, element, vars).accesses()) {
      if (apart(a, ahead, nullptr) != 0) read.push_back(a.bytes * product(plan.inner_sizes()) * rows_of_turn);
    }
    return read;
  };
  const std::vector<int64_t> asked = read_before(ahead.stage);
  const auto cache = into_cache(asked, read_before(plan.stages.size()).size() == asked.size(), target);
  if (!cache) return std::nullopt;
  ahead.cache = *cache;
  return ahead;
}

void bring_next(const LookAhead& ahead, const KernelPlan& plan, const Stages& stages, ElementEmitter& e, Scope& scope,
                const Coords& coords) {
  for (Access a : reads_of(ahead.reads, plan, stages, coords, e.vars()).accesses()) {
    const int64_t step = apart(a, ahead, &e);
    if (step == 0) continue;
    a.address = a.address + IndexExpr(step);
    e.prefetch(scope, a, ahead.cache);
  }
}

}  // namespace hlojit::codegen

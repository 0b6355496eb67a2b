// Where the values of a block of rows lie in scratch: a product's sums and the operands of later products for all
// rows, what one pass keeps for another for the row at hand. A value dies with the last stage that reads it,
// and the next one takes its memory: the probabilities of attention lie where its scores were.
#include <algorithm>

#include "compiler/ir/narrow.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/stages.h"
#include "layout/divide.h"

namespace hlojit {
namespace {

/// Tiles that computing `values` reads, seen from a stage: without those it makes itself.
void add_reads(const KernelGraph& g, std::vector<const Instruction*> open, size_t stage,
               std::vector<ScratchTile>& tiles) {
  InstructionSet seen;
  while (!open.empty()) {
    const Instruction* i = open.back();
    open.pop_back();
    if (!g.has(i) || !seen.insert(i)) continue;
    auto tile = std::ranges::find(tiles, i, &ScratchTile::value);
    if (tile != tiles.end() && tile->first < stage) {
      tile->last = std::max(tile->last, stage);
      continue;
    }
    if (i->is(Opcode::kReduce)) continue;  // its own stage has read what it needs
    open.insert(open.end(), i->operands().begin(), i->operands().end());
  }
}

int64_t element_bytes(const ScratchTile& t) { return dtype_bytes(kept_type(t)); }
int64_t tile_size(const ScratchTile& t, int64_t rows, int64_t together) {
  return round_up((t.whole ? rows : together) * t.stride * element_bytes(t), 64);
}

/// Of the block's `rows`, an even part.
int64_t rows_at_hand(const KernelPlan& plan, const TargetInfo& target, int64_t rows) {
  int64_t bytes = 0;
  for (const ScratchTile& t : plan.tiles) bytes += t.stride * element_bytes(t);
  int64_t together = std::clamp<int64_t>(rows_together(target, bytes), 1, rows);
  while (rows % together != 0) --together;
  return together;
}

/// Two tiles may overlap. Rows are gone through a few at a time, so that of two values for all rows a row of the
/// second may take the place of the same row of the first alone.
bool may_share(const ScratchTile& a, const ScratchTile& b) {
  if (a.first <= b.last && b.first <= a.last) return false;
  if (a.whole != b.whole) return false;
  return !a.whole || (a.offset == b.offset && a.stride == b.stride && element_bytes(a) == element_bytes(b));
}

}  // namespace

int64_t rows_together(const TargetInfo& target, int64_t bytes_of_row) {
  constexpr int64_t kMost = 8;  // of four each waits hardly longer, of sixteen hardly less
  return std::min(kMost, target.l1_bytes / 2 / std::max<int64_t>(1, bytes_of_row));
}

DType kept_type(const ScratchTile& t) {
  return t.value->is(Opcode::kDot) ? sum_type(*t.value) : working_type(t.value->shape.type);
}

void place_tiles(const KernelGraph& g, const TargetInfo& target, KernelPlan& plan) {
  plan.tiles.clear();
  plan.tile_bytes = 0;
  const int64_t row = product(plan.inner_sizes());
  int64_t rows = 1, wide = 0;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (stage.blocks) rows = stage.blocks->rows;
    if (stage.product && stage.stores.empty()) {
      // A cache line more than the row keeps rows from sharing few cache sets.
      int64_t line = 64 / dtype_bytes(sum_type(*stage.product));
      wide = std::max(wide, stage.blocks->columns + line);
      plan.tiles.push_back({stage.product, s, s, true, stage.blocks->columns + line});
    }
    for (const Instruction* v : stage.keeps) plan.tiles.push_back({v, s, s, false, row});
  }
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    std::vector<const Instruction*> wanted;
    for (const Instruction* r : stage.reduces) wanted.insert(wanted.end(), r->operands().begin(), r->operands().end());
    wanted.insert(wanted.end(), stage.keeps.begin(), stage.keeps.end());
    if (!stage.product) {
      for (size_t k : stage.stores) wanted.push_back(plan.roots[k]);
    } else {
      for (const Instruction* o : stage.product->operands()) {
        auto tile = std::ranges::find(plan.tiles, o, &ScratchTile::value);
        if (tile == plan.tiles.end()) continue;
        if (!tile->whole) tile->stride = std::max(wide, round_up(row, 16) + 16);
        tile->whole = true;
        tile->last = std::max(tile->last, s);
      }
    }
    add_reads(g, std::move(wanted), s, plan.tiles);
  }
  plan.rows_together = rows_at_hand(plan, target, rows);
  for (ScratchTile& t : plan.tiles) {
    int64_t bytes = tile_size(t, rows, plan.rows_together);
    // The lowest place that clashes with none before it.
    for (bool moved = true; moved;) {
      moved = false;
      for (const ScratchTile& o : plan.tiles) {
        if (&o == &t) break;
        int64_t size = tile_size(o, rows, plan.rows_together);
        if (t.offset >= o.offset + size || o.offset >= t.offset + bytes || may_share(t, o)) continue;
        t.offset = o.offset + size;
        moved = true;
      }
    }
    plan.tile_bytes = std::max(plan.tile_bytes, t.offset + bytes);
  }
}

}  // namespace hlojit

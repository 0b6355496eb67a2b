// See column_strips.h.
#include "codegen/kernels/column_strips.h"

#include <algorithm>

#include "codegen/nest/loop_split.h"
#include "compiler/analysis/reorder.h"
#include "compiler/ir/combining.h"
#include "layout/divide.h"

namespace hlojit::codegen {
namespace {

// Bytes of a sum; of rows of bytes the sums fill four times as much.
constexpr int64_t kFloat = 4;
constexpr int64_t kFewestTasks = 4;
// Of fewer all can be read side by side, by registers.
constexpr int64_t kFewestRows = 16;
// Native vectors that a strip is a multiple of.
constexpr int64_t kGrain = 4;
// Operations of an element, up to which it is memory that is waited for. (8192x4096 floats, one core of a Zen 4: sums
// of exp(-xy)x, 15 of them, 40 ms by registers, 14 by strips; of swish(x)y in bf16, 18, 35 and 43.)
constexpr int kMostOperations = 16;

// Rows of pieces read side by side, so that pages are. (4: 3.4 ms instead of 2.8; 16: 3.3.) Rows that follow each other
// come as they are asked for, one after the other. (Sums of the columns of 111848x300 floats, one core of a Zen 4: 8.6
// ms by eight that are prefetched, 5.4 by one; 33554x1000 5.2 and 5.1.)
constexpr int64_t kRows = 8;

bool in_bytes(const Shape& shape) { return is_pred(shape.type) || dtype_bits(shape.type) >= 8; }

// Its accumulators are elements of arrays, and may be combined in another order than that of the elements.
bool keeps_in_memory(const Instruction* r) {
  const bool bytes = r->shape.is_array() ? in_bytes(r->shape) : std::ranges::all_of(r->shape.elements, in_bytes);
  return bytes && (combining_op(*r->to_apply()) || selection_order(*r).allowed);
}

}  // namespace

// The reductions of a column at these coordinates.
Pass ColumnStrips::pass(const Coords& at) const {
  if (plan_.kind == KernelKind::kContraction) return pulled(plan_.hero, at);
  Pass pass;
  for (const Instruction* r : plan_.stages[0].reduces) pass.members.push_back({r, at});
  pass.sizes = plan_.inner_sizes();
  return pass;
}

// A stage that adds up, and one that stores what comes of it.
bool ColumnStrips::only_sums() const {
  const std::vector<Stage>& stages = plan_.stages;
  const DType type = plan_.hero->shape.type;
  if (plan_.kind == KernelKind::kContraction)
    return stages.size() == 1 && plan_.roots[0] == plan_.hero && dtype_bits(type) >= 8 && !is_complex(type);
  return plan_.kind == KernelKind::kColumns && stages.size() == 2 && !stages[1].inner && stages[0].keeps.empty() &&
         stages[0].stores.empty() && std::ranges::all_of(stages[0].reduces, keeps_in_memory);
}

// Native vectors that a step adds to. Eight rows of each are written out, which of a few operations already takes twice
// as long to compile as by registers, and no less to run. (Positions of the largest: 10 ms, 22 by four vectors;
// conditions 25 and 41.)
int ColumnStrips::vectors_of_step(const StripRows& rows) const {
  constexpr int kFewOperations = 8, kMost = 4;
  const Shape& sum = plan_.hero->shape;
  return rows.operations <= kFewOperations && sum.is_array() && !is_pred(sum.type) ? kMost : 1;
}

// What is in the last cache comes as fast by registers, unless half a page of each row is read at a time. (4096x1024
// floats in four strips 1.1 to 1.3 of the time, 16384x1024 0.7 to 0.86; 10485x600 end to end 0.8 on one core, 1.08 on
// two.) So do columns that registers hold all sums of, or all but a few: then they read from end to end, too.
std::optional<ColumnStrips::Cut> ColumnStrips::cut(const LoopPiece& piece, int vector_bytes, int wide) const {
  if (!only_sums() || !piece.has_lanes || piece.apart || piece.looked_up || piece.unroll.var >= 0) return std::nullopt;
  const LoopDigit lane = piece.loops.back();
  auto rows = strip_rows(pass(piece.coords), lane.var, vars_);
  if (!rows || (kFloat + rows->bytes) * lane.extent <= 2 * wide * vector_bytes) return std::nullopt;
  if (rows->operations > kMostOperations || rows->piece.loops[0].extent < kFewestRows) return std::nullopt;
  int64_t outer = 1;
  for (size_t k = 0; k + 1 < piece.loops.size(); ++k) outer *= piece.loops[k].extent;
  Cut cut{piece, 0, std::move(*rows)};
  const int64_t total = outer * cut.rows.step * cut.rows.piece.loops[0].extent;
  const int64_t strips = strips_of(cut.rows, lane.extent, outer);
  cut.tasks = cut.piece.loops.size() - 1;
  if (strips > 1) cut.tasks = split_for_chunks(cut.piece, outer * strips, kGrain * vector_bytes, vars_, 1);
  if (cut.tasks + 1 != cut.piece.loops.size() || cut.piece.loops.back().clip) return std::nullopt;
  const int64_t width = cut.piece.loops.back().extent * cut.rows.bytes;
  const bool far = cut.rows.step >= kPage && width >= kPage / 2 && total >= 4 * target_.l2_bytes;
  if (!far && total <= target_.llc_bytes) return std::nullopt;
  cut.from_memory = total > target_.llc_bytes / 2;
  cut.end_to_end = width == cut.rows.step;
  return cut;
}

// A strip takes a page of each row, or all of rows that follow each other if there are enough of them for all tasks and
// the sums fit in the first cache. (A vector times 1152x13824 halfs, one core of a Zen 4: 2.7 ms by strips of a
// kilobyte, 0.8 by four.)
int64_t ColumnStrips::strips_of(const StripRows& rows, int64_t columns, int64_t outer) const {
  const bool whole =
      outer >= kFewestTasks && columns * rows.bytes == rows.step && kFloat * columns <= target_.l1_bytes / 2;
  return whole ? 1 : round_up(ceil_div(rows.bytes * columns, kPage), ceil_div(kFewestTasks, outer));
}

int64_t ColumnStrips::emit(KernelBuilder& kernel, const Cut& cut, int native) const {
  ElementEmitter& e = kernel.emitter();
  // Without overlap: no column may be counted twice.
  Strip strip{cut.piece,
              lane_widths(cut.piece, vectors_of_step(cut.rows) * native, native, false),
              cut.rows,
              cut.end_to_end && cut.from_memory ? 1 : kRows,
              cut.from_memory && !cut.end_to_end,
              kernel.scratch(),
              {},
              {}};
  strip.pass = [&](const Coords& at) { return pass(at); };
  strip.with_the_sums = [&](Scope& s, const Coords& at) {
    stages_.run(kernel, s, plan_.stages.size() - 1, at, {}, false);
  };
  return emit_strip(e, kernel.root(), strip);
}

}  // namespace hlojit::codegen

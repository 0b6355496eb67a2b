// See row_block.h.
#include "codegen/kernels/row_block.h"

#include <algorithm>

#include "compiler/ir/narrow.h"
#include "compiler/plan/stages.h"
#include "layout/divide.h"
#include "layout/lists.h"

namespace hlojit::codegen {
namespace {

// What the stages of a row read, keep and write.
int64_t bytes_of_row(const KernelPlan& plan, int64_t bytes) {
  int64_t kept = 0;
  for (const Stage& s : plan.stages) {
    for (const Instruction* v : s.keeps) kept += product(plan.inner_sizes()) * dtype_bytes(working_type(v->shape.type));
  }
  return std::max<int64_t>(1, bytes / std::max<int64_t>(1, product(plan.outer_sizes())) + kept);
}

}  // namespace

// Where there are several passes over each, and blocks enough for all tasks. Pages from memory come while the one
// before them is computed with. (Layernorm of 32768x512 floats, a Zen 4, one core and two: 4.6 and 2.2 ms by blocks of
// four rows, 3.3 and 1.8 by rows; 16384x1024 4.1 and 2.2, 3.3 and 1.8.) From a last level that is far only long rows
// do. (A Granite Rapids, softmax of 1021x1019 floats 309 and 160 us, 285 and 151 so; but bf16, normalised, 359 and 178,
// 410 and 204.)
int64_t rows_of_block(const KernelPlan& plan, const TargetInfo& target, const LoopPiece& piece, int64_t tasks,
                      int64_t bytes) {
  const auto passes = std::ranges::count_if(plan.stages, [](const Stage& s) { return s.inner; });
  if (plan.kind != KernelKind::kRows || passes < 2 || piece.loops.empty()) return 1;
  const int64_t row = bytes_of_row(plan, bytes);
  constexpr int64_t kLongRow = 10 << 10;
  if (row >= kPage && bytes > target.llc_bytes) return 1;
  if (row >= kLongRow && bytes > target.near_bytes()) return 1;
  return std::min(rows_together(target, row), piece.loops.back().extent / tasks);
}

bool RowBlock::cut(LoopPiece& piece, int64_t most, VarSource& vars) {
  if (most < 2 || piece.loops.empty() || piece.unroll.var >= 0) return false;
  const LoopDigit all = piece.loops.back();
  if (all.steps || all.extent < 2) return false;
  const int64_t blocks = ceil_div(all.extent, most);
  rows_ = ceil_div(all.extent, blocks);
  // A block that ends before the loop does is found by where the loop ends.
  const bool even = all.extent % rows_ == 0;
  if (all.clip && (!even || all.clip->stride != 1 || all.clip->factor != 1)) return rows_ = 1, false;
  LoopDigit block{vars.fresh(), blocks, {}, {}}, in_block{vars.fresh(), rows_, {}, {}};
  const IndexExpr first = IndexExpr::var(block.var, blocks) * rows_, row = IndexExpr::var(in_block.var, rows_);
  if (all.clip) {
    block.clip = Clip{all.clip->so_far, all.clip->limit, rows_};
    in_block.clip = Clip{all.clip->so_far + first, all.clip->limit};
  } else if (!even) {
    in_block.clip = Clip{first, all.extent};
  }
  const IndexExpr::Substitution at[] = {{all.var, first + row}};
  piece.coords = substitute(piece.coords, at);
  piece.loops.back() = block;
  piece.loops.push_back(in_block);
  return true;
}

void RowBlock::take(LoopPiece& piece) {
  block_.loops = {piece.loops.back()};
  block_.operations = piece.operations;
  piece.loops.pop_back();
  const auto& clip = block_.loops[0].clip;
  // The block's loop asks for their variables.
  for (LoopDigit& l : piece.loops) {
    if (clip && clip->so_far.depends_on(l.var)) l.written = Written::kAsLoop;
  }
}

void RowBlock::place_results(Scratch& scratch) {
  results_.clear();
  if (rows_ == 1) return;
  for (const Stage& stage : plan_.stages) {
    for (const Instruction* r : stage.reduces) {
      for (const Shape* shape : leaves(r->shape)) {
        BufferRef buffer;
        buffer.pointer = scratch.take(rows_ * dtype_bytes(working_type(shape->type)));
        results_[r].push_back({buffer, shape->type});
      }
    }
  }
}

void RowBlock::run(KernelBuilder& kernel, Scope& scope, const Coords& at, size_t first, size_t end, bool overlap) {
  ElementEmitter& e = kernel.emitter();
  block_.coords = at;
  block_.coords.push_back(rows_ > 1 ? IndexExpr::var(block_.loops[0].var, rows_) : IndexExpr(0));
  for (size_t k = first; k < end; ++k) {
    auto stage = [&](Scope& s, Coords row, const Lanes&, const ElementEmitter::Carried&) {
      row_ = row.back();
      row.pop_back();
      for (size_t before = first; before < k; ++before) load_results(e, s, plan_.stages[before], row);
      stages_.run(kernel, s, k, row, {}, overlap);
      store_results(e, s, plan_.stages[k]);
      return ElementEmitter::Carried{};
    };
    e.loops(scope, block_, 0, {{1}}, {}, stage);
  }
}

void RowBlock::load_results(ElementEmitter& e, Scope& scope, const Stage& stage, const Coords& row) {
  if (rows_ == 1) return;  // they are known in its scope
  for (const Instruction* r : stage.reduces) {
    std::vector<Value> values;
    for (const OfRows& v : results_.at(r)) {
      values.push_back(e.load(scope, v.buffer, working_type(v.type), row_));
      values.back().type = v.type;
    }
    scope.reductions[r].emplace_back(row, values);
  }
}

void RowBlock::store_results(ElementEmitter& e, Scope& scope, const Stage& stage) {
  if (rows_ == 1) return;
  for (const Instruction* r : stage.reduces) {
    const std::vector<Value>& values = scope.reductions.at(r).back().second;
    for (size_t k = 0; k < values.size(); ++k) {
      Value value = values[k];
      value.type = working_type(value.type);
      e.store(scope, results_.at(r)[k].buffer, row_, value);
    }
  }
}

}  // namespace hlojit::codegen

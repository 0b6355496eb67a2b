// See row_block.h.
#include "codegen/kernels/row_block.h"

#include <algorithm>

#include "compiler/ir/narrow.h"
#include "layout/divide.h"

namespace hlojit::codegen {

int64_t RowBlock::most_rows(const TargetInfo& target, int64_t bytes_of_row) {
  constexpr int64_t kMost = 8;  // four rows wait hardly longer, sixteen hardly less
  return std::min(kMost, target.l1_bytes / 2 / std::max<int64_t>(1, bytes_of_row));
}

bool RowBlock::cut(LoopPiece& piece, int64_t most, VarSource& vars) {
  if (most < 2 || piece.loops.empty() || piece.unroll.var >= 0) return false;
  const LoopDigit all = piece.loops.back();
  if (all.clip || all.steps || all.extent < 2) return false;
  const int64_t blocks = ceil_div(all.extent, most);
  rows_ = ceil_div(all.extent, blocks);
  LoopDigit block{vars.fresh(), blocks, {}, {}}, in_block{vars.fresh(), rows_, {}, {}};
  const IndexExpr first = IndexExpr::var(block.var, blocks) * rows_, row = IndexExpr::var(in_block.var, rows_);
  if (all.extent % rows_ != 0) in_block.clip = Clip{first, all.extent};
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
  for (LoopDigit& l : piece.loops) l.asked_for = clip && clip->so_far.depends_on(l.var);
}

void RowBlock::place_results(Scratch& scratch) {
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

void RowBlock::run(KernelBuilder& kernel, Scope& scope, const Coords& at, bool overlap) {
  ElementEmitter& e = kernel.emitter();
  block_.coords = at;
  block_.coords.push_back(IndexExpr::var(block_.loops[0].var, rows_));
  for (size_t k = 0; k < plan_.stages.size(); ++k) {
    auto stage = [&](Scope& s, Coords row, const Lanes&, const ElementEmitter::Carried&) {
      row_ = row.back();
      row.pop_back();
      for (size_t before = 0; before < k; ++before) load_results(e, s, plan_.stages[before], row);
      stages_.run(kernel, s, k, row, {}, overlap);
      store_results(e, s, plan_.stages[k]);
      return ElementEmitter::Carried{};
    };
    e.loops(scope, block_, 0, {{1}, false}, {}, stage);
  }
}

void RowBlock::load_results(ElementEmitter& e, Scope& scope, const Stage& stage, const Coords& row) {
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

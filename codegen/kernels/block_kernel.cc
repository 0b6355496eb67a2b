// A kernel that goes through its stages block by block: a task has a block of rows of one batch (and, where
// the product is all there is, of columns), and runs the stages in order over all of it. Products leave their
// sums in scratch, row stages between them go through the block's rows one by one, and what they keep for all
// rows is the left operand of the next product. The scores of attention are never in memory.
#include "codegen/kernels/block_kernel.h"

#include <algorithm>

#include "codegen/kernels/contraction.h"
#include "codegen/kernels/kept_values.h"
#include "codegen/kernels/row_block.h"
#include "codegen/kernels/stages.h"
#include "codegen/number/elementwise.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/stages.h"
#include "layout/divide.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

class BlockKernel {
 public:
  BlockKernel(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan, const Surroundings& around,
              const EmitOptions& options)
      : plan_(plan),
        around_(around),
        first_(*std::ranges::find_if(plan.stages, [](const Stage& s) { return s.product != nullptr; })),
        product_(matrix_product(plan, first_, options.vector_size())),
        kernel_(module, fusion, plan, around, options, vars_, ""),
        scratch_(kernel_) {}

  KernelFunction run(int64_t cost_ns) {
    int64_t chunks = open_grid();
    if (plan_.by_blocks()) place_tiles();
    for (size_t s = 0; s < plan_.stages.size();) {
      if (plan_.stages[s].product) {
        kernel_.emitter().begin_stage(s);
        emit_product(kernel_, plan_, s, site(plan_.stages[s]), scratch_);
        ++s;
      } else {
        s = row_stages(s);
      }
    }
    // A single block of rows is shared out by columns.
    const bool in_order = chunks == 1 || product_.batches() > 1 || product_.m > first_.blocks->rows;
    return {kernel_.finish(), {chunks, scratch_.bytes(), cost_ns, in_order}};
  }

 private:
  // Chunk number -> (batch dims, block of rows, block of columns).
  int64_t open_grid() {
    const Blocks& blocks = *first_.blocks;
    LoopPiece grid;
    auto digit = [&](int64_t extent) {
      grid.loops.push_back({vars_.fresh(), extent, std::nullopt, std::nullopt});
      return IndexExpr::var(grid.loops.back().var, extent);
    };
    for (const Factor& f : product_.batch) batch_.push_back(digit(f.size));
    m0_ = digit(ceil_div(product_.m, blocks.rows)) * blocks.rows;
    if (!plan_.by_blocks()) n0_ = digit(ceil_div(product_.n, blocks.columns)) * blocks.columns;
    return kernel_.bind_chunks(grid, grid.loops.size());
  }

  // Pointers of the values that stages leave for each other, and how the others come by them.
  void place_tiles() {
    ElementEmitter& e = kernel_.emitter();
    llvm::Value* base = scratch_.take(plan_.tile_bytes);
    llvm::IRBuilder<>& b = kernel_.root().builder;
    for (const ScratchTile& t : plan_.tiles) {
      BufferRef buffer;
      buffer.pointer = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, static_cast<uint64_t>(t.offset));
      pointers_.push_back(buffer.pointer);
      auto address = [this, &t](const Coords& coords) {
        IndexExpr along = linearize(plan_.inner_sizes(), stages_.apart(coords).second);
        return ((t.whole ? first_row_ : IndexExpr(0)) + rows_.row()) * t.stride + along;
      };
      bool sums = plan_.stages[t.first].product != nullptr;
      if (sums) {
        DType type = kept_type(t);
        e.provide(t.value, [&t, buffer, address, type](ElementEmitter& emitter, Scope& s, const Coords& coords) {
          return convert(s.builder, emitter.number(), emitter.load(s, buffer, type, address(coords)),
                         t.value->shape.type);
        });
        continue;
      }
      e.place(t.value, {buffer, t.first, true, kept_type(t), address});
    }
    place_reread_results(kernel_, plan_);
  }

  ProductSite site(const Stage& stage) {
    ProductSite site{batch_, m0_, n0_, std::nullopt, std::nullopt, around_.in_place()};
    if (!plan_.by_blocks()) return site;
    int taken = taken_operand(plan_, stage.product);
    for (size_t k = 0; k < plan_.tiles.size(); ++k) {
      const ScratchTile& t = plan_.tiles[k];
      RowTile at{pointers_[k], t.stride};
      if (t.value == stage.product) site.sums = at;
      if (taken >= 0 && t.value == stage.product->operand(static_cast<size_t>(taken))) site.left = at;
    }
    return site;
  }

  // Stages from `first` to the next product, a few rows at a time. Returns the stage after them.
  size_t row_stages(size_t first) {
    constexpr int kMuch = 1 << 20;  // is done with each row
    size_t end = first;
    while (end < plan_.stages.size() && !plan_.stages[end].product) ++end;
    LoopDigit row{vars_.fresh(), first_.blocks->rows, Clip{m0_, product_.m}, {}};
    const IndexExpr number = IndexExpr::var(row.var, row.extent);
    LoopPiece piece;
    piece.loops = {row};
    piece.coords = outer_at(m0_ + number);
    piece.operations = kMuch;
    first_row_ = number;
    if (rows_.cut(piece, plan_.rows_together, vars_)) {
      first_row_ = IndexExpr::var(piece.loops[0].var, piece.loops[0].extent) * rows_.count();
      rows_.take(piece);
    }
    rows_.place_results(scratch_);
    kernel_.emitter().loops(kernel_.root(), piece, 0, {{1}}, {},
                            [&](Scope& s, const Coords& at, const Lanes&, const ElementEmitter::Carried&) {
                              rows_.run(kernel_, s, at, first, end, !around_.in_place());
                              return ElementEmitter::Carried{};
                            });
    return end;
  }

  // Coordinates along the domain's outer dims, of this row of the batch.
  Coords outer_at(const IndexExpr& row) const {
    std::vector<int64_t> batch = batch_dims(plan_);
    Ints sizes;
    for (size_t d = 0; d < plan_.domain.size(); ++d) {
      auto dim = static_cast<int64_t>(d);
      if (!std::ranges::binary_search(plan_.inner, dim) && !std::ranges::binary_search(batch, dim))
        sizes.push_back(plan_.domain[d]);
    }
    Coords rows = delinearize(sizes, row), all;
    size_t b = 0, r = 0;
    for (size_t d = 0; d < plan_.domain.size(); ++d) {
      auto dim = static_cast<int64_t>(d);
      if (std::ranges::binary_search(plan_.inner, dim)) continue;
      all.push_back(std::ranges::binary_search(batch, dim) ? batch_[b++] : rows[r++]);
    }
    return all;
  }

  const KernelPlan& plan_;
  const Surroundings& around_;
  const Stage& first_;  // product
  MatrixProduct product_;
  VarSource vars_;
  Stages stages_{plan_, vars_};
  KernelBuilder kernel_;
  Scratch scratch_;
  Coords batch_;                   // of this task
  IndexExpr m0_{0}, n0_{0};        // where its block begins
  RowBlock rows_{plan_, stages_};  // that are at hand
  IndexExpr first_row_{0};         // of these, in the block
  std::vector<llvm::Value*> pointers_;
};

}  // namespace

KernelFunction emit_block_kernel(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan,
                                 const Surroundings& around, const EmitOptions& options, int64_t cost_ns) {
  return BlockKernel(module, fusion, plan, around, options).run(cost_ns);
}

}  // namespace hlojit::codegen

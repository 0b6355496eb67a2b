// The epilogue of a product: each tile of sums on its way to the results, through what follows the product
// elementwise. A nest over the tile's rows and columns that asks for the results' elements; what it finds at the
// product itself is the sum.
#pragma once

#include <functional>

#include "codegen/kernels/function.h"
#include "codegen/kernels/packing.h"
#include "codegen/kernels/scratch.h"
#include "compiler/plan/kernel.h"

namespace hlojit::codegen {

class Epilogue {
 public:
  /// `sums`: where tiles of them lie. `once`: no result may be stored twice.
  Epilogue(KernelBuilder& kernel, VarSource& vars, const KernelPlan& plan, const Stage& stage, ProductReads& reads,
           const RowTile& sums, bool once);

  /// Stores the results of the tile that begins at a row and a column of the product, and `first` elements into the
  /// sums. `columns`: of all panels (ProductPlaces).
  void tile(Scope& scope, const IndexExpr& row, const IndexExpr& column, const IndexExpr& first, int64_t columns);

 private:
  struct Tile {
    IndexExpr row, column;  // of the product, where it begins
    IndexExpr sums;         // where its sums begin
    llvm::Value* rows;      // that are the result's
  };
  using ColumnsAt = std::function<Coords(const IndexExpr&)>;  // free coordinates of a column of a box

  /// The tile's columns run by run: what of a run overhangs is no result's.
  void run_boxes(Scope& scope, const Tile& t);
  /// The tile's rows, of `columns` from number `first` of the tile on. `whole`: all columns are the result's.
  void box(Scope& outer, const Tile& t, int64_t columns, const IndexExpr& first, bool whole,
           const ColumnsAt& columns_at);
  /// What an element of the results takes, but for the sum's way to the dot's type.
  int operations(const Coords& at);
  /// Neighbouring columns do not lie side by side in some result: several rows at once may be stored as vectors.
  bool rows_alternate() const;
  /// A tile whose rows alternate in groups, group by group: whole ones, the last tile's too.
  void groups(Scope& outer, const Tile& t, int64_t columns, const IndexExpr& first, const ColumnsAt& columns_at);
  /// Of a tile that has all its `height` rows: loops by where the results lie, blocks transposed in registers.
  void rows_together(Scope& outer, const Tile& t, int64_t height, int64_t columns, const IndexExpr& first,
                     const ColumnsAt& columns_at);
  void store_block(Scope& s, const Coords& c, const Unroll& unroll, const std::function<Coords(const Coords&)>& at,
                   const std::function<IndexExpr(const Coords&)>& sum_at);
  /// Row by row.
  void rows(Scope& outer, const Tile& t, int64_t columns, const IndexExpr& first, bool whole,
            const ColumnsAt& columns_at);
  /// What is stored of one element (a vector of them) at these coordinates; only where they are the result's,
  /// unless all are.
  void store_results(Scope& s, const Coords& at, int lanes, bool all);
  /// Whether coordinates are the result's: null if they always are.
  llvm::Value* in_result(Scope& scope, const Coords& at);

  KernelBuilder& kernel_;
  ElementEmitter& e_;
  VarSource& vars_;
  const KernelPlan& plan_;
  const Stage& stage_;
  const Instruction& dot_;
  const MatrixProduct& product_;
  ProductReads& reads_;
  const RowTile sums_;
  const bool once_;
  const int lanes_;
  IndexExpr sum_at_{0};  // the sum that is asked for
};

}  // namespace hlojit::codegen

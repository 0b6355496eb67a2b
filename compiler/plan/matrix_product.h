// A dot or a convolution as a matrix product: what its rows, its columns and its depth are, whatever its attributes
// say.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/analysis/access.h"
#include "compiler/ir/module.h"
#include "layout/index_expr.h"
#include "layout/lists.h"

namespace hlojit {

/// Part of a dim of the result: index * step is what it adds to the dim's coordinate.
struct Factor {
  int64_t size = 1;
  size_t dim = 0;
  int64_t step = 1;
};

/// A dot or convolution as a matrix product a batch: which parts of the result's dims are batch, rows and
/// columns of it, and what its depth is made of.
///
///   dot                  batch dims | free dims of the left | free dims of the right | contracting dims
///   b01f,01io->b01f      groups     | batch, spatial        | features of a group    | window, input features
///   with lhs_dilate=2x2  2 x 2      | every second position | features               | every second of the window
struct MatrixProduct {
  std::vector<Factor> batch, lhs_free, rhs_free;  ///< outermost first
  Ints contracting;                               ///< the reduction variables' sizes
  bool swapped = false;         ///< rows are the right operand's: the result's minor dim is the left's
  int64_t m = 1, n = 1, k = 1;  ///< products of the rows', columns' and depth's sizes
  int64_t rows_beside = 1;      ///< so many rows alternate in the result's memory: two of bf16 in T(8,128)(2,1)
  int64_t rows_of_column = 1;   ///< that a column is read for: m, and what single_product makes batches of
  /// 0: where an element of the left operand lies is one affine function of its row. Else (a window's
  /// positions, lines of an image): rows are looked up in runs of so many that share all but the last factor's
  /// index, and `m` counts lines filled up to whole runs.
  int64_t run = 0;

  /// `result`: shape in which the elements leave the kernel; lanes go along its most minor dim. `lanes`: of
  /// vectors of the summed type.
  MatrixProduct(const Instruction& contraction, const Shape& result, int64_t lanes);
  /// Indices of the left (or right) operand's factors at a position along it.
  std::vector<IndexExpr> split(bool lhs, const IndexExpr& position) const;
  /// Coordinates of the result. May lie outside of it (beyond a line's end) where `overhangs`.
  std::vector<IndexExpr> join(std::span<const IndexExpr> batch_at, std::span<const IndexExpr> lhs_at,
                              std::span<const IndexExpr> rhs_at) const;
  bool overhangs() const { return overhangs_; }
  /// Numbers of the contraction's operands that hold the rows and the columns.
  size_t rows_operand() const { return swapped ? 1 : 0; }
  size_t columns_operand() const { return swapped ? 0 : 1; }
  /// How many products, and how many of them are not phases of one.
  int64_t batches() const;
  int64_t groups() const { return batches() / phases_; }

 private:
  void choose_run(const Instruction& convolution, int64_t lanes);

  bool overhangs_ = false;
  int64_t phases_ = 1;
  size_t rank_ = 0;
};

/// The product of a kernel that makes nothing else of rows. Of a dot, outer dims of the rows (or columns) become
/// batches where only the inner ones, and enough of them, lie at a single stride: as of x[b,k,s] W[k,n] summed over k.
/// Packing would take each element's place apart. (448x11x112 by 11x16 took 390 us, 131 so, 8x64x3136 by 64x128 0.6 of
/// it.)
MatrixProduct single_product(const Instruction& contraction, const Shape& result, int64_t lanes);

/// Type that a contraction's products are summed in.
DType sum_type(const Instruction& contraction);
/// Elements of the left operand that are neighbours in memory differ in the depth, not in the row.
bool left_depth_is_minor(const Instruction& contraction, const MatrixProduct& product);
/// Elements from one row (or column) of an operand to the next, and from one position of the depth to the next.
struct OperandStrides {
  int64_t along = 0, depth = 0;
};
/// Those of an operand whose elements lie at an affine function of both, without padding between; null for others.
/// `vars`: makers of the variables in `batch`, the coordinates of the batch.
std::optional<OperandStrides> operand_strides(const Instruction& contraction, const MatrixProduct& product,
                                              size_t operand, std::span<const IndexExpr> batch, VarSource& vars);
/// The same for all batches.
std::optional<OperandStrides> operand_strides(const Instruction& contraction, const MatrixProduct& product,
                                              size_t operand);
/// How many neighbours of the depth are neighbours in the rows' operand too, wherever a row's window lies, and all in
/// its padding or none: a product of the innermost contracted dims.
int64_t depth_stretch(const Instruction& contraction, const MatrixProduct& product);
/// How many neighbouring rows are neighbours in the rows' operand too, whatever the depth, and all in its padding or
/// none: the innermost of the rows' factors (features, of a gradient of weights), or 1.
int64_t row_stretch(const Instruction& contraction, const MatrixProduct& product);
/// Elements from one row to the next in the rows' operand, whatever the depth, none of them in padding, where rows are
/// taken so many at a time (a part of the innermost factor); null if that differs.
std::optional<int64_t> row_stride_in_line(const Instruction& contraction, const MatrixProduct& product, int64_t rows);
/// Whether so many rows are whole numbers of a register tile's, of any machine's: one with fewer registers may take
/// tiles of two rows, which is still better than to pack them (RowsInPlace::together in operands_in_place.h).
bool shares_out_in_tiles(int64_t rows);
/// Lanes of a vector of the summed type.
int64_t sum_lanes(const Instruction& contraction, int64_t vector_bytes);

}  // namespace hlojit

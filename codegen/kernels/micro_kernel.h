// The register tile of a contraction: C[rows x vectors*lanes] += A[rows x k] * B[k x vectors*lanes].
//
// A is read by broadcast, B by vectors, both at constant strides, so that an untiled operand needs no packing
// at all; packed, B is a panel of k rows of vectors*lanes elements. Or A's elements are found by pointers: RowsForm.
// Accumulators stay in registers for the whole k loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/number/memory.h"
#include "codegen/number/multiply_add.h"
#include "codegen/options.h"
#include "layout/dtype.h"

namespace llvm {
class Function;
class Module;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// How A lies.
struct RowsForm {
  int64_t row_stride = 0;  ///< in elements
  int64_t k_stride = 1;
  /// > 0: A is a table of pointers, and the strides are between these. Each leads to a row's elements at so many steps
  /// of k, which are neighbours; k is a multiple unless it `ends_within` one. Where rows share pointers (a row stride
  /// of 0), each leads to the elements of all the rows at one step.
  int64_t stretch = 0;
  /// > 0: of a register of rows a pointer leads to the first, the others follow at this stride.
  int64_t apart = 0;
  bool ends_within = false;  ///< k is no multiple: of the last stretch so many steps are left out
  bool skips = false;        ///< k says which stretches there are, a bit each; the others are zeros
  bool shares_pointers() const { return stretch > 0 && row_stride == 0; }
  bool operator==(const RowsForm&) const = default;
};

/// A's part in a call, `a`, `from` and, where it skips some, `k`: a tile's rows.
struct TileRows {
  RowsForm form;
  llvm::Value *a = nullptr, *from = nullptr, *stretches = nullptr;
};

struct MicroKernelShape {
  DType type = DType::kF32;  ///< of C, and of A and B but for what multiply_add says
  int rows = 6;
  int vectors = 2;
  int lanes = 8;
  int last_lanes = 8;  ///< of each row's last vector of B; no element behind them is read
  /// That vector and its sums are half as wide: wide ones take some machines two turns.
  bool last_halved() const { return !along_depth && lanes > 1 && 2 * last_lanes <= lanes; }
  /// It is not cut short, which takes a mask, but begins that much sooner: what it has in common with the vector before
  /// it is computed twice.
  bool moves_back = false;
  /// Where a row's vector v begins.
  int64_t start(int v) const {
    const bool back = moves_back && v == vectors - 1;
    return int64_t{v} * lanes - (back ? (last_halved() ? lanes / 2 : lanes) - last_lanes : 0);
  }
  int stored_lanes = 0;       ///< > 0: no more sums of that vector are stored
  RowsForm left;              ///< of A
  int64_t panel_stride = 16;  ///< of B: elements from one k to the next; vectors x lanes where it is packed
  int unroll = 1;             ///< steps of k a turn of the loop; k is a multiple of it
  /// An element of A and B is a lane of the terms that are packed for it; k, strides and lanes count those.
  MultiplyAdd multiply_add = MultiplyAdd::kOne;
  bool accumulates = false;  ///< may be called with `accumulate`
  bool takes_off = false;    ///< `bias` is taken off each row
  /// Into which cache what comes next of A is prefetched. Where its rows follow each other without gaps, that is the
  /// next tile, where there are pointers, what the next ones lead to.
  std::optional<Cache> looks_ahead = std::nullopt;
  int64_t looks_down = 0;  ///< > 0: B's rows are prefetched so many steps of k ahead (along depth: its next columns)
  /// Lanes go along k, of which both A and B have neighbours in memory: panel_stride leads to the next column, of which
  /// there are vectors x lanes, or as many as stored_lanes says, and last_lanes is what the last slice of k leaves of a
  /// vector.
  bool along_depth = false;
  /// What a turn of the loop, one step of k, moves left.k_stride and panel_stride on by are arguments, and both are 0
  /// here, so that products whose tiles differ in these alone share one function. (A train step had 19 of them, and has
  /// 7.) Of the plain tile only; to ask for it is left to share_strides.
  bool strides_are_arguments = false;
  /// So is left.row_stride, where there are registers for each row's place.
  bool row_stride_is_argument() const { return strides_are_arguments && rows <= 9; }
  bool operator==(const MicroKernelShape&) const = default;
};

/// Makes them arguments where they may be and a tile has many steps of k. (With them a product of 7 steps took 1.06 of
/// the time, attention's of 20 1.015.)
void share_strides(MicroKernelShape& shape, int64_t steps);

/// Its function's name: says all of the shape.
std::string micro_kernel_name(const MicroKernelShape& shape);
/// void f(ptr a, ptr b, ptr c, i64 c_stride, i64 k, i1 accumulate, ptr bias, i64 from, i64 k_stride, i64 panel_stride,
/// i64 row_stride): c is a tile of rows x columns, c_stride elements from one row to the next; added to if
/// `accumulate`, else overwritten. `bias` holds a row, or is null. Of pointers, the elements number `from` and on are
/// meant. Emitted once a module for each shape, or declared and listed in options.micro_kernels.
llvm::Function* micro_kernel(llvm::Module& module, MicroKernelShape shape, const EmitOptions& options);

}  // namespace hlojit::codegen

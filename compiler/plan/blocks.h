// How a dot is cut up: the register tile of its micro-kernel, the blocks of its grid, the slices of its
// contracted dims. Shapes and the target alone decide, so that bits and plans never depend on a run.
//
//   C[m,n] += A[m,k] B[k,n]:  a task computes a block of `rows` x `columns` of C, slice of `depth` by slice
//   of `depth`; in a slice it goes through tiles of tile_rows x tile_columns, whose sums stay in registers
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/module.h"
#include "compiler/plan/target_info.h"

namespace hlojit {

/// A dot as a matrix product a batch: which dims are rows, columns and depth of it.
struct MatrixProduct {
  Ints batch, lhs_free, rhs_free, contracting;  ///< sizes
  bool swapped = false;                         ///< rows are the right operand's: the result's minor dim is the left's
  int64_t m = 1, n = 1, k = 1;                  ///< products of the rows', columns' and depth's sizes

  /// `result`: shape in which the dot's elements leave the kernel; lanes go along its most minor dim.
  MatrixProduct(const Instruction& dot, const Shape& result);
  /// Coordinates of the dot's result.
  template <class Expr>
  std::vector<Expr> join(const std::vector<Expr>& batch, const std::vector<Expr>& lhs,
                         const std::vector<Expr>& rhs) const {
    std::vector<Expr> c = batch;
    c.insert(c.end(), lhs.begin(), lhs.end());
    c.insert(c.end(), rhs.begin(), rhs.end());
    return c;
  }
};

/// Type that a dot's products are summed in.
DType sum_type(const Instruction& dot);

struct Blocks {
  int64_t tile_rows = 6, tile_columns = 16;
  int64_t rows = 6, columns = 16;  ///< of a task's block: multiples of the tile's
  int64_t depth = 256;
  bool operator==(const Blocks&) const = default;
};

/// The blocks of a product, or nullopt if a loop nest that pulls each sum does as well.
std::optional<Blocks> choose_blocks(const Instruction& dot, const MatrixProduct& product, const TargetInfo& target);

/// "tile 6x16 block 96x512x256", and back (nullopt: not so written, or no blocks at all).
std::string blocks_text(const Blocks& blocks);
std::optional<Blocks> read_blocks(std::string_view text);

}  // namespace hlojit

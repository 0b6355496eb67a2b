// How a dot or a convolution is cut up: the register tile of its micro-kernel, the blocks of its grid, the slices of
// its contracted dims. Shapes and the target alone decide, so that bits and plans never depend on a run.
//
//   C[m,n] += A[m,k] B[k,n]:  a task computes a block of `rows` x `columns` of C, slice of `depth` by slice
//   of `depth`; in a slice it goes through tiles of tile_rows x tile_columns, whose sums stay in registers
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/plan/matrix_product.h"
#include "compiler/plan/multiply_add.h"
#include "compiler/plan/target_info.h"

namespace hlojit {

struct Blocks {
  int64_t tile_rows = 6, tile_columns = 16;
  int64_t rows = INT64_MAX, columns = INT64_MAX;  ///< of a task's block: multiples of the tile's once it is chosen
  int64_t depth = 256;
  MultiplyAdd multiply_add = MultiplyAdd::kOne;
  bool along_depth = false;  ///< lanes go along the depth: each sum is a vector until all of the depth is in it
  bool operator==(const Blocks&) const = default;
};

/// Bytes of the columns' operand that are a task's worth, however few rows they are for. (The steps of three
/// transformers that decode two tokens at a time, two threads: 0.62 to 0.73 of the time that they took by one task a
/// product, or a kernel of several.)
inline constexpr int64_t kBroughtByTask = 256 << 10;

/// Is a product large enough for blocks? `lanes`: of vectors of the summed type.
bool worth_blocks(const Instruction& contraction, const MatrixProduct& product, int64_t lanes);

/// A few features out of many, of a convolution: no tile of sums, but each is long, and its terms lie side by side.
/// (Three out of 64 at 32x32 took 178 us by blocks, 57 so.)
bool sums_features(const Instruction& contraction, int64_t lanes);

/// How the operands of a product reach it.
struct ProductOperands {
  bool packs = true;            ///< they may be packed several terms at a time
  bool rows_in_memory = false;  ///< the rows' is an array, not computed on the way
  bool columns_in_memory = false;
  bool along_depth = false;  ///< lanes may go along the depth
  bool operator==(const ProductOperands&) const = default;
};

/// The blocks of a product, or nullopt if a loop nest that pulls each sum does as well.
std::optional<Blocks> choose_blocks(const Instruction& contraction, const MatrixProduct& product,
                                    const TargetInfo& target, ProductOperands operands = {});
/// Whether the product may be made that way, by slices of this depth. The machine need not have the instruction: its
/// twin gives the same bits.
bool suits(MultiplyAdd kind, const Instruction& contraction, const MatrixProduct& product, int64_t depth,
           const TargetInfo& target);

/// Whether a product may be summed along its depth: neighbours in the columns' operand are those of the depth, as in x
/// times a transposed W, or the columns are few. `lanes`: of vectors of the summed type, the most columns that a tile
/// has.
bool may_sum_along_depth(const Instruction& contraction, const MatrixProduct& product, int64_t lanes);

/// The same with all of the depth in one slice, where a block has so few rows that they read the columns' operand in
/// place, from the second cache; else as they are.
Blocks in_one_slice(const Instruction& contraction, const MatrixProduct& product, const Blocks& blocks,
                    const TargetInfo& target);

/// Columns of the last of the panels that `n` columns are cut into, in no more vectors than they need, of which the
/// last may be half of one (`halves`: that takes half as long).
int64_t last_panel(int64_t n, int64_t tile_columns, int64_t lanes, bool halves);

/// No run of the product's rows is cut by a block.
bool holds_runs(const Blocks& blocks, const MatrixProduct& product);

/// "tile 6x16 block 96x512x256", with " by words" and the like where several terms are multiplied at once, or " along
/// depth", and back (nullopt: not so written, or no blocks at all).
std::string blocks_text(const Blocks& blocks);
std::optional<Blocks> read_blocks(std::string_view text);

}  // namespace hlojit

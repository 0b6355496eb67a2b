// See depth_tile.h. A few columns at a time, as many as leave the sums of all rows in registers; then the next few.
#include "codegen/kernels/depth_tile.h"

#include <algorithm>

#include <llvm/IR/Module.h>

#include "codegen/kernels/tile_emitter.h"
#include "codegen/number/multiply_add.h"
#include "codegen/target.h"

namespace hlojit::codegen {
namespace {

using Vectors = TileEmitter::Values;

/// One vector for a power of two of them: the sum of each one's lanes. Halves of two go side by side and are added, so
/// that the work is shared by all.
llvm::Value* sums_of_lanes(llvm::IRBuilderBase& b, Vectors vectors) {
  const size_t count = vectors.size();
  auto halves = [&](llvm::Value* x, llvm::Value* y, int parts) {  // of each of the parts that x and y consist of
    const auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
    const int all = y ? 2 * lanes : lanes, half = all / parts / 2;
    std::vector<int> low, high;
    for (int k = 0; k < all / 2; ++k) {
      low.push_back(k / half * 2 * half + k % half);
      high.push_back(low.back() + half);
    }
    if (!y) y = llvm::PoisonValue::get(x->getType());
    return b.CreateFAdd(b.CreateShuffleVector(x, y, low), b.CreateShuffleVector(x, y, high));
  };
  for (int parts = 2; vectors.size() > 1; parts *= 2) {
    Vectors next;
    for (size_t k = 0; k < vectors.size(); k += 2) next.push_back(halves(vectors[k], vectors[k + 1], parts));
    vectors = std::move(next);
  }
  auto lanes = [&] { return llvm::cast<llvm::FixedVectorType>(vectors[0]->getType())->getNumElements(); };
  while (lanes() > count) vectors[0] = halves(vectors[0], nullptr, static_cast<int>(count));
  return vectors[0];
}

class DepthTile {
 public:
  DepthTile(llvm::Function* f, const MicroKernelShape& shape, const Target& target)
      : t_(f, shape),
        shape_(shape),
        target_(target),
        rows_(shape.rows),
        columns_(columns_at_once(shape, target.vector_registers())) {}

  void emit() {
    const int64_t all = shape_.stored_lanes > 0 ? shape_.stored_lanes : int64_t{shape_.vectors} * shape_.lanes;
    const int64_t whole = all / columns_ * columns_;
    if (whole > 0) {
      t_.loop("columns", columns_, t_.number(whole), {}, [&](llvm::Value* column, const Vectors&) {
        sum_columns(column);
        return Vectors();
      });
    }
    for (int64_t first = whole; first < all; first += columns_) {
      while (columns_ > all - first) columns_ /= 2;
      sum_columns(t_.number(first));
    }
    t_.b.CreateRetVoid();
  }

 private:
  /// The next columns from number `column` on.
  void sum_columns(llvm::Value* column) {
    llvm::Value* right = t_.at(t_.argument(1), t_.b.CreateMul(column, t_.number(shape_.panel_stride)));
    store(sums_of(right), column);
  }

  /// Of all rows with the columns that begin at `right`.
  Vectors sums_of(llvm::Value* right) {
    llvm::Value *depth = t_.argument(4), *whole = t_.b.CreateAnd(depth, t_.number(-shape_.lanes));
    auto whole_vectors = [&](const Vectors& sums) {
      return t_.loop("k", shape_.lanes, whole, sums,
                     [&](llvm::Value* k, const Vectors& carried) { return with_products(carried, right, k, false); });
    };
    const Vectors none(static_cast<size_t>(rows_ * columns_), llvm::Constant::getNullValue(t_.vector));
    if (shape_.last_lanes == shape_.lanes) return whole_vectors(none);
    // Of several slices the last may be shorter than a vector.
    Vectors sums = shape_.accumulates ? t_.under(t_.b.CreateICmpNE(whole, t_.number(0)), "whole", none, whole_vectors)
                                      : whole_vectors(none);
    return t_.under(t_.b.CreateICmpULT(whole, depth), "rest", sums,
                    [&](const Vectors& before) { return with_products(before, right, whole, true); });
  }

  void store(const Vectors& sums, llvm::Value* column) {
    for (int64_t i = 0; i < rows_; ++i) {
      const auto first = sums.begin() + static_cast<std::ptrdiff_t>(i * columns_);
      llvm::Value* row = sums_of_lanes(t_.b, Vectors(first, first + static_cast<std::ptrdiff_t>(columns_)));
      llvm::Value* to = t_.at(t_.argument(2), t_.b.CreateAdd(t_.b.CreateMul(t_.number(i), t_.argument(3)), column));
      if (shape_.accumulates) {
        llvm::Value* old = t_.b.CreateAlignedLoad(row->getType(), to, t_.align);
        row = t_.b.CreateSelect(t_.argument(5), t_.b.CreateFAdd(old, row), row);
      }
      t_.store(row, to);
    }
  }

  /// The sums with the products of a vector's worth of the depth, from `k` on; `part`: of what it leaves of a vector.
  Vectors with_products(Vectors sums, llvm::Value* right, llvm::Value* k, bool part) {
    Vectors columns;
    llvm::Value* first = t_.at(right, k);
    for (int64_t j = 0; j < columns_; ++j) columns.push_back(t_.load(t_.at(first, j * shape_.panel_stride), part));
    // The columns that come next: no prefetcher gets far in pieces of a page.
    for (int64_t j = 0; shape_.looks_down > 0 && !part && j < columns_; ++j) {
      llvm::Value* next = t_.number((columns_ + j) * shape_.panel_stride);
      t_.prefetch(t_.b.CreateGEP(t_.scalar, first, next), Cache::kSecond);
    }
    for (int64_t i = 0; i < rows_; ++i) {
      llvm::Value* row = t_.load(t_.at(t_.at(t_.argument(0), k), i * shape_.left.row_stride), part);
      for (int64_t j = 0; j < columns_; ++j) {
        llvm::Value*& sum = sums[static_cast<size_t>(i * columns_ + j)];
        llvm::Value* column = columns[static_cast<size_t>(j)];
        sum = shape_.multiply_add == MultiplyAdd::kOne
                  ? t_.b.CreateIntrinsic(llvm::Intrinsic::fma, {t_.vector}, {row, column, sum})
                  : multiply_add(t_.b, shape_.multiply_add, row, column, sum, target_);
      }
    }
    return sums;
  }

  // (left, right, sums, stride of the sums, depth, whether to add to them, -, -): see micro_kernel
  TileEmitter t_;
  const MicroKernelShape& shape_;
  const Target& target_;
  int64_t rows_, columns_;
};

/// One row multiplies columns on their way from memory. More of them lie in the same sets of the first cache. (On a
/// Zen 4, eight from the second cache: 256x1024 takes 1.1 of the time of four.)
int columns_of_row(const MicroKernelShape& shape) { return shape.looks_down > 0 ? 8 : 4; }

}  // namespace

int columns_at_once(const MicroKernelShape& shape, int vector_registers) {
  const int most = shape.rows == 1 ? columns_of_row(shape) : (vector_registers - 2) / (shape.rows + 1);
  int columns = 1;
  while (2 * columns <= std::min(most, shape.lanes)) columns *= 2;
  return columns;
}

void emit_depth_tile(llvm::Function* f, const MicroKernelShape& shape, const Target& target) {
  DepthTile(f, shape, target).emit();
}

}  // namespace hlojit::codegen

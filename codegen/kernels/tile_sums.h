// Where the sums of a product's tiles are put: at once where they belong, or in scratch, from where the epilogue takes
// them to the results, or the next slice goes on with them.
#pragma once

#include <optional>

#include "codegen/kernels/epilogue.h"
#include "codegen/kernels/product_places.h"

namespace hlojit::codegen {

class TileSums {
 public:
  /// Takes of scratch what it needs. What it is given outlives it.
  TileSums(KernelBuilder& kernel, const ProductStage& stage, const ProductSite& site, const ProductPlaces& places,
           ProductReads& reads, Scratch& scratch);

  /// A tile of a block.
  struct Tile {
    IndexExpr number, panel;  ///< of the block
    IndexExpr row, column;    ///< of the product
    IndexExpr shift{0};       ///< it begins so many rows too early
  };
  struct Place {
    llvm::Value *pointer, *stride;
    IndexExpr offset{0};                ///< in scratch
    llvm::Value* in_scratch = nullptr;  ///< null: as are all other tiles'
  };
  Place of(Scope& scope, const Tile& tile);
  /// After the tile's slice of that number: behind the last one what is not where it belongs goes there.
  void finish(Scope& scope, const Tile& tile, const Place& place, llvm::Value* slice);

 private:
  int64_t tiles_in_scratch() const;
  llvm::Value* in_scratch(Scope& scope, const Place& place);
  /// Where the result is just the sums: tiles go where they belong, but for those that reach beyond an end, or are
  /// moved. (Through scratch 4096 products of 16x16 took 1.13 of the time.)
  Place of_result(Scope& scope, const Tile& tile);

  KernelBuilder& kernel_;
  ElementEmitter& e_;
  const ProductStage& s_;
  const ProductSite& site_;
  const ProductPlaces& at_;
  ProductReads& reads_;
  RowTile sums_;  // a tile, or several where slices repeat, or all for stages that follow
  std::optional<Epilogue> epilogue_;
};

}  // namespace hlojit::codegen

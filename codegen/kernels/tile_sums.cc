// See tile_sums.h.
#include "codegen/kernels/tile_sums.h"

#include "layout/index.h"

namespace hlojit::codegen {
namespace {

llvm::Value* i64(llvm::IRBuilder<>& b, int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }

}  // namespace

TileSums::TileSums(KernelBuilder& kernel, const ProductStage& stage, const ProductSite& site,
                   const ProductPlaces& places, ProductReads& reads, Scratch& scratch)
    : kernel_(kernel), e_(kernel.emitter()), s_(stage), site_(site), at_(places), reads_(reads) {
  if (site.sums) {
    sums_ = *site.sums;
    return;
  }
  if (at_.result_stride && !at_.rows_end && !at_.columns_end) return;
  const int64_t mr = s_.blocks.tile_rows, nr = s_.blocks.tile_columns;
  sums_ = {scratch.take(tiles_in_scratch() * mr * nr * dtype_bytes(s_.type)), nr};  // tile by tile
  epilogue_.emplace(kernel, e_.vars(), s_.plan, s_.stage, reads, sums_, site.once);
}

int64_t TileSums::tiles_in_scratch() const {
  if (s_.slices() == 1) return 1;
  if (!at_.result_stride) return s_.tiles() * s_.panels();
  return (at_.columns_end ? s_.tiles() : 0) + (at_.rows_end ? s_.panels() : 0);
}

TileSums::Place TileSums::of(Scope& scope, const Tile& tile) {
  if (at_.result_stride) return of_result(scope, tile);
  Place place{nullptr, i64(scope.builder, sums_.stride)};
  if (site_.sums)
    place.offset = (tile.row - tile.shift - site_.m0) * sums_.stride + (tile.column - site_.n0);
  else if (s_.slices() > 1)
    place.offset = (tile.panel * s_.tiles() + tile.number) * (s_.blocks.tile_rows * s_.blocks.tile_columns);
  place.pointer = in_scratch(scope, place);
  return place;
}

llvm::Value* TileSums::in_scratch(Scope& scope, const Place& place) {
  llvm::IRBuilder<>& b = scope.builder;
  return b.CreateInBoundsGEP(storage_type(b, s_.type, 1), sums_.pointer, e_.index(place.offset, scope));
}

TileSums::Place TileSums::of_result(Scope& scope, const Tile& tile) {
  const int64_t mr = s_.blocks.tile_rows, nr = s_.blocks.tile_columns;
  llvm::IRBuilder<>& b = scope.builder;
  const IndexExpr at = linear_index(s_.dot.shape, reads_.result_coords(tile.row - tile.shift, tile.column));
  llvm::Value* result = kernel_.result(s_.stage.stores[0]).pointer;
  Place place{b.CreateGEP(storage_type(b, s_.type, 1), result, e_.index(at, scope)), i64(b, *at_.result_stride)};
  auto beyond = [&](bool ends, const IndexExpr& first, int64_t last) -> llvm::Value* {
    return ends ? b.CreateICmpSGT(e_.index(first, scope), i64(b, last)) : nullptr;
  };
  llvm::Value* below = beyond(at_.rows_end, tile.row, s_.product.m - mr);
  llvm::Value* right = beyond(at_.columns_end, site_.n0 + tile.panel * nr, s_.product.n - nr);
  if (!below && !right) return place;
  place.in_scratch = below && right ? b.CreateOr(below, right) : below ? below : right;
  if (s_.slices() > 1) {
    llvm::Value* number = e_.index(right ? tile.number : tile.panel, scope);
    if (below && right) number = b.CreateSelect(right, number, e_.index(tile.panel + s_.tiles(), scope));
    place.offset = e_.symbol(scope, number, {0, tiles_in_scratch() - 1}) * (mr * nr);
  }
  place.pointer = b.CreateSelect(place.in_scratch, in_scratch(scope, place), place.pointer);
  place.stride = b.CreateSelect(place.in_scratch, i64(b, nr), place.stride);
  return place;
}

void TileSums::finish(Scope& scope, const Tile& tile, const Place& place, llvm::Value* slice) {
  if (!epilogue_) return;
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Value* last = s_.slices() == 1 ? nullptr : b.CreateICmpEQ(slice, i64(b, s_.slices() - 1));
  if (place.in_scratch) last = last ? b.CreateAnd(last, place.in_scratch) : place.in_scratch;
  const IndexExpr from = place.offset + tile.shift * sums_.stride;
  auto store = [&] { epilogue_->tile(scope, tile.row, tile.column, from, at_.columns); };
  if (!last) return store();
  guarded(scope, last, store, [] {});
}

}  // namespace hlojit::codegen

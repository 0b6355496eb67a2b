// See product_places.h.
#include "codegen/kernels/product_places.h"

#include <algorithm>

#include "codegen/kernels/stored_padding.h"
#include "compiler/plan/contraction.h"
#include "layout/divide.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

class Chooser {
 public:
  Chooser(const ProductStage& stage, const ProductSite& site, const ProductReads& reads, const KernelBuilder& kernel)
      : s_(stage), product_(stage.product), blocks_(stage.blocks), site_(site), reads_(reads), kernel_(kernel) {}

  ProductPlaces run() {
    const int64_t nr = blocks_.tile_columns, n = product_.n;
    at_.last_columns = last_columns();
    const bool uneven = (n - at_.last_columns) % nr != 0;
    at_.rows = rows_as_planned();
    choose_left();
    choose_right();
    // A last panel moved left computes some columns twice, which must not be added up, nor stored where read, or where
    // another task still adds. (Nor are slices added up in lines that two tasks share: 8x512 by 512x1000 in slices of
    // 48, two threads, took 1.25 of the time.)
    const bool odd = !at_.in_panels && n > nr && n % nr != 0, part = odd && uneven, slices = s_.slices() > 1;
    if (!(at_.right && odd && slices)) at_.result_stride = stride_of_result();
    const bool once = site_.once || (slices && (site_.sums || at_.result_stride));
    if (at_.right && ((at_.right->along != 1 && !blocks_.along_depth) || (once && part))) at_.right.reset();
    const bool moves_left = part && !once && (at_.right || packs_anywhere());
    at_.columns = moves_left ? n / nr * nr + at_.last_columns : n;
    at_.moves_up = !at_.left && !at_.by_rows && !at_.rows.pointed() && product_.m > blocks_.rows &&
                   product_.m % blocks_.rows != 0 && begins_anywhere(reads_.left_side());
    at_.moves_rows = at_.result_stride && !slices && !site_.left && !s_.form.tiles() &&
                     (at_.left || last_block_has_tile()) && at_.rows.together == 1;
    at_.group = at_.right ? 1 : panels_at_once();
    if (site_.sums) return at_;
    // What is computed twice must not be added up.
    const bool whole = at_.result_stride && !slices && moves_left;
    at_.rows_end = product_.m % blocks_.tile_rows != 0 && !at_.moves_rows;
    at_.columns_end = uneven && !whole && !s_.stores_part();
    return at_;
  }

 private:
  /// As the tile was chosen for, where the panel can be that narrow. Stages that follow read whole vectors.
  int64_t last_columns() const {
    const int64_t nr = blocks_.tile_columns, lanes = s_.lanes;
    const bool plain = !blocks_.along_depth && !s_.form.tiles() && !reads_.in_runs(reads_.right_side());
    if (!plain || product_.n < nr) return nr;
    const bool halves = s_.options.target_info().multiply_adds == 1 && lanes > 1 && s_.form.terms == 1;
    return last_panel(product_.n, nr, lanes, halves && !site_.sums);
  }

  void choose_left() {
    const int64_t mr = blocks_.tile_rows;
    if (site_.left) {
      at_.left = OperandStrides{site_.left->stride, 1};
    } else {
      if (at_.rows.at_strides) at_.left = in_place(reads_.left_side());
      // A last tile moved up would leave rows above the block's tile of sums, or begin in front of the operand.
      const bool moved = product_.m % mr != 0;
      if (at_.left && moved && (site_.sums || product_.m < mr)) at_.left.reset();
    }
    // Lanes along the depth take a line of each row a step: rows pages apart, in the same sets of caches, are packed.
    // (8x4096 by 4096x4096 that lies turned takes 0.96 of the time so, with AVX2 and two threads 0.85; a Zen 4.)
    const bool far =
        at_.left && !site_.left && product_.n > blocks_.tile_columns && at_.left->along * dtype_bytes(s_.type) >= kPage;
    if (at_.left && blocks_.along_depth && (at_.left->depth != 1 || far)) at_.left.reset();
    at_.by_rows = !at_.left && (s_.form.tiles() || blocks_.along_depth || reads_.in_runs(reads_.left_side()) ||
                                left_depth_is_minor(s_.dot, product_));
  }

  /// For now: who is to store where may forbid it.
  void choose_right() {
    const Instruction* columns = reads_.operand(reads_.right_side());
    auto panels = panel_layout(s_.dot, product_, blocks_);
    at_.in_panels = panels && columns->is(Opcode::kParameter) && columns->shape.type == s_.packed_type &&
                    columns->shape.layout == *panels;
    if (at_.in_panels) at_.right = OperandStrides{1, blocks_.tile_columns};
    const bool as_it_lies = s_.form.terms == 1 || blocks_.along_depth;
    if (!at_.right && as_it_lies && columns_in_place(s_.dot, product_, blocks_, s_.options.target_info())) {
      at_.right = in_place(reads_.right_side());
    }
  }

  /// How the rows are read, as far as slices, tiles and blocks are made for it.
  RowsInPlace rows_as_planned() const {
    if (site_.left || !reads_.operand(reads_.left_side())->is(Opcode::kParameter)) return {};
    RowsInPlace rows = rows_in_place(s_.dot, product_, blocks_.multiply_add, blocks_.tile_columns);
    const int64_t kc = blocks_.depth;
    // In place nothing fills up a slice that ends within a step.
    if (kc < product_.k && kc % s_.form.step != 0) return {};
    if (!rows.whole_stretches(kc, product_.k)) rows.stretch = 0;
    // Tiles are whole registers of rows.
    if (rows.in_line > 1 && blocks_.tile_rows != ceil_div(blocks_.tile_rows, kTileSide) * rows.in_line) return {};
    // Tiles are parts of what lies together, and blocks whole numbers of it.
    if (rows.together % blocks_.tile_rows != 0 || blocks_.rows % rows.together != 0) rows.together = 1;
    return rows;
  }

  /// Of an operand that is a plain array of the summed type, or of the terms that are packed into it: of several terms
  /// in groups as they lie.
  std::optional<OperandStrides> in_place(int side) const {
    const Instruction* p = reads_.operand(side);
    if (!reads_.array(side) || p->shape.type != s_.packed_type) return std::nullopt;
    auto strides = operand_strides(s_.dot, product_, static_cast<size_t>(side), site_.batch, reads_.vars());
    if (strides) strides->along /= s_.form.terms;
    return strides;
  }

  /// Elements from one row of the only result to the next, where that is the product as it is summed, row by row.
  std::optional<int64_t> stride_of_result() const {
    const std::vector<size_t>& stores = s_.stage.stores;
    if (site_.sums || site_.once || stores.size() != 1) return std::nullopt;
    if (product_.run > 1 || product_.overhangs()) return std::nullopt;
    if (product_.m < blocks_.tile_rows || (product_.n < blocks_.tile_columns && !s_.stores_part())) return std::nullopt;
    const Shape& shape = s_.dot.shape;
    const bool same = s_.plan.roots[stores[0]] == &s_.dot && shape.type == s_.type;
    if (!same || kernel_.result(stores[0]).streaming) return std::nullopt;
    if (element_bits(shape) != dtype_bits(s_.type)) return std::nullopt;
    const int row = reads_.vars().fresh(), column = reads_.vars().fresh();
    const IndexExpr address =
        linear_index(shape, reads_.result_coords(IndexExpr::var(row, product_.m), IndexExpr::var(column, product_.n)));
    if (address.coefficient(column) != 1) return std::nullopt;
    return address.coefficient(row);
  }

  /// The last block of rows has as many as a tile: or its last tile could not be moved up.
  bool last_block_has_tile() const {
    const int64_t rest = product_.m % blocks_.rows;
    return at_.moves_up || (rest > 0 ? rest : blocks_.rows) >= blocks_.tile_rows;
  }

  /// Panels of the right operand may begin at any column: they are at a stride, and so are the results'.
  bool packs_anywhere() const {
    if (blocks_.along_depth) return false;
    auto tiled = [](const Instruction* i) { return i->shape.layout.tiled(); };
    return begins_anywhere(reads_.right_side()) && std::ranges::none_of(s_.plan.roots, tiled);
  }
  /// An operand is at a stride along its side.
  bool begins_anywhere(int side) const {
    const std::vector<Factor>& free = side == 0 ? product_.lhs_free : product_.rhs_free;
    return !reads_.in_runs(side) && free.size() == 1 && !reads_.operand(side)->shape.layout.tiled();
  }

  /// Panels packed together, so that a row of the right operand is read in pieces of a few cache lines: as many as
  /// leave most of the second cache to the left one.
  int64_t panels_at_once() const {
    constexpr int64_t kPiece = 2048;
    const int64_t nr = blocks_.tile_columns, piece = nr * dtype_bytes(s_.packed_type);
    if (blocks_.along_depth) return 1;
    const int64_t room = s_.options.target_info().l2_bytes / 4 / s_.packed_depth();
    int64_t group = std::clamp<int64_t>(std::min(kPiece, room) / piece, 1, 8);
    while (group > 1 && (product_.n % (group * nr) != 0 || blocks_.columns % (group * nr) != 0)) group /= 2;
    return group;
  }

  const ProductStage& s_;
  const MatrixProduct& product_;
  const Blocks& blocks_;
  const ProductSite& site_;
  const ProductReads& reads_;
  const KernelBuilder& kernel_;
  ProductPlaces at_;
};

}  // namespace

ProductStage::ProductStage(const KernelPlan& plan, const Stage& stage, const EmitOptions& options)
    : plan(plan),
      stage(stage),
      options(options),
      dot(*stage.product),
      blocks(*stage.blocks),
      vector_bytes(options.vector_size()),
      product(with_stored_rest(matrix_product(plan, stage, vector_bytes), plan, stage)),
      packed(with_stored_depth(product, stage)),
      type(sum_type(dot)),
      lanes(std::max(1, vector_bytes / dtype_bytes(type))),
      form(form_of(blocks.multiply_add)),
      packed_type(form.terms == 1 ? type : form.packed) {}

bool ProductStage::stores_part() const {
  if (blocks.along_depth) return product.n < blocks.tile_columns;
  const bool masks = options.target_info().vector_registers >= 32 && !form.tiles();
  return masks && product.n < blocks.tile_columns && product.n > blocks.tile_columns - lanes;
}

ProductPlaces choose_places(const ProductStage& stage, const ProductSite& site, const ProductReads& reads,
                            const KernelBuilder& kernel) {
  return Chooser(stage, site, reads, kernel).run();
}

}  // namespace hlojit::codegen

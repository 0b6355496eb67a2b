// A dot or a convolution as its blocks say (compiler/plan/blocks.h). Three steps of one plan:
//
//   packing       a slice of the operands into panels that the micro-kernel reads in order; producers are
//                 emitted here, and paddings. Left out where an operand can be read where it lies, or its rows
//                 be pointed to.
//   micro-kernel  a register tile of sums over the slice
//   epilogue      the tile's elements on their way to the result: what follows the dot, elementwise
//
// Each task of the grid packs for itself; a slice's sums wait for the next one in the result, if that is all it is, or
// in scratch.
#include "codegen/kernels/contraction.h"

#include <algorithm>

#include <llvm/IR/Module.h>

#include "codegen/kernels/epilogue.h"
#include "codegen/kernels/function.h"
#include "codegen/kernels/matrix_tile.h"
#include "codegen/kernels/micro_kernel.h"
#include "codegen/kernels/packing.h"
#include "codegen/kernels/row_pointers.h"
#include "codegen/kernels/stored_padding.h"
#include "codegen/target.h"
#include "compiler/analysis/access.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/operands_in_place.h"
#include "layout/divide.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

llvm::Value* i64(llvm::IRBuilder<>& b, int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }

class Product {
 public:
  Product(KernelBuilder& kernel, const KernelPlan& plan, size_t number, const ProductSite& site)
      : plan_(plan),
        stage_(plan.stages[number]),
        kernel_(kernel),
        e_(kernel.emitter()),
        vars_(e_.vars()),
        options_(e_.options()),
        dot_(*stage_.product),
        vector_bytes_(options_.vector_size()),
        product_(with_stored_rest(matrix_product(plan, stage_, vector_bytes_), plan, stage_)),
        blocks_(*stage_.blocks),
        site_(site),
        type_(sum_type(dot_)),
        m0_(site.m0),
        n0_(site.n0),
        packed_(with_stored_depth(product_, stage_)),
        reads_(e_, vars_, dot_, packed_, site.batch),
        lanes_(std::max(1, vector_bytes_ / dtype_bytes(type_))),
        form_(form_of(blocks_.multiply_add)),
        packed_type_(form_.terms == 1 ? type_ : form_.packed),
        packing_(e_, vars_, reads_, packed_,
                 {packed_type_, form_.terms, form_.step, blocks_.multiply_add == MultiplyAdd::kBytes, blocks_.depth,
                  vector_bytes_}) {}

  void run(Scratch& scratch) {
    int64_t mark = scratch.mark();
    choose_places(scratch);
    Scope& root = kernel_.root();
    if (pointers_) pointers_->begin(root, m0_);
    packed_m0_ = m0_;
    if (moves_up_) {
      const int64_t last = product_.m - blocks_.rows;
      packed_m0_ = e_.symbol(root, minimum(root, e_.index(m0_, root), last), {0, last});
    }
    clear_rests(root);
    if (form_.tiles()) begin_tiles(root.builder, kernel_.module(), shape_of({}), *options_.target);
    auto slice_loop = open_loop(root, i64(root.builder, slices_), 1, "slice");
    slice(*slice_loop);
    close_loop(root, std::move(slice_loop));
    if (form_.tiles()) end_tiles(root.builder, blocks_.multiply_add, *options_.target);
    scratch.release(mark);
  }

 private:
  // Which operands are read where they lie, and what of scratch the others and the sums get.
  void choose_places(Scratch& scratch) {
    const int64_t bytes = dtype_bytes(type_), packed_bytes = dtype_bytes(packed_type_);
    const int64_t mr = blocks_.tile_rows, nr = blocks_.tile_columns, kc = packed_depth();
    slices_ = ceil_div(product_.k, blocks_.depth);
    panels_ = blocks_.columns / nr;
    tiles_ = blocks_.rows / mr;
    const RowsInPlace rows = rows_as_planned();
    if (site_.left) {
      left_ = OperandStrides{site_.left->stride, 1};
    } else {
      if (rows.at_strides) left_ = in_place(reads_.left_side());
      // A last tile moved up would leave rows above the block's tile of sums, or begin in front of the operand.
      const bool moved = product_.m % mr != 0;
      if (left_ && moved && (site_.sums || product_.m < mr)) left_.reset();
    }
    // Lanes along the depth take a line of each row a step: rows pages apart, in the same sets of caches, are packed.
    // (8x4096 by 4096x4096 that lies turned takes 0.96 of the time so, with AVX2 and two threads 0.85; a Zen 4.)
    const bool far = left_ && !site_.left && product_.n > nr && left_->along * bytes >= kPage;
    if (left_ && blocks_.along_depth && (left_->depth != 1 || far)) left_.reset();
    by_rows_ = !left_ && (form_.tiles() || blocks_.along_depth || reads_.in_runs(reads_.left_side()) ||
                          left_depth_is_minor(dot_, product_));
    const Instruction* columns = dot_.operand(static_cast<size_t>(reads_.right_side()));
    auto panels = panel_layout(dot_, product_, blocks_);
    in_panels_ = panels && columns->is(Opcode::kParameter) && columns->shape.type == packed_type_ &&
                 columns->shape.layout == *panels;
    if (in_panels_) right_ = OperandStrides{1, nr};
    const bool as_it_lies = form_.terms == 1 || blocks_.along_depth;
    if (!right_ && as_it_lies && columns_in_place(dot_, product_, blocks_, options_.target_info())) {
      right_ = in_place(reads_.right_side());
    }
    // A last panel moved left computes some columns twice, which must not be added up, nor stored where read, or where
    // another task still adds.
    const bool part = !in_panels_ && product_.n > nr && product_.n % nr != 0;
    if (!(right_ && part && slices_ > 1)) result_stride_ = stride_of_result();
    const bool once = site_.once || (slices_ > 1 && (site_.sums || result_stride_));
    if (right_ && ((right_->along != 1 && !blocks_.along_depth) || (once && part))) right_.reset();
    moves_left_ = part && !once && (right_ || packs_anywhere());
    moves_up_ = !left_ && !by_rows_ && !rows.pointed() && product_.m > blocks_.rows && product_.m % blocks_.rows != 0 &&
                begins_anywhere(reads_.left_side());
    moves_rows_ = result_stride_ && slices_ == 1 && !site_.left && !form_.tiles() && (left_ || last_block_has_tile()) &&
                  rows.together == 1;
    group_ = right_ ? 1 : panels_at_once();

    if (!right_) b_panel_.pointer = scratch.take(kc * nr * group_ * packed_bytes);
    if (!left_ && rows.pointed())
      pointers_.emplace(reads_, rows, blocks_, operand(reads_.left_side()), scratch);
    else if (!left_)
      a_block_.pointer = scratch.take((by_rows_ ? blocks_.rows : rows_across()) * kc * packed_bytes);
    if (biased()) bias_.pointer = scratch.take((nr + 1) * bytes);
    place_sums(scratch);
  }

  // Where sums are put, and what of scratch they get.
  void place_sums(Scratch& scratch) {
    const int64_t mr = blocks_.tile_rows, nr = blocks_.tile_columns;
    if (site_.sums) {
      c_ = *site_.sums;
      return;
    }
    // What is computed twice must not be added up.
    rows_end_ = product_.m % mr != 0 && !moves_rows_;
    columns_end_ = product_.n % nr != 0 && !(result_stride_ && slices_ == 1 && moves_left_) && !stores_part();
    if (result_stride_ && !rows_end_ && !columns_end_) return;
    c_ = {scratch.take(tiles_in_scratch() * mr * nr * dtype_bytes(type_)), nr};  // tile by tile
    epilogue_.emplace(kernel_, vars_, plan_, stage_, reads_, c_, site_.once);
  }

  /// The last block of rows has as many as a tile: or its last tile could not be moved up.
  bool last_block_has_tile() const {
    const int64_t rest = product_.m % blocks_.rows;
    return moves_up_ || (rest > 0 ? rest : blocks_.rows) >= blocks_.tile_rows;
  }

  int64_t tiles_in_scratch() const {
    if (slices_ == 1) return 1;
    if (!result_stride_) return tiles_ * panels_;
    return (columns_end_ ? tiles_ : 0) + (rows_end_ ? panels_ : 0);
  }

  /// Elements from one row of the only result to the next, where that is the product as it is summed, row by row.
  std::optional<int64_t> stride_of_result() {
    if (site_.sums || site_.once || stage_.stores.size() != 1) return std::nullopt;
    if (product_.run > 1 || product_.overhangs()) return std::nullopt;
    if (product_.m < blocks_.tile_rows || (product_.n < blocks_.tile_columns && !stores_part())) return std::nullopt;
    const Shape& shape = dot_.shape;
    if (plan_.roots[stage_.stores[0]] != &dot_ || shape.type != type_ || result().streaming) return std::nullopt;
    if (element_bits(shape) != dtype_bits(type_)) return std::nullopt;
    const int row = vars_.fresh(), column = vars_.fresh();
    const IndexExpr address =
        linear_index(shape, reads_.result_coords(IndexExpr::var(row, product_.m), IndexExpr::var(column, product_.n)));
    if (address.coefficient(column) != 1) return std::nullopt;
    return address.coefficient(row);
  }
  /// The only panel is wider than the product, by part of a vector that need not be stored: one instruction with masks.
  /// With lanes along the depth sums of columns are made one by one.
  bool stores_part() const {
    if (blocks_.along_depth) return product_.n < blocks_.tile_columns;
    const bool masks = options_.target_info().vector_registers >= 32 && !form_.tiles();
    return masks && product_.n < blocks_.tile_columns && product_.n > blocks_.tile_columns - lanes_;
  }
  const BufferRef& result() const { return kernel_.result(stage_.stores[0]); }

  /// Zeros where tiles compute what no one packs: rows beyond the last, columns beyond the only panel's. What happened
  /// to be there may be subnormal, which on some machines takes a product a hundred times as long. (A convolution to 67
  /// features: 7.6 ms instead of 0.6.)
  void clear_rests(Scope& root) {
    const int64_t mr = blocks_.tile_rows, nr = blocks_.tile_columns, kc = packed_depth();
    llvm::IRBuilder<>& b = root.builder;
    auto clear = [&](llvm::Value* condition, llvm::Value* at, int64_t elements) {
      guarded(
          root, condition,
          [&] { b.CreateMemSet(at, b.getInt8(0), i64(b, elements * dtype_bytes(packed_type_)), llvm::MaybeAlign()); },
          [] {});
    };
    if (a_block_.pointer && by_rows_ && rows_end_) {
      llvm::Value* rows = e_.index(IndexExpr(product_.m) - m0_, root);
      const IndexExpr last = IndexExpr(product_.m / mr) - floordiv(m0_, mr);
      llvm::Value* at = e_.index(last * (mr * kc), root);
      at = b.CreateInBoundsGEP(storage_type(b, packed_type_, 1), a_block_.pointer, at);
      clear(b.CreateICmpSLT(rows, i64(b, blocks_.rows)), at, mr * kc);
    }
    if (moves_up_ && spare_rows() > 0) {
      auto loop = open_loop(root, i64(root.builder, kc / form_.terms), 1, "clear");
      llvm::IRBuilder<>& in = loop->builder;
      llvm::Value* at = in.CreateAdd(in.CreateMul(loop->counter, i64(in, rows_across())), i64(in, blocks_.rows));
      at = in.CreateInBoundsGEP(storage_type(in, packed_type_, 1), a_block_.pointer,
                                in.CreateMul(at, i64(in, form_.terms)));
      const int64_t bytes = spare_rows() * form_.terms * dtype_bytes(packed_type_);
      in.CreateMemSet(at, in.getInt8(0), i64(in, bytes), llvm::MaybeAlign());
      close_loop(root, std::move(loop));
    }
    if (b_panel_.pointer && product_.n % nr != 0 && !moves_left_) {
      llvm::Value* columns = e_.index(IndexExpr(product_.n) - n0_, root);
      clear(b.CreateICmpULT(columns, i64(b, nr)), b_panel_.pointer, nr * kc);
    }
  }

  void slice(Scope& ss) {
    const int64_t mr = blocks_.tile_rows, nr = blocks_.tile_columns, kc = blocks_.depth;
    Scope& root = kernel_.root();
    slice_var_ = vars_.fresh();
    e_.bind(slice_var_, ss, ss.counter);
    k0_ = IndexExpr::var(slice_var_, slices_) * kc;
    packing_.begin_slice(k0_);
    depth_ = product_.k % kc == 0 ? i64(ss.builder, kc) : minimum(ss, e_.index(IndexExpr(product_.k) - k0_, ss), kc);
    // Rows and columns this block really has, in tiles and groups of panels.
    llvm::Value* rows_left = minimum(root, e_.index(IndexExpr(product_.m) - m0_, root), blocks_.rows);
    llvm::Value* columns_left = minimum(root, e_.index(IndexExpr(product_.n) - n0_, root), blocks_.columns);
    llvm::Value* tile_count = units_left(product_.m, m0_, blocks_.rows, mr);

    pack_left(ss, rows_left, tile_count);
    auto group_loop = open_units(ss, units_left(product_.n, n0_, blocks_.columns, group_ * nr), "group");
    Scope& gs = *group_loop;
    int group_var = vars_.fresh();
    e_.bind(group_var, gs, gs.counter);
    IndexExpr first_panel = IndexExpr::var(group_var, panels_ / group_) * group_, first = n0_ + first_panel * nr;
    // The last panel ends where the operand does, alone in its group.
    if (moves_left_) first = e_.symbol(gs, minimum(gs, e_.index(first, gs), product_.n - nr), {0, product_.n - nr});
    if (!right_) pack_right(gs, first_panel, first, columns_left);

    auto panel_loop = open_loop(gs, i64(gs.builder, group_), 1, "panel");
    Scope& ps = *panel_loop;
    int panel_var = vars_.fresh();
    e_.bind(panel_var, ps, ps.counter);
    IndexExpr in_group = IndexExpr::var(panel_var, group_), panel = first_panel + in_group;
    const IndexExpr column = first + in_group * nr;
    llvm::Value* right = right_ ? right_base(ps, column) : packed_panel(ps, in_group);
    if (biased()) sum_bias(ps.builder, right);
    auto tile_loop = open_units(ps, tile_count, "tile");
    tile(*tile_loop, ss, panel, right, column);
    close_loop(ps, std::move(tile_loop));
    close_loop(gs, std::move(panel_loop));
    close_loop(ss, std::move(group_loop));
  }

  /// Units that cover what the block from `first` on has of `size`: it begins at a whole one, and is as many long.
  llvm::Value* units_left(int64_t size, const IndexExpr& first, int64_t block, int64_t unit) {
    Scope& root = kernel_.root();
    return minimum(root, e_.index(IndexExpr(ceil_div(size, unit)) - floordiv(first, unit), root), block / unit);
  }
  /// No block is empty.
  static std::unique_ptr<Scope> open_units(Scope& parent, llvm::Value* count, std::string_view name) {
    auto loop = open_loop(parent, count, 1, name);
    loop->enters = true;
    return loop;
  }

  /// How the rows are read, as far as slices, tiles and blocks are made for it.
  RowsInPlace rows_as_planned() const {
    if (site_.left || !dot_.operand(product_.rows_operand())->is(Opcode::kParameter)) return {};
    RowsInPlace rows = rows_in_place(dot_, product_, blocks_.multiply_add, blocks_.tile_columns);
    const int64_t kc = blocks_.depth;
    // In place nothing fills up a slice that ends within a step.
    if (kc < product_.k && kc % form_.step != 0) return {};
    // Slices are made of whole stretches, or stretches of whole slices.
    const bool even = rows.stretch > 0 && (rows.stretch % kc == 0 || kc % rows.stretch == 0 || product_.k <= kc);
    if (!even) rows.stretch = 0;
    // Tiles are parts of what lies together, and blocks whole numbers of it.
    if (rows.together % blocks_.tile_rows != 0 || blocks_.rows % rows.together != 0) rows.together = 1;
    return rows;
  }

  void pack_left(Scope& ss, llvm::Value* rows_left, llvm::Value* tile_count) {
    if (left_) return;
    if (pointers_) return pointers_->begin_slice(ss, m0_, k0_, rows_left);
    const int64_t mr = blocks_.tile_rows, kc = packed_depth();
    if (!by_rows_) {
      return packing_.pack_across(ss, a_block_, blocks_.rows, rows_across(), moves_rows_ ? 1 : mr,
                                  moves_up_ ? blocks_.rows : product_.m, packed_m0_);
    }
    const int64_t run = reads_.in_runs(reads_.left_side()) ? product_.run : 1;
    const bool runs = !form_.tiles() || reads_.in_runs(reads_.left_side());
    llvm::Value* count = runs ? units_left(product_.m, m0_, blocks_.rows, run) : tile_count;
    auto loop = open_units(ss, count, runs ? "pack.row" : "pack.tile");
    int var = vars_.fresh();
    e_.bind(var, *loop, loop->counter);
    if (runs) {
      IndexExpr i = IndexExpr::var(var, blocks_.rows / run) * run;
      packing_.pack_run(*loop, a_block_, reads_.left_side(), m0_ + i, run,
                        [&](const IndexExpr& row, const IndexExpr& k) { return (i + row) * kc + k; });
    } else {
      IndexExpr t = IndexExpr::var(var, tiles_);
      packing_.pack_rows(*loop, a_block_, t * (kc * mr), mr, product_.m, m0_ + t * mr);
    }
    close_loop(ss, std::move(loop));
  }

  /// Panels of the right operand may begin at any column: they are at a stride, and so are the results'.
  bool packs_anywhere() const {
    if (blocks_.along_depth) return false;
    auto tiled = [](const Instruction* i) { return i->shape.layout.tiled(); };
    return begins_anywhere(reads_.right_side()) && std::ranges::none_of(plan_.roots, tiled);
  }
  /// An operand is at a stride along its side.
  bool begins_anywhere(int side) const {
    const std::vector<Factor>& free = side == 0 ? product_.lhs_free : product_.rhs_free;
    return !reads_.in_runs(side) && free.size() == 1 && !reads_.operand(side)->shape.layout.tiled();
  }

  // A group of panels, from number `first_panel` of the block on, which begins at column `first`.
  void pack_right(Scope& gs, const IndexExpr& first_panel, const IndexExpr& first, llvm::Value* columns_left) {
    const int64_t nr = blocks_.tile_columns, kc = packed_depth(), run = std::max<int64_t>(product_.run, 1);
    if (!reads_.in_runs(reads_.right_side()) && !blocks_.along_depth)
      return packing_.pack_columns(gs, b_panel_, group_, nr, moves_left_ ? nr : product_.n, first,
                                   walks_memory(dot_, product_, blocks_, options_.target_info()));
    llvm::Value* left = gs.builder.CreateSub(columns_left, e_.index(first_panel * nr, gs));
    auto loop =
        open_loop(gs, gs.builder.CreateUDiv(minimum(gs, left, group_ * nr), i64(gs.builder, run)), 1, "pack.run");
    int var = vars_.fresh();
    e_.bind(var, *loop, loop->counter);
    IndexExpr column = IndexExpr::var(var, group_ * nr / run) * run;
    IndexExpr panel = floordiv(column, nr), in_panel = mod(column, nr);
    packing_.pack_run(*loop, b_panel_, reads_.right_side(), first + column, run,
                      [&](const IndexExpr& j, const IndexExpr& k) {
                        if (blocks_.along_depth) return (column + j) * kc + k;
                        const int64_t terms = form_.terms;
                        return panel * (kc * nr) + (floordiv(k, terms) * nr + in_panel + j) * terms + mod(k, terms);
                      });
    close_loop(gs, std::move(loop));
  }

  // Rows that tile number t starts too low by to stay inside of the operand, where that is read in place, or of the
  // result, where sums are put at once.
  IndexExpr overlap(Scope& ts, const IndexExpr& t) {
    const int64_t mr = blocks_.tile_rows;
    if (!(left_ || moves_rows_) || site_.left || product_.m % mr == 0) return IndexExpr(0);
    llvm::IRBuilder<>& b = ts.builder;
    llvm::Value* over = b.CreateSub(e_.index(m0_ + t * mr, ts), i64(b, product_.m - mr));
    return e_.symbol(ts, b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, over, i64(b, 0)), {0, mr - 1});
  }

  // Of the tile that begins at a row of the block.
  TileRows tile_rows(Scope& ts, Scope& ss, const IndexExpr& row) {
    const int64_t kc = packed_depth();
    llvm::IRBuilder<>& b = ts.builder;
    if (pointers_) return pointers_->tile(ts, row, k0_, form_.terms);
    TileRows rows;
    rows.from = i64(b, 0);
    if (left_) {
      rows.form = {.row_stride = left_->along, .k_stride = left_->depth};
      llvm::Value* first = e_.index(row * left_->along, ts);
      rows.a = b.CreateGEP(storage_type(b, type_, 1), left_base(ss), first);
    } else {
      rows.form = {.row_stride = by_rows_ ? kc / form_.terms : 1, .k_stride = by_rows_ ? 1 : rows_across()};
      IndexExpr from = row * (by_rows_ ? kc : form_.terms);
      if (moves_up_) from = from + (m0_ - packed_m0_) * form_.terms;
      rows.a = b.CreateInBoundsGEP(storage_type(b, packed_type_, 1), a_block_.pointer, e_.index(from, ts));
    }
    return rows;
  }

  void tile(Scope& ts, Scope& ss, const IndexExpr& panel, llvm::Value* right, const IndexExpr& column) {
    const int64_t mr = blocks_.tile_rows, nr = blocks_.tile_columns, kc = blocks_.depth;
    int var = vars_.fresh();
    e_.bind(var, ts, ts.counter);
    IndexExpr t = IndexExpr::var(var, tiles_), row = m0_ + t * mr;
    llvm::IRBuilder<>& b = ts.builder;
    const IndexExpr shift = overlap(ts, t), first = t * mr - shift;
    const TileRows rows = tile_rows(ts, ss, first);
    const Sums sums = sums_of(ts, t, panel, row - shift, column, shift);
    llvm::Value* number = e_.index(IndexExpr::var(slice_var_, slices_), ts);
    // A turn of the loop should be worth counting it; one of a full tile is, and its code is a third of what a product
    // takes to compile. Several terms at once may need a register more each step, which several steps do not have.
    constexpr int64_t kEnough = 12;
    bool small = mr * nr / lanes_ < kEnough && form_.terms == 1;
    const bool even = rows.form.stretch % 4 == 0 || rows.form.shares_pointers();
    int unroll = small && kc % 4 == 0 && product_.k % 4 == 0 && even ? 4 : 1;
    MicroKernelShape shape = shape_of(rows.form);
    shape.unroll = unroll;
    const auto left_over = static_cast<int>(product_.n % lanes_);
    if (right_ && product_.n < nr && !form_.tiles())
      shape.last_lanes = left_over;
    else if (product_.n < nr && product_.n > nr - lanes_ && 2 * left_over <= lanes_ && form_.terms == 1)
      shape.last_lanes = lanes_ / 2;
    if ((result_stride_ || blocks_.along_depth) && stores_part()) shape.stored_lanes = left_over;
    shape.takes_off = biased();
    if (blocks_.along_depth) {
      shape.along_depth = true;
      shape.panel_stride = right_ ? right_->along : kc / form_.terms;
      shape.unroll = 1;
      const int64_t rest = ceil_div(product_.k, form_.terms) % lanes_;
      if (rest != 0) shape.last_lanes = static_cast<int>(rest);
    }
    // A tall matrix from memory.
    shape.looks_ahead = left_ && rows.form.k_stride == 1 && rows.form.row_stride == product_.k && slices_ == 1 &&
                        product_.m * product_.k * dtype_bytes(type_) > options_.target_info().l2_bytes;
    // One whose rows lie in tiles. (2048x2048 in T(8,128) takes 0.99 of the time, one core of a Zen 4.)
    if (pointers_ && pointers_->by_position() && dot_.is(Opcode::kDot))
      shape.looks_ahead = product_.m * product_.k * dtype_bytes(type_) > options_.target_info().l2_bytes;
    if (right_ && !form_.tiles() && walks_memory(dot_, product_, blocks_, options_.target_info()))
      shape.looks_down = kc;
    share_strides(shape, std::min(kc, product_.k) / form_.terms);
    if (shape.strides_are_arguments) shape.accumulates |= another_accumulates();
    b.CreateCall(micro_kernel(kernel_.module(), shape, options_),
                 {rows.a, right, sums.pointer, sums.stride, groups(b), b.CreateICmpNE(number, i64(b, 0)), bias(),
                  rows.from, i64(b, shape.left.k_stride), i64(b, shape.panel_stride), i64(b, shape.left.row_stride)});
    if (!epilogue_) return;
    llvm::Value* last = slices_ == 1 ? nullptr : b.CreateICmpEQ(number, i64(b, slices_ - 1));
    if (sums.in_scratch) last = last ? b.CreateAnd(last, sums.in_scratch) : sums.in_scratch;
    const IndexExpr from = sums.offset + shift * c_.stride;
    if (!last) return epilogue_->tile(ts, row, column, from, moves_left_);
    guarded(ts, last, [&] { epilogue_->tile(ts, row, column, from, moves_left_); }, [] {});
  }

  /// Where a tile's sums are put.
  struct Sums {
    llvm::Value *pointer, *stride;
    IndexExpr offset{0};                ///< in scratch
    llvm::Value* in_scratch = nullptr;  ///< null: as are all other tiles'
  };

  /// Of tile t of a panel, which begins at a row and a column of the product, `shift` rows too early.
  Sums sums_of(Scope& ts, const IndexExpr& t, const IndexExpr& panel, const IndexExpr& row, const IndexExpr& column,
               const IndexExpr& shift) {
    if (result_stride_) return sums_of_result(ts, t, panel, row, column, shift);
    Sums sums{nullptr, i64(ts.builder, c_.stride)};
    if (site_.sums)
      sums.offset = (row - m0_) * c_.stride + (column - n0_);
    else if (slices_ > 1)
      sums.offset = (panel * tiles_ + t) * (blocks_.tile_rows * blocks_.tile_columns);
    sums.pointer = in_scratch(ts, sums);
    return sums;
  }
  llvm::Value* in_scratch(Scope& ts, const Sums& sums) {
    return ts.builder.CreateInBoundsGEP(storage_type(ts.builder, type_, 1), c_.pointer, e_.index(sums.offset, ts));
  }

  /// The same where the result is just that: tiles go where they belong, but for those that reach beyond an end, or are
  /// moved. (Through scratch 4096 products of 16x16 took 1.13 of the time.)
  Sums sums_of_result(Scope& ts, const IndexExpr& t, const IndexExpr& panel, const IndexExpr& row,
                      const IndexExpr& column, const IndexExpr& shift) {
    const int64_t mr = blocks_.tile_rows, nr = blocks_.tile_columns;
    llvm::IRBuilder<>& b = ts.builder;
    const IndexExpr at = linear_index(dot_.shape, reads_.result_coords(row, column));
    Sums sums{b.CreateGEP(storage_type(b, type_, 1), result().pointer, e_.index(at, ts)), i64(b, *result_stride_)};
    auto beyond = [&](bool ends, const IndexExpr& first, int64_t last) -> llvm::Value* {
      return ends ? b.CreateICmpSGT(e_.index(first, ts), i64(b, last)) : nullptr;
    };
    llvm::Value* below = beyond(rows_end_, row + shift, product_.m - mr);
    llvm::Value* right = beyond(columns_end_, n0_ + panel * nr, product_.n - nr);
    if (!below && !right) return sums;
    sums.in_scratch = below && right ? b.CreateOr(below, right) : below ? below : right;
    if (slices_ > 1) {
      llvm::Value* number = e_.index(right ? t : panel, ts);
      if (below && right) number = b.CreateSelect(right, number, e_.index(panel + tiles_, ts));
      sums.offset = e_.symbol(ts, number, {0, tiles_in_scratch() - 1}) * (mr * nr);
    }
    sums.pointer = b.CreateSelect(sums.in_scratch, in_scratch(ts, sums), sums.pointer);
    sums.stride = b.CreateSelect(sums.in_scratch, i64(b, nr), sums.stride);
    return sums;
  }

  /// A tile's, but for what depends on how the operands are read.
  MicroKernelShape shape_of(const RowsForm& rows) const {
    return {.type = type_,
            .rows = static_cast<int>(blocks_.tile_rows),
            .vectors = static_cast<int>(blocks_.tile_columns / lanes_),
            .lanes = lanes_,
            .last_lanes = lanes_,
            .left = rows,
            .panel_stride = right_ ? right_->depth : blocks_.tile_columns,
            .multiply_add = blocks_.multiply_add,
            .accumulates = slices_ > 1};
  }

  /// Another product of the kernel is made by the same micro-kernel, but for its adding to what earlier slices left:
  /// that one does for this, too.
  bool another_accumulates() const {
    return std::ranges::any_of(plan_.stages, [&](const Stage& s) {
      if (!s.product || sum_type(*s.product) != type_ || s.blocks->multiply_add != blocks_.multiply_add) return false;
      if (s.blocks->tile_rows != blocks_.tile_rows || s.blocks->tile_columns != blocks_.tile_columns) return false;
      return matrix_product(plan_, s, vector_bytes_).k > s.blocks->depth;
    });
  }

  int64_t packed_depth() const { return packing_.form().packed_depth(); }
  /// Where the packed left block's rows lie side by side: how many from one step of the depth to the next. An odd
  /// number of lines, so that a tile's steps share out among all sets of the cache.
  int64_t rows_across() const {
    const int64_t line = kCacheLine / (form_.terms * dtype_bytes(packed_type_));
    return (ceil_div(blocks_.rows + spare_rows(), line) | 1) * line;
  }
  /// Behind those of a block that was moved up: what its last tile reads of them.
  int64_t spare_rows() const {
    return moves_up_ && !moves_rows_ && product_.m % blocks_.tile_rows != 0 ? blocks_.tile_rows - 1 : 0;
  }
  /// Packed bytes of the left side are 128 too large.
  bool biased() const { return blocks_.multiply_add == MultiplyAdd::kBytes; }
  /// Groups of terms in the slice, which are whole steps.
  llvm::Value* groups(llvm::IRBuilder<>& b) const {
    return b.CreateMul(ceil_quotient(b, depth_, i64(b, form_.step)), i64(b, form_.step / form_.terms));
  }
  llvm::Value* bias() const {
    return biased() ? bias_.pointer
                    : llvm::ConstantPointerNull::get(llvm::PointerType::get(kernel_.module().getContext(), 0));
  }
  /// What that makes each of a panel's sums too large by: its product with a row of 128s.
  void sum_bias(llvm::IRBuilder<>& b, llvm::Value* panel) {
    const int64_t nr = blocks_.tile_columns;
    llvm::Value* row = b.CreateInBoundsGEP(b.getInt32Ty(), bias_.pointer, i64(b, nr));
    b.CreateStore(b.getInt32(0x80808080), row);
    MicroKernelShape shape{.type = type_,
                           .rows = 1,
                           .vectors = static_cast<int>(nr / lanes_),
                           .lanes = lanes_,
                           .last_lanes = lanes_,
                           .left = {.k_stride = 0},
                           .panel_stride = nr,
                           .multiply_add = blocks_.multiply_add};
    b.CreateCall(micro_kernel(kernel_.module(), shape, options_),
                 {row, panel, bias_.pointer, i64(b, nr), groups(b), b.getFalse(),
                  llvm::ConstantPointerNull::get(b.getPtrTy()), i64(b, 0), i64(b, 0), i64(b, nr), i64(b, 0)});
  }

  // The left operand in place, at the block's first row and the slice's beginning.
  llvm::Value* left_base(Scope& ss) {
    if (!site_.left) return operand_at(ss, reads_.left_side(), m0_, IndexExpr(0));
    return ss.builder.CreateInBoundsGEP(storage_type(ss.builder, type_, 1), site_.left->pointer, e_.index(k0_, ss));
  }

  llvm::Value* packed_panel(Scope& ps, const IndexExpr& in_group) {
    llvm::Type* packed = storage_type(ps.builder, packed_type_, 1);
    return ps.builder.CreateInBoundsGEP(packed, b_panel_.pointer,
                                        e_.index(in_group * (packed_depth() * blocks_.tile_columns), ps));
  }
  llvm::Value* right_base(Scope& ps, const IndexExpr& column) {
    if (in_panels_) return operand_at(ps, reads_.right_side(), IndexExpr(0), column);
    llvm::Value* base = operand_at(ps, reads_.right_side(), IndexExpr(0), IndexExpr(0));
    return ps.builder.CreateGEP(storage_type(ps.builder, type_, 1), base, e_.index(column * right_->along, ps));
  }
  // Address of an operand in place, at the slice's beginning.
  llvm::Value* operand_at(Scope& s, int side, const IndexExpr& m, const IndexExpr& n) {
    const Instruction* p = dot_.operand(static_cast<size_t>(side));
    Coords at = reads_.read_at(side, reads_.result_coords(m, n), k0_).coords;
    return s.builder.CreateInBoundsGEP(storage_type(s.builder, p->shape.type, 1), operand(side).pointer,
                                       e_.index(linear_index(p->shape, at), s));
  }

  // An operand that is a parameter.
  const BufferRef& operand(int side) const {
    return kernel_.operand(static_cast<size_t>(reads_.operand(side)->attrs.parameter_number));
  }

  static llvm::Value* minimum(Scope& s, llvm::Value* x, int64_t y) {
    return s.builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, i64(s.builder, y));
  }

  // Of an operand that is a plain array of the summed type, or of the terms that are packed into it: of several terms
  // in groups as they lie.
  std::optional<OperandStrides> in_place(int side) {
    const Instruction* p = dot_.operand(static_cast<size_t>(side));
    if (!p->is(Opcode::kParameter) || p->shape.type != packed_type_) return std::nullopt;
    auto strides = operand_strides(dot_, product_, static_cast<size_t>(side), site_.batch, vars_);
    if (strides) strides->along /= form_.terms;
    return strides;
  }

  // Panels packed together, so that a row of the right operand is read in pieces of a few cache lines: as many as leave
  // most of the second cache to the left one.
  int64_t panels_at_once() const {
    constexpr int64_t kPiece = 2048;
    const int64_t nr = blocks_.tile_columns, piece = nr * dtype_bytes(packed_type_);
    if (blocks_.along_depth) return 1;
    const int64_t room = options_.target_info().l2_bytes / 4 / packed_depth();
    int64_t group = std::clamp<int64_t>(std::min(kPiece, room) / piece, 1, 8);
    while (group > 1 && (product_.n % (group * nr) != 0 || blocks_.columns % (group * nr) != 0)) group /= 2;
    return group;
  }

  const KernelPlan& plan_;
  const Stage& stage_;
  KernelBuilder& kernel_;
  ElementEmitter& e_;
  VarSource& vars_;
  const EmitOptions& options_;
  const Instruction& dot_;
  int vector_bytes_;
  MatrixProduct product_;
  Blocks blocks_;
  const ProductSite& site_;
  DType type_;
  IndexExpr m0_{0}, n0_{0}, k0_{0};  // where the task's block and the slice begin
  MatrixProduct packed_;             // the product as it is packed
  ProductReads reads_;
  int lanes_;
  const MultiplyAddForm& form_;
  DType packed_type_;
  Packing packing_;

  int slice_var_ = -1;
  int64_t slices_ = 1, panels_ = 1, tiles_ = 1, group_ = 1;
  llvm::Value* depth_ = nullptr;                // of the slice
  std::optional<OperandStrides> left_, right_;  // of operands read where they lie
  bool in_panels_ = false;                      // the right one lies as the micro-kernel reads it
  bool moves_left_ = false;                     // the last panel begins so early that it is whole
  bool moves_rows_ = false;                     // the last tile of rows begins so early that it is whole
  bool moves_up_ = false;                       // the last block of rows is packed from so early on that it is
  IndexExpr packed_m0_{0};                      // from where on the block's rows are
  std::optional<RowPointers> pointers_;         // to the left one's rows
  bool by_rows_ = false;                        // the left block is packed row by row
  BufferRef b_panel_, a_block_;
  BufferRef bias_;                        // of biased bytes: a panel's, and the left row that it is the product with
  RowTile c_;                             // sums: a tile, or several where slices repeat, or all for stages that follow
  std::optional<int64_t> result_stride_;  // between rows of the result, where sums are put at once
  bool rows_end_ = false, columns_end_ = false;  // within a tile whose sums are not
  std::optional<Epilogue> epilogue_;
};

}  // namespace

void emit_product(KernelBuilder& kernel, const KernelPlan& plan, size_t number, const ProductSite& site,
                  Scratch& scratch) {
  Product(kernel, plan, number, site).run(scratch);
}

}  // namespace hlojit::codegen

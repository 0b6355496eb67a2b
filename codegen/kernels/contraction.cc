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

#include "codegen/kernels/function.h"
#include "codegen/kernels/matrix_tile.h"
#include "codegen/kernels/micro_kernel.h"
#include "codegen/kernels/packing.h"
#include "codegen/kernels/product_places.h"
#include "codegen/kernels/row_pointers.h"
#include "codegen/kernels/tile_sums.h"
#include "codegen/target.h"
#include "compiler/plan/contraction.h"
#include "layout/divide.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

llvm::Value* i64(llvm::IRBuilder<>& b, int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }

class Product {
 public:
  Product(KernelBuilder& kernel, const KernelPlan& plan, size_t number, const ProductSite& site)
      : plan_(plan),
        kernel_(kernel),
        e_(kernel.emitter()),
        vars_(e_.vars()),
        s_(plan, plan.stages[number], e_.options()),
        site_(site),
        m0_(site.m0),
        n0_(site.n0),
        reads_(e_, vars_, s_.dot, s_.packed, site.batch),
        at_(choose_places(s_, site, reads_, kernel)),
        packing_(e_, vars_, reads_, s_.packed, s_.packed_form()) {}

  void run(Scratch& scratch) {
    int64_t mark = scratch.mark();
    take_scratch(scratch);
    Scope& root = kernel_.root();
    if (pointers_) pointers_->begin(root, m0_);
    packed_m0_ = m0_;
    if (at_.moves_up) {
      const int64_t last = product_.m - blocks_.rows;
      packed_m0_ = e_.symbol(root, minimum(root, e_.index(m0_, root), last), {0, last});
    }
    clear_rests(root);
    if (form_.tiles()) begin_tiles(root.builder, kernel_.module(), shape_of({}), *s_.options.target);
    auto slice_loop = open_loop(root, i64(root.builder, s_.slices()), 1, "slice");
    slice(*slice_loop);
    close_loop(root, std::move(slice_loop));
    if (form_.tiles()) end_tiles(root.builder, blocks_.multiply_add, *s_.options.target);
    scratch.release(mark);
  }

 private:
  void take_scratch(Scratch& scratch) {
    const int64_t bytes = dtype_bytes(packed_type_), nr = blocks_.tile_columns, kc = s_.packed_depth();
    if (!at_.right) b_panel_.pointer = scratch.take(kc * nr * at_.group * bytes);
    if (!at_.left && at_.rows.pointed())
      pointers_.emplace(reads_, at_.rows, blocks_, operand(reads_.left_side()), scratch);
    else if (!at_.left)
      a_block_.pointer = scratch.take((at_.by_rows ? blocks_.rows : rows_across()) * kc * bytes);
    if (s_.biased()) bias_.pointer = scratch.take((nr + 1) * dtype_bytes(type_));
    sums_.emplace(kernel_, s_, site_, at_, reads_, scratch);
  }

  /// Zeros where tiles compute what no one packs: rows beyond the last, columns beyond the only panel's. What happened
  /// to be there may be subnormal, which on some machines takes a product a hundred times as long. (A convolution to 67
  /// features: 7.6 ms instead of 0.6.)
  void clear_rests(Scope& root) {
    const int64_t mr = blocks_.tile_rows, nr = blocks_.tile_columns, kc = s_.packed_depth();
    llvm::IRBuilder<>& b = root.builder;
    auto clear = [&](llvm::Value* condition, llvm::Value* at, int64_t elements) {
      guarded(
          root, condition,
          [&] { b.CreateMemSet(at, b.getInt8(0), i64(b, elements * dtype_bytes(packed_type_)), llvm::MaybeAlign()); },
          [] {});
    };
    if (a_block_.pointer && at_.by_rows && at_.rows_end) {
      llvm::Value* rows = e_.index(IndexExpr(product_.m) - m0_, root);
      const IndexExpr last = IndexExpr(product_.m / mr) - floordiv(m0_, mr);
      llvm::Value* at = e_.index(last * (mr * kc), root);
      at = b.CreateInBoundsGEP(storage_type(b, packed_type_, 1), a_block_.pointer, at);
      clear(b.CreateICmpSLT(rows, i64(b, blocks_.rows)), at, mr * kc);
    }
    if (at_.moves_up && spare_rows() > 0) {
      auto loop = open_loop(root, i64(root.builder, kc / form_.terms), 1, "clear");
      llvm::IRBuilder<>& in = loop->builder;
      llvm::Value* at = in.CreateAdd(in.CreateMul(loop->counter, i64(in, rows_across())), i64(in, blocks_.rows));
      at = in.CreateInBoundsGEP(storage_type(in, packed_type_, 1), a_block_.pointer,
                                in.CreateMul(at, i64(in, form_.terms)));
      const int64_t bytes = spare_rows() * form_.terms * dtype_bytes(packed_type_);
      in.CreateMemSet(at, in.getInt8(0), i64(in, bytes), llvm::MaybeAlign());
      close_loop(root, std::move(loop));
    }
    if (b_panel_.pointer && at_.columns % nr != 0) {
      llvm::Value* columns = e_.index(IndexExpr(product_.n) - n0_, root);
      clear(b.CreateICmpULT(columns, i64(b, nr)), b_panel_.pointer, nr * kc);
    }
  }

  void slice(Scope& ss) {
    const int64_t mr = blocks_.tile_rows, nr = blocks_.tile_columns, kc = blocks_.depth;
    Scope& root = kernel_.root();
    slice_var_ = vars_.fresh();
    e_.bind(slice_var_, ss, ss.counter);
    k0_ = IndexExpr::var(slice_var_, s_.slices()) * kc;
    packing_.begin_slice(k0_);
    depth_ = product_.k % kc == 0 ? i64(ss.builder, kc) : minimum(ss, e_.index(IndexExpr(product_.k) - k0_, ss), kc);
    // Rows and columns this block really has, in tiles and groups of panels.
    llvm::Value* rows_left = minimum(root, e_.index(IndexExpr(product_.m) - m0_, root), blocks_.rows);
    llvm::Value* columns_left = minimum(root, e_.index(IndexExpr(product_.n) - n0_, root), blocks_.columns);
    llvm::Value* tile_count = units_left(product_.m, m0_, blocks_.rows, mr);

    pack_left(ss, rows_left, tile_count);
    auto group_loop = open_units(ss, units_left(product_.n, n0_, blocks_.columns, at_.group * nr), "group");
    Scope& gs = *group_loop;
    int group_var = vars_.fresh();
    e_.bind(group_var, gs, gs.counter);
    IndexExpr first_panel = IndexExpr::var(group_var, s_.panels() / at_.group) * at_.group,
              first = n0_ + first_panel * nr;
    // The last panel ends where the operand does, alone in its group, if it may begin earlier.
    if (at_.columns > product_.n) {
      const int64_t last = product_.n - at_.last_columns;
      first = e_.symbol(gs, minimum(gs, e_.index(first, gs), last), {0, last});
    }
    if (!at_.right) pack_right(gs, first_panel, first, columns_left);

    auto panel_loop = open_loop(gs, i64(gs.builder, at_.group), 1, "panel");
    Scope& ps = *panel_loop;
    int panel_var = vars_.fresh();
    e_.bind(panel_var, ps, ps.counter);
    IndexExpr in_group = IndexExpr::var(panel_var, at_.group), panel = first_panel + in_group;
    const IndexExpr column = first + in_group * nr;
    llvm::Value* right = at_.right ? right_base(ps, column) : packed_panel(ps, in_group);
    if (s_.biased()) sum_bias(ps.builder, right);
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

  void pack_left(Scope& ss, llvm::Value* rows_left, llvm::Value* tile_count) {
    if (at_.left) return;
    if (pointers_) return pointers_->begin_slice(ss, m0_, k0_, rows_left);
    const int64_t mr = blocks_.tile_rows, kc = s_.packed_depth();
    if (!at_.by_rows) {
      return packing_.pack_across(ss, a_block_, blocks_.rows, rows_across(), at_.moves_rows ? 1 : mr,
                                  at_.moves_up ? blocks_.rows : product_.m, packed_m0_);
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
      IndexExpr t = IndexExpr::var(var, s_.tiles());
      packing_.pack_rows(*loop, a_block_, t * (kc * mr), mr, product_.m, m0_ + t * mr);
    }
    close_loop(ss, std::move(loop));
  }

  // A group of panels, from number `first_panel` of the block on, which begins at column `first`.
  void pack_right(Scope& gs, const IndexExpr& first_panel, const IndexExpr& first, llvm::Value* columns_left) {
    const int64_t nr = blocks_.tile_columns, kc = s_.packed_depth(), run = std::max<int64_t>(product_.run, 1);
    if (!reads_.in_runs(reads_.right_side()) && !blocks_.along_depth)
      return packing_.pack_columns(gs, b_panel_, at_.group, nr, at_.columns, first,
                                   walks_memory(dot_, product_, blocks_, s_.options.target_info()));
    llvm::Value* left = gs.builder.CreateSub(columns_left, e_.index(first_panel * nr, gs));
    auto loop =
        open_loop(gs, gs.builder.CreateUDiv(minimum(gs, left, at_.group * nr), i64(gs.builder, run)), 1, "pack.run");
    int var = vars_.fresh();
    e_.bind(var, *loop, loop->counter);
    IndexExpr column = IndexExpr::var(var, at_.group * nr / run) * run;
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
    if (!(at_.left || at_.moves_rows) || site_.left || product_.m % mr == 0) return IndexExpr(0);
    llvm::IRBuilder<>& b = ts.builder;
    llvm::Value* over = b.CreateSub(e_.index(m0_ + t * mr, ts), i64(b, product_.m - mr));
    return e_.symbol(ts, b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, over, i64(b, 0)), {0, mr - 1});
  }

  // Of the tile that begins at a row of the block.
  TileRows tile_rows(Scope& ts, Scope& ss, const IndexExpr& row) {
    const int64_t kc = s_.packed_depth();
    llvm::IRBuilder<>& b = ts.builder;
    if (pointers_) return pointers_->tile(ts, row, k0_, form_.terms);
    TileRows rows;
    rows.from = i64(b, 0);
    if (at_.left) {
      rows.form = {.row_stride = at_.left->along, .k_stride = at_.left->depth};
      llvm::Value* first = e_.index(row * at_.left->along, ts);
      rows.a = b.CreateGEP(storage_type(b, type_, 1), left_base(ss), first);
    } else {
      rows.form = {.row_stride = at_.by_rows ? kc / form_.terms : 1, .k_stride = at_.by_rows ? 1 : rows_across()};
      IndexExpr from = row * (at_.by_rows ? kc : form_.terms);
      if (at_.moves_up) from = from + (m0_ - packed_m0_) * form_.terms;
      rows.a = b.CreateInBoundsGEP(storage_type(b, packed_type_, 1), a_block_.pointer, e_.index(from, ts));
    }
    return rows;
  }

  void tile(Scope& ts, Scope& ss, const IndexExpr& panel, llvm::Value* right, const IndexExpr& column) {
    int var = vars_.fresh();
    e_.bind(var, ts, ts.counter);
    IndexExpr t = IndexExpr::var(var, s_.tiles()), first = t * blocks_.tile_rows;
    llvm::IRBuilder<>& b = ts.builder;
    const TileSums::Tile place{t, panel, m0_ + first, column, overlap(ts, t)};
    const TileRows rows = tile_rows(ts, ss, first - place.shift);
    const TileSums::Place sums = sums_->of(ts, place);
    llvm::Value* number = e_.index(IndexExpr::var(slice_var_, s_.slices()), ts);
    const MicroKernelShape shape = shape_of_tile(rows.form);
    const std::vector<llvm::Value*> arguments = {rows.a,
                                                 right,
                                                 sums.pointer,
                                                 sums.stride,
                                                 rows.stretches ? rows.stretches : groups(b),
                                                 b.CreateICmpNE(number, i64(b, 0)),
                                                 bias(),
                                                 rows.from,
                                                 i64(b, shape.left.k_stride),
                                                 i64(b, shape.panel_stride),
                                                 i64(b, shape.left.row_stride)};
    auto multiply = [&](const MicroKernelShape& as) {
      b.CreateCall(micro_kernel(kernel_.module(), as, s_.options), arguments);
    };
    if (const int64_t nr = blocks_.tile_columns; at_.last_columns < nr) {
      llvm::Value* last = b.CreateICmpSGT(e_.index(n0_ + panel * nr, ts), i64(b, product_.n - nr));
      guarded(ts, last, [&] { multiply(shape_of_last(shape)); }, [&] { multiply(shape); });
    } else {
      multiply(shape);
    }
    sums_->finish(ts, place, sums, number);
  }

  /// The last panel's, where it is narrower.
  MicroKernelShape shape_of_last(MicroKernelShape shape) const {
    shape.vectors = static_cast<int>(ceil_div(at_.last_columns, lanes_));
    shape.last_lanes = static_cast<int>(at_.last_columns) - (shape.vectors - 1) * lanes_;
    return shape;
  }

  MicroKernelShape shape_of_tile(const RowsForm& rows) const {
    const int64_t mr = blocks_.tile_rows, nr = blocks_.tile_columns, kc = blocks_.depth;
    const TargetInfo& target = s_.options.target_info();
    // A turn of the loop should be worth counting it; one of a full tile is, and its code is a third of what a product
    // takes to compile. Several terms at once may need a register more each step, which several steps do not have.
    constexpr int64_t kEnough = 12;
    const bool small = mr * nr / lanes_ < kEnough && form_.terms == 1;
    const bool even = rows.stretch % 4 == 0 || rows.shares_pointers();
    MicroKernelShape shape = shape_of(rows);
    shape.unroll = small && kc % 4 == 0 && product_.k % 4 == 0 && even ? 4 : 1;
    const auto left_over = static_cast<int>(product_.n % lanes_);
    if (at_.right && product_.n < nr && !form_.tiles())
      shape.last_lanes = left_over;
    else if (product_.n < nr && product_.n > nr - lanes_ && 2 * left_over <= lanes_ && form_.terms == 1)
      shape.last_lanes = lanes_ / 2;
    if ((at_.result_stride || blocks_.along_depth) && s_.stores_part()) shape.stored_lanes = left_over;
    // (7x7 of 3 channels to 19 features, AVX2: 141 us under a mask, whose register made a sum spill, 66 so.)
    const bool masks = target.vector_registers >= 32, several = product_.n > lanes_ && product_.n < nr;
    shape.moves_back = at_.right && several && !masks && !blocks_.along_depth;
    shape.takes_off = s_.biased();
    if (blocks_.along_depth) {
      shape.along_depth = true;
      shape.panel_stride = at_.right ? at_.right->along : kc / form_.terms;
      shape.unroll = 1;
      const int64_t rest = ceil_div(product_.k, form_.terms) % lanes_;
      if (rest != 0) shape.last_lanes = static_cast<int>(rest);
    }
    // A tall matrix from memory, or one whose rows lie in tiles. (2048x2048 in T(8,128) takes 0.99 of the time, one
    // core of a Zen 4.)
    const bool far = product_.m * product_.k * dtype_bytes(type_) > target.l2_bytes;
    const bool rows_follow = at_.left && rows.k_stride == 1 && rows.row_stride == product_.k && s_.slices() == 1;
    const bool in_tiles = pointers_ && pointers_->by_position() && dot_.is(Opcode::kDot);
    // Of a group's features no prefetcher finds the next position's, and positions as far apart as all groups' share
    // few sets of the first cache: they are there only just before. (3x3 by eight groups of 32 features, a Zen 4:
    // 0.94.)
    const bool apart = pointers_ && pointers_->by_position() && product_.groups() > 1;
    if (apart || (far && rows_follow)) shape.looks_ahead = Cache::kFirst;
    if (far && in_tiles) shape.looks_ahead = Cache::kSecond;
    if (at_.right && !form_.tiles() && walks_memory(dot_, product_, blocks_, target)) shape.looks_down = kc;
    share_strides(shape, std::min(kc, product_.k) / form_.terms);
    if (shape.strides_are_arguments) shape.accumulates |= another_accumulates();
    return shape;
  }

  /// A tile's, but for what depends on how the operands are read.
  MicroKernelShape shape_of(const RowsForm& rows) const {
    return {.type = type_,
            .rows = static_cast<int>(blocks_.tile_rows),
            .vectors = static_cast<int>(blocks_.tile_columns / lanes_),
            .lanes = lanes_,
            .last_lanes = lanes_,
            .left = rows,
            .panel_stride = at_.right ? at_.right->depth : blocks_.tile_columns,
            .multiply_add = blocks_.multiply_add,
            .accumulates = s_.slices() > 1};
  }

  /// Another product of the kernel is made by the same micro-kernel, but for its adding to what earlier slices left:
  /// that one does for this, too.
  bool another_accumulates() const {
    return std::ranges::any_of(plan_.stages, [&](const Stage& s) {
      if (!s.product || sum_type(*s.product) != type_ || s.blocks->multiply_add != blocks_.multiply_add) return false;
      if (s.blocks->tile_rows != blocks_.tile_rows || s.blocks->tile_columns != blocks_.tile_columns) return false;
      return matrix_product(plan_, s, s_.vector_bytes).k > s.blocks->depth;
    });
  }

  /// Where the packed left block's rows lie side by side: how many from one step of the depth to the next. An odd
  /// number of lines, so that a tile's steps share out among all sets of the cache.
  int64_t rows_across() const {
    const int64_t line = kCacheLine / (form_.terms * dtype_bytes(packed_type_));
    return (ceil_div(blocks_.rows + spare_rows(), line) | 1) * line;
  }
  /// Behind those of a block that was moved up: what its last tile reads of them.
  int64_t spare_rows() const {
    return at_.moves_up && !at_.moves_rows && product_.m % blocks_.tile_rows != 0 ? blocks_.tile_rows - 1 : 0;
  }
  /// Groups of terms in the slice, which are whole steps.
  llvm::Value* groups(llvm::IRBuilder<>& b) const {
    return b.CreateMul(ceil_quotient(b, depth_, i64(b, form_.step)), i64(b, form_.step / form_.terms));
  }
  llvm::Value* bias() const {
    return s_.biased() ? bias_.pointer
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
    b.CreateCall(micro_kernel(kernel_.module(), shape, s_.options),
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
                                        e_.index(in_group * (s_.packed_depth() * blocks_.tile_columns), ps));
  }
  llvm::Value* right_base(Scope& ps, const IndexExpr& column) {
    if (at_.in_panels) return operand_at(ps, reads_.right_side(), IndexExpr(0), column);
    llvm::Value* base = operand_at(ps, reads_.right_side(), IndexExpr(0), IndexExpr(0));
    return ps.builder.CreateGEP(storage_type(ps.builder, type_, 1), base, e_.index(column * at_.right->along, ps));
  }
  // Address of an operand in place, at the slice's beginning.
  llvm::Value* operand_at(Scope& s, int side, const IndexExpr& m, const IndexExpr& n) {
    const Instruction* array = reads_.array(side);
    const Coords at = reads_.place_in_array(s, side, reads_.read_at(side, reads_.result_coords(m, n), k0_).coords);
    return s.builder.CreateInBoundsGEP(storage_type(s.builder, array->shape.type, 1), operand(side).pointer,
                                       e_.index(linear_index(array->shape, at), s));
  }

  const BufferRef& operand(int side) const {
    return kernel_.operand(static_cast<size_t>(reads_.array(side)->attrs.parameter_number));
  }

  static llvm::Value* minimum(Scope& s, llvm::Value* x, int64_t y) {
    return s.builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, i64(s.builder, y));
  }

  const KernelPlan& plan_;
  KernelBuilder& kernel_;
  ElementEmitter& e_;
  VarSource& vars_;
  const ProductStage s_;
  const Instruction& dot_ = s_.dot;
  const MatrixProduct& product_ = s_.product;
  const Blocks& blocks_ = s_.blocks;
  const DType type_ = s_.type, packed_type_ = s_.packed_type;
  const int lanes_ = s_.lanes;
  const MultiplyAddForm& form_ = s_.form;
  const ProductSite& site_;
  IndexExpr m0_{0}, n0_{0}, k0_{0};  // where the task's block and the slice begin
  ProductReads reads_;
  const ProductPlaces at_;
  Packing packing_;

  int slice_var_ = -1;
  llvm::Value* depth_ = nullptr;         // of the slice
  IndexExpr packed_m0_{0};               // from where on the block's rows are
  std::optional<RowPointers> pointers_;  // to the left one's rows
  BufferRef b_panel_, a_block_;
  BufferRef bias_;  // of biased bytes: a panel's, and the left row that it is the product with
  std::optional<TileSums> sums_;
};

}  // namespace

void emit_product(KernelBuilder& kernel, const KernelPlan& plan, size_t number, const ProductSite& site,
                  Scratch& scratch) {
  Product(kernel, plan, number, site).run(scratch);
}

}  // namespace hlojit::codegen

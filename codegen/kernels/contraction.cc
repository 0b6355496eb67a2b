#include "codegen/kernels/contraction.h"

#include <algorithm>

#include <llvm/IR/Module.h>

#include "codegen/kernels/function.h"
#include "codegen/kernels/micro_kernel.h"
#include "codegen/target.h"

namespace hlojit::codegen {
namespace {

int64_t product(const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

// A slice of the contracting size that divides it evenly where one of good size exists.
int64_t k_slice(int64_t k) {
  constexpr int64_t kBest = 256;
  if (k <= kBest * 3 / 2) return k;
  for (int64_t unit : {8, 1}) {
    for (int64_t s = kBest / unit * unit; s >= kBest / 2; s -= unit) {
      if (k % s == 0) return s;
    }
  }
  return kBest;
}

class Contraction {
 public:
  Contraction(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan, const OverlapMatrix& overlap,
              const EmitOptions& options)
      : module_(module), fusion_(fusion), plan_(plan), overlap_(overlap), options_(options), dot_(*plan.hero) {
    const DotDims& d = dot_.attrs.dot;
    auto free_dims = [](const Shape& s, const Ints& batch, const Ints& contracting) {
      Ints sizes;
      for (int64_t n = 0; n < s.rank(); ++n) {
        bool taken = std::find(batch.begin(), batch.end(), n) != batch.end() ||
                     std::find(contracting.begin(), contracting.end(), n) != contracting.end();
        if (!taken) sizes.push_back(s.dims[static_cast<size_t>(n)]);
      }
      return sizes;
    };
    for (int64_t n : d.lhs_batch) batch_.push_back(dot_.operand(0)->shape.dims[static_cast<size_t>(n)]);
    lhs_free_ = free_dims(dot_.operand(0)->shape, d.lhs_batch, d.lhs_contracting);
    rhs_free_ = free_dims(dot_.operand(1)->shape, d.rhs_batch, d.rhs_contracting);
    contracting_ = reduction_sizes(dot_);
    type_ = is_narrow_float(dot_.shape.type) ? DType::kF32 : dot_.shape.type;
    // Lanes go along the result's most minor dim: if that one is the left operand's, sides are swapped.
    const Layout& layout = plan_.roots[0]->shape.layout;
    auto minor = layout.minor_to_major.empty() ? 0 : layout.minor_to_major[0];
    swapped_ = minor >= static_cast<int64_t>(batch_.size()) && minor < static_cast<int64_t>(batch_.size() + lhs_free_.size());
    m_ = product(swapped_ ? rhs_free_ : lhs_free_);
    n_ = product(swapped_ ? lhs_free_ : rhs_free_);
    k_ = product(contracting_);
    vector_bytes_ = options.vector_bytes ? options.vector_bytes : options.target->vector_bytes();
  }

  bool pays() const {
    bool type_fits = type_ == DType::kF32 || type_ == DType::kF64 || type_ == DType::kS32;
    RegisterTile t = register_tile(*options_.target, vector_bytes_, type_);
    return type_fits && m_ >= 4 && n_ >= t.lanes && k_ >= 8;
  }

  std::vector<KernelFunction> run() {
    tile_ = register_tile(*options_.target, vector_bytes_, type_);
    tile_.rows = static_cast<int>(std::min<int64_t>(tile_.rows, m_));
    const int64_t mr = tile_.rows, nr = tile_.columns(), bytes = dtype_bytes(type_);
    int64_t kc = k_slice(k_);
    pair_lanes_ = kc % 2 == 0 && k_ % 2 == 0 ? pair_lanes() : 0;
    packed_type_ = pair_lanes_ ? DType::kS16 : type_;
    const int64_t packed_bytes = dtype_bytes(packed_type_), pair = pair_lanes_ ? 2 : 1;
    int64_t batches = product(batch_);
    // Blocks by shape alone: the left one fills most of L2, for then packing costs least; equal in size.
    int64_t mb_most = std::clamp<int64_t>(options_.target->info().l2_bytes * 11 / 16 / (kc * packed_bytes), 48, 480) / mr * mr;
    int64_t mb = round_up(blocks_of(m_, blocks_of(m_, mb_most)), mr);
    int64_t nb = round_up(blocks_of(n_, blocks_of(n_, 512)), nr);
    auto tasks = [&] { return batches * blocks_of(m_, mb) * blocks_of(n_, nb); };
    double flops = 2.0 * static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_) * static_cast<double>(batches);
    int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(flops / 2e6), 1, 8);
    while (tasks() < wanted && nb > 8 * nr) nb = round_up(nb / 2, nr);
    while (tasks() < wanted && mb > 8 * mr) mb = round_up(mb / 2, mr);

    VarSource vars;
    KernelBuilder kernel(module_, fusion_, overlap_, options_, vars, "");
    ElementEmitter& e = kernel.emitter();
    Scope& root = kernel.root();
    // Chunk number -> (batch dims, block of rows, block of columns).
    LoopPiece grid;
    Coords batch;
    for (int64_t n : batch_) {
      grid.loops.push_back({vars.fresh(), n, std::nullopt, std::nullopt});
      batch.push_back(IndexExpr::var(grid.loops.back().var, n));
    }
    grid.loops.push_back({vars.fresh(), blocks_of(m_, mb), std::nullopt, std::nullopt});
    IndexExpr m0 = IndexExpr::var(grid.loops.back().var, blocks_of(m_, mb)) * mb;
    grid.loops.push_back({vars.fresh(), blocks_of(n_, nb), std::nullopt, std::nullopt});
    IndexExpr n0 = IndexExpr::var(grid.loops.back().var, blocks_of(n_, nb)) * nb;
    int64_t chunks = kernel.bind_chunks(grid, grid.loops.size());

    // Scratch: B panel, A block (if packed), C tiles (one, or all of the block when slices repeat).
    bool sliced = k_ > kc;
    int64_t group = panels_at_once(nb);
    int64_t b_bytes = round_up(kc * nr * group * packed_bytes, 64);
    std::optional<Strides> direct = left_in_place(vars, batch);
    // Rows a page or more apart share few cache sets and need a TLB entry each: those are copied.
    if (direct && direct->row * bytes >= 4096) direct.reset();
    bool by_rows = !direct && left_minor_contracts();
    int64_t a_bytes = direct ? 0 : round_up(mb * kc * packed_bytes, 64);
    int64_t panels = nb / nr, tiles = mb / mr;
    int64_t c_bytes = (sliced ? panels * tiles : 1) * mr * nr * bytes;
    llvm::IRBuilder<>& rb = root.builder;
    auto at = [&](int64_t offset) { return rb.CreateConstInBoundsGEP1_64(rb.getInt8Ty(), kernel.scratch(), static_cast<uint64_t>(offset)); };
    BufferRef b_panel{at(0), nullptr, nullptr}, a_block{at(b_bytes), nullptr, nullptr};
    llvm::Value* c_tiles = at(b_bytes + a_bytes);

    auto number = [](llvm::IRBuilder<>& b, int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); };
    auto minimum = [&](Scope& s, llvm::Value* x, int64_t y) {
      return s.builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, number(s.builder, y));
    };
    // Rows and columns this block really has, in tiles and panels.
    llvm::Value* rows_left = minimum(root, e.index(IndexExpr(m_) - m0, root), mb);
    llvm::Value* columns_left = minimum(root, e.index(IndexExpr(n_) - n0, root), nb);
    auto ceil_div = [&](Scope& s, llvm::Value* x, int64_t y) {
      return s.builder.CreateUDiv(s.builder.CreateAdd(x, number(s.builder, y - 1)), number(s.builder, y));
    };
    llvm::Value* tile_count = ceil_div(root, rows_left, mr);
    llvm::Value* panel_count = ceil_div(root, columns_left, nr);

    int64_t slices = blocks_of(k_, kc);
    auto slice_loop = open_loop(root, number(rb, slices), 1, "slice");
    Scope& ss = *slice_loop;
    int slice_var = vars.fresh();
    e.bind(slice_var, ss, ss.counter);
    IndexExpr k0 = IndexExpr::var(slice_var, slices) * kc;
    llvm::Value* depth = k_ % kc == 0 ? number(ss.builder, kc) : minimum(ss, e.index(IndexExpr(k_) - k0, ss), kc);

    if (by_rows) {
      auto pack_loop = open_loop(ss, rows_left, 1, "pack.row");
      int var = vars.fresh();
      e.bind(var, *pack_loop, pack_loop->counter);
      IndexExpr i = IndexExpr::var(var, mb);
      pack_row(e, *pack_loop, a_block, i * kc, m0 + i, k0, kc, batch);
      close_loop(ss, std::move(pack_loop));
    } else if (!direct) {
      auto pack_loop = open_loop(ss, tile_count, 1, "pack.tile");
      int var = vars.fresh();
      e.bind(var, *pack_loop, pack_loop->counter);
      IndexExpr tile_index = IndexExpr::var(var, tiles);
      pack(e, *pack_loop, a_block, tile_index * (kc * mr), 1, mr, m_, m0 + tile_index * mr, k0, kc, batch, true);
      close_loop(ss, std::move(pack_loop));
    }
    auto group_loop = open_loop(ss, group == 1 ? panel_count : ceil_div(ss, panel_count, group), 1, "group");
    Scope& gs = *group_loop;
    int group_var = vars.fresh();
    e.bind(group_var, gs, gs.counter);
    IndexExpr first_panel = IndexExpr::var(group_var, panels / group) * group;
    pack(e, gs, b_panel, IndexExpr(0), group, nr, n_, n0 + first_panel * nr, k0, kc, batch, false);

    auto panel_loop = open_loop(gs, number(gs.builder, group), 1, "panel");
    Scope& ps = *panel_loop;
    int panel_var = vars.fresh();
    e.bind(panel_var, ps, ps.counter);
    IndexExpr in_group = IndexExpr::var(panel_var, group);
    IndexExpr panel_index = first_panel + in_group;
    IndexExpr column = n0 + panel_index * nr;

    auto tile_loop = open_loop(ps, tile_count, 1, "tile");
    Scope& ts = *tile_loop;
    int tile_var = vars.fresh();
    e.bind(tile_var, ts, ts.counter);
    IndexExpr tile_index = IndexExpr::var(tile_var, tiles);
    IndexExpr row = m0 + tile_index * mr;
    llvm::IRBuilder<>& b = ts.builder;
    llvm::Type *element = storage_type(b, type_, 1), *packed = storage_type(b, packed_type_, 1);
    llvm::Value* a = nullptr;
    int64_t row_stride = by_rows ? kc / pair : 1, k_stride = by_rows ? 1 : mr;
    // Rows a tile in place starts too low by to stay inside the operand.
    IndexExpr shift(0);
    if (direct) {
      row_stride = direct->row;
      k_stride = direct->k;
      if (m_ % mr != 0) {
        llvm::Value* over = b.CreateSub(e.index(row, ts), number(b, m_ - mr));
        shift = e.symbol(ts, b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, over, number(b, 0)), {0, mr - 1});
      }
      Coords rc = result_coords(batch, m0 , IndexExpr(0));
      Coords at_k = *operand_coords(dot_, swapped_ ? 1 : 0, rc, delinearize(contracting_, k0));
      const Instruction* p = dot_.operand(swapped_ ? 1 : 0);
      llvm::Value* block = ss.builder.CreateInBoundsGEP(element, kernel.operand(static_cast<size_t>(p->attrs.parameter_number)).pointer,
                              e.index(linear_index(p->shape, at_k), ss));
      a = b.CreateGEP(element, block, e.index((tile_index * mr - shift) * row_stride, ts));
    } else {
      a = b.CreateInBoundsGEP(packed, a_block.pointer, e.index(tile_index * (kc * mr), ts));
    }
    IndexExpr c_offset = sliced ? (panel_index * tiles + tile_index) * (mr * nr) : IndexExpr(0);
    llvm::Value* c = b.CreateInBoundsGEP(element, c_tiles, e.index(c_offset, ts));
    llvm::Value* accumulate = b.CreateICmpNE(e.index(IndexExpr::var(slice_var, slices), ts), number(b, 0));
    llvm::Value* panel = ps.builder.CreateInBoundsGEP(packed, b_panel.pointer, e.index(in_group * (kc * nr), ps));
    int unroll = kc % (4 * pair) == 0 && k_ % (4 * pair) == 0 ? 4 : 1;
    MicroKernelShape shape{type_, tile_.rows, tile_.vectors, tile_.lanes, row_stride, k_stride, unroll,
                           pair_lanes_, sliced};
    b.CreateCall(micro_kernel(module_, shape), {a, panel, c, b.CreateUDiv(depth, number(b, pair)), accumulate});
    c_offset = c_offset + shift * nr;
    llvm::Value* last = sliced ? ts.builder.CreateICmpEQ(e.index(IndexExpr::var(slice_var, slices), ts), number(ts.builder, slices - 1))
                               : nullptr;
    if (last) {
      either(ts, last, [&] { epilogue(kernel, ts, batch, row, column, c_tiles, c_offset); }, [] {});
    } else {
      epilogue(kernel, ts, batch, row, column, c_tiles, c_offset);
    }
    close_loop(ps, std::move(tile_loop));
    close_loop(gs, std::move(panel_loop));
    close_loop(ss, std::move(group_loop));
    close_loop(root, std::move(slice_loop));
    return {{kernel.finish(), chunks, b_bytes + a_bytes + c_bytes, static_cast<int64_t>(flops / 60)}};
  }

 private:
  struct Strides {
    int64_t row, k;
  };

  Coords result_coords(const Coords& batch, const IndexExpr& m, const IndexExpr& n) const {
    Coords c = batch;
    auto append = [&](const Ints& sizes, const IndexExpr& position) {
      for (const IndexExpr& x : delinearize(sizes, position)) c.push_back(x);
    };
    append(lhs_free_, swapped_ ? n : m);
    append(rhs_free_, swapped_ ? m : n);
    return c;
  }

  // The left operand as a plain array whose address is affine in row and k.
  std::optional<Strides> left_in_place(VarSource& vars, const Coords& batch) const {
    const Instruction* p = dot_.operand(swapped_ ? 1 : 0);
    if (!p->is(Opcode::kParameter) || p->shape.type != type_) return std::nullopt;
    int m = vars.fresh(), k = vars.fresh();
    Coords rc = result_coords(batch, IndexExpr::var(m, m_), IndexExpr(0));
    Coords at = *operand_coords(dot_, swapped_ ? 1 : 0, rc, delinearize(contracting_, IndexExpr::var(k, k_)));
    IndexExpr address = linear_index(p->shape, at);
    auto row = address.coefficient(m), along = address.coefficient(k);
    if (!row || !along) return std::nullopt;
    return Strides{*row, *along};
  }

  static void either(Scope& s, llvm::Value* condition, const std::function<void()>& yes, const std::function<void()>& no) {
    auto& context = s.builder.getContext();
    llvm::Function* f = s.builder.GetInsertBlock()->getParent();
    auto* first = llvm::BasicBlock::Create(context, "yes", f);
    auto* second = llvm::BasicBlock::Create(context, "no", f);
    auto* join = llvm::BasicBlock::Create(context, "join", f);
    s.builder.CreateCondBr(condition, first, second);
    s.builder.SetInsertPoint(first);
    yes();
    s.builder.CreateBr(join);
    s.builder.SetInsertPoint(second);
    no();
    s.builder.CreateBr(join);
    s.builder.SetInsertPoint(join);
  }

  // A nest over a fixed box inside `scope`, in a scope of its own (values must not leak past branches).
  void nest(ElementEmitter& e, Scope& scope, std::span<const int64_t> dims,
            const std::function<void(AccessWalk&, const Coords&)>& walk,
            const std::function<void(Scope&, const Coords&, const Unroll&)>& body, int unroll) {
    int lanes = std::max(1, vector_bytes_ / 4);
    for (LoopPiece& piece : plan_loops(dims, e.vars(), walk, {true, lanes, unroll ? lanes : 0, false, true})) {
      e.loops(scope, piece, 0, e.widths(piece, lanes, lanes, true), {},
              [&](Scope& s, const Coords& coords, const Lanes&, const ElementEmitter::Carried&) {
        body(s, coords, piece.unroll);
        return ElementEmitter::Carried{};
      });
    }
  }

  // Panels packed together, so that a row of the right operand is read in pieces of a few cache lines.
  int64_t panels_at_once(int64_t nb) const {
    int64_t group = 4;
    while (group > 1 && (n_ % (group * tile_.columns()) != 0 || nb % (group * tile_.columns()) != 0)) group /= 2;
    return group;
  }

  // Integers of at most 16 bits are multiplied in pairs: lanes of the instruction, 0 if that is not to be had.
  int pair_lanes() const {
    auto fits = [&](size_t side) {
      DType t = dot_.operand(side)->shape.type;
      return t == DType::kS8 || t == DType::kU8 || t == DType::kS16;
    };
    if (type_ != DType::kS32 || tile_.lanes < 8 || !fits(0) || !fits(1) || !left_minor_contracts()) return 0;
    return tile_.lanes >= 16 && options_.target->isa() == Isa::kAvx512 ? 16 : 8;
  }

  // Whether elements of the left operand that are neighbours in memory differ in k, not in the row.
  bool left_minor_contracts() const {
    const Instruction* p = dot_.operand(swapped_ ? 1 : 0);
    const Ints& contracting = swapped_ ? dot_.attrs.dot.rhs_contracting : dot_.attrs.dot.lhs_contracting;
    const Instruction* source = p->is(Opcode::kTranspose) ? p->operand(0) : p;
    if (source->shape.layout.minor_to_major.empty()) return false;
    int64_t minor = source->shape.layout.minor_to_major[0];
    if (source != p) {
      const Ints& from = p->attrs.dimensions;
      minor = std::find(from.begin(), from.end(), minor) - from.begin();
    }
    return std::find(contracting.begin(), contracting.end(), minor) != contracting.end();
  }

  // Copies one slice of a row of the left operand to `offset`.
  void pack_row(ElementEmitter& e, Scope& scope, const BufferRef& target, const IndexExpr& offset, const IndexExpr& row,
                const IndexExpr& k0, int64_t kc, const Coords& batch) {
    int side = swapped_ ? 1 : 0;
    const Instruction* value = dot_.operand(static_cast<size_t>(side));
    auto emit_box = [&](int64_t depth) {
      auto at = [&](const Coords& c) {
        return *operand_coords(dot_, side, result_coords(batch, row, IndexExpr(0)), delinearize(contracting_, k0 + c[0]));
      };
      Shape box = Shape::array(packed_type_, {depth});
      auto walk = [&](AccessWalk& w, const Coords& c) {
        w.write(box, c);
        w.read(value, at(c));
      };
      std::vector<int64_t> dims = {depth};
      nest(e, scope, dims, walk, [&](Scope& s, const Coords& c, const Unroll&) {
        e.store(s, target, offset + c[0], convert(s.builder, e.number(), e.emit(value, at(c), s), packed_type_));
      }, false);
    };
    if (k_ % kc == 0) return emit_box(kc);
    llvm::Value* whole = scope.builder.CreateICmpSLE(e.index(k0, scope), scope.builder.getInt64(static_cast<uint64_t>(k_ - kc)));
    guarded(scope, whole, [&] { emit_box(kc); }, [&] { emit_box(k_ % kc); });
  }

  // Packs `group` panels of `width` rows or columns from `first` on, one slice deep, each as [k][width]
  // or [k/2][width][2], at `offset`. Only whole panels come in groups.
  void pack(ElementEmitter& e, Scope& scope, const BufferRef& target, const IndexExpr& offset, int64_t group, int64_t width, int64_t size,
            const IndexExpr& first, const IndexExpr& k0, int64_t kc, const Coords& batch, bool left) {
    int side = left != swapped_ ? 0 : 1;
    const int64_t pair = pair_lanes_ ? 2 : 1;
    const Instruction* value = dot_.operand(static_cast<size_t>(side));
    auto emit_box = [&](int64_t columns, int64_t depth) {
      auto operand_at = [&](const Coords& c) {
        IndexExpr position = first + c[1] * width + c[2];
        Coords rc = left ? result_coords(batch, position, IndexExpr(0)) : result_coords(batch, IndexExpr(0), position);
        return *operand_coords(dot_, side, rc, delinearize(contracting_, k0 + c[0] * pair + c[3]));
      };
      auto target_at = [&](const Coords& c) { return offset + c[1] * (kc * width) + (c[0] * width + c[2]) * pair + c[3]; };
      // For the order of the loops the panels lie side by side, with a gap: k goes outermost.
      Shape box = Shape::array(packed_type_, {depth / pair, group, group == 1 ? width : 2 * width, pair});
      auto walk = [&](AccessWalk& w, const Coords& c) {
        w.write(box, c);
        w.read(value, operand_at(c));
      };
      std::vector<int64_t> dims = {depth / pair, group, columns, pair};
      nest(e, scope, dims, walk, [&](Scope& s, const Coords& c, const Unroll& unroll) {
        std::vector<Value> values;
        std::vector<IndexExpr> addresses;
        auto one = [&](const Coords& x) {
          values.push_back(convert(s.builder, e.number(), e.emit(value, operand_at(x), s), packed_type_));
          addresses.push_back(target_at(x));
        };
        if (unroll.var < 0) {
          one(c);
          e.store(s, target, addresses[0], values[0]);
          return;
        }
        e.begin_block(s, unroll);
        for (const IndexExpr& u : e.block()) {
          std::vector<std::optional<IndexExpr>> values_of(static_cast<size_t>(unroll.var) + 1);
          values_of.back() = u;
          Coords x;
          for (const IndexExpr& y : c) x.push_back(y.substitute(values_of));
          one(x);
        }
        e.store_block(s, target, addresses, values);
      }, true);
    };
    auto deep = [&](int64_t columns) {
      if (k_ % kc == 0) return emit_box(columns, kc);
      llvm::Value* whole = scope.builder.CreateICmpSLE(e.index(k0, scope), scope.builder.getInt64(static_cast<uint64_t>(k_ - kc)));
      guarded(scope, whole, [&] { emit_box(columns, kc); }, [&] { emit_box(columns, k_ % kc); });
    };
    int64_t tail = size % width;
    if (tail == 0) return deep(width);
    llvm::Value* whole = scope.builder.CreateICmpSLE(e.index(first, scope), scope.builder.getInt64(static_cast<uint64_t>(size - width)));
    guarded(scope, whole, [&] { deep(width); }, [&] { deep(tail); });
  }

  // Branches inside which values may be emitted into `scope`: what one branch memoised must not be
  // seen by the other or by what follows.
  void guarded(Scope& scope, llvm::Value* condition, const std::function<void()>& yes,
               const std::function<void()>& no) {
    auto memo = scope.memo;
    auto reductions = scope.reductions;
    auto reset = [&] {
      scope.memo = memo;
      scope.reductions = reductions;
    };
    either(scope, condition, [&] { yes(); reset(); }, [&] { no(); reset(); });
  }

  void epilogue(KernelBuilder& kernel, Scope& scope, const Coords& batch, const IndexExpr& row, const IndexExpr& column,
                llvm::Value* c_tiles, const IndexExpr& c_offset) {
    ElementEmitter& e = kernel.emitter();
    const int64_t mr = tile_.rows, nr = tile_.columns();
    BufferRef tiles{c_tiles, nullptr, nullptr};
    IndexExpr local(0);
    e.provide(&dot_, [&](ElementEmitter& emitter, Scope& s, const Coords&) {
      Value raw = emitter.load(s, tiles, type_, local);
      return convert(s.builder, emitter.number(), raw, dot_.shape.type);
    });
    llvm::Value* rows = scope.builder.getInt64(static_cast<uint64_t>(mr));
    if (m_ % mr != 0) {
      rows = scope.builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, e.index(IndexExpr(m_) - row, scope), rows);
    }
    auto box = [&](int64_t columns) {
      auto row_loop = open_loop(scope, rows, 1, "row");
      int i = e.vars().fresh(), j = e.vars().fresh();
      e.bind(i, *row_loop, row_loop->counter);
      IndexExpr in_tile = IndexExpr::var(i, mr);
      LoopPiece piece;
      piece.loops = {{j, columns, std::nullopt, std::nullopt}};
      piece.has_lanes = columns > 1;
      piece.coords = {IndexExpr::var(j, columns)};
      int lanes = std::min<int>(tile_.lanes, vector_bytes_ / 4);
      e.loops(*row_loop, piece, 0, e.widths(piece, lanes, lanes, true), {},
              [&](Scope& s, const Coords& c, const Lanes&, const ElementEmitter::Carried&) {
        local = c_offset + in_tile * nr + c[0];
        Coords at = result_coords(batch, row + in_tile, column + c[0]);
        std::vector<Value> values;
        for (const Instruction* r : plan_.roots) values.push_back(e.emit(r, at, s));
        for (size_t k = 0; k < values.size(); ++k) {
          e.store(s, kernel.result(k), linear_index(plan_.roots[k]->shape, at), values[k]);
        }
        return ElementEmitter::Carried{};
      });
      close_loop(scope, std::move(row_loop));
    };
    if (n_ % nr == 0) return box(nr);
    llvm::Value* whole = scope.builder.CreateICmpSLE(e.index(column, scope), scope.builder.getInt64(static_cast<uint64_t>(n_ - nr)));
    guarded(scope, whole, [&] { box(nr); }, [&] { box(n_ % nr); });
  }

  llvm::Module& module_;
  const Instruction& fusion_;
  const KernelPlan& plan_;
  const OverlapMatrix& overlap_;
  const EmitOptions& options_;
  const Instruction& dot_;
  Ints batch_, lhs_free_, rhs_free_, contracting_;
  DType type_ = DType::kF32;
  DType packed_type_ = DType::kF32;
  int pair_lanes_ = 0;
  bool swapped_ = false;
  int64_t m_ = 0, n_ = 0, k_ = 0;
  int vector_bytes_ = 32;
  RegisterTile tile_;
};

}  // namespace

std::optional<std::vector<KernelFunction>> emit_contraction(llvm::Module& module, const Instruction& fusion,
                                                            const KernelPlan& plan, const OverlapMatrix& overlap,
                                                            const EmitOptions& options) {
  Contraction c(module, fusion, plan, overlap, options);
  if (!c.pays()) return std::nullopt;
  return c.run();
}

}  // namespace hlojit::codegen

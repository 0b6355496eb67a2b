// See row_pointers.h.
#include "codegen/kernels/row_pointers.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "codegen/number/value.h"
#include "layout/divide.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

llvm::Value* i64(llvm::IRBuilder<>& b, int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }

llvm::Value* minimum(llvm::IRBuilder<>& b, llvm::Value* x, int64_t y) {
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, i64(b, y));
}

// The entries of a row are stored as vectors; what the last one has too many the next row overwrites.
int lanes_of(int64_t entries, int vector_bytes) {
  const auto fit = static_cast<uint64_t>(std::max(vector_bytes / 8, 1));
  return static_cast<int>(std::min(std::bit_ceil(static_cast<uint64_t>(entries)), fit));
}

// A bit for each of some lanes, all of them if `inside` is null, from the `first` on.
llvm::Value* in_set(llvm::IRBuilder<>& b, llvm::Value* inside, int lanes, int64_t first) {
  if (!inside) return i64(b, static_cast<int64_t>((uint64_t{1} << lanes) - 1) << first);
  inside = splat(b, {DType::kPred, inside}, lanes).v;
  llvm::Value* bits = b.CreateZExt(b.CreateBitCast(inside, b.getIntNTy(static_cast<unsigned>(lanes))), b.getInt64Ty());
  return b.CreateShl(bits, static_cast<uint64_t>(first));
}

}  // namespace

RowPointers::RowPointers(ProductReads& reads, const RowsInPlace& rows, const Blocks& blocks, const BufferRef& operand,
                         Scratch& scratch)
    : reads_(reads),
      e_(reads.emitter()),
      blocks_(blocks),
      operand_(operand),
      stretch_(rows.stretch),
      together_(by_position() ? rows.in_line : rows.together),
      apart_(rows.apart),
      entries_(by_position() ? ceil_div(reads.product().k, stretch_) : blocks.depth),
      skips_(by_position() && tiles_reach_out()) {
  const int64_t too_many = by_position() ? lanes_of(entries_, e_.vector_bytes()) : 0;
  const int64_t entries = blocks_.rows / together_ * entries_ + too_many;
  table_ = scratch.take(entries * 8);
  zeros_ = scratch.take(zero_bytes());
  if (skips_) sets_ = scratch.take(blocks_.rows * 8);
}

int64_t RowPointers::zero_bytes() const {
  return std::max(stretch_, together_) * dtype_bytes(reads_.operand(reads_.left_side())->shape.type);
}

void RowPointers::each_line(Scope& scope, llvm::Value* count, int64_t most,
                            const std::function<void(Scope&, const IndexExpr&)>& entries) {
  auto loop = open_loop(scope, count, 1, "point");
  const int line = reads_.vars().fresh();
  e_.bind(line, *loop, loop->counter);
  entries(*loop, IndexExpr::var(line, most));
  close_loop(scope, std::move(loop));
}

Read RowPointers::read_at(const Coords& row, const IndexExpr& depth) {
  const MatrixProduct& p = reads_.product();
  const Coords columns((p.swapped ? p.lhs_free : p.rhs_free).size(), IndexExpr(0));
  const Coords result = reads_.joined(row, columns);
  return reads_.of_images(reads_.read_at(reads_.left_side(), result, depth), result);
}

bool RowPointers::tiles_reach_out() {
  const MatrixProduct& p = reads_.product();
  Coords row;
  int inner = -1;
  for (const Factor& f : p.swapped ? p.rhs_free : p.lhs_free)
    row.push_back(IndexExpr::var(inner = reads_.vars().fresh(), f.size));
  if (row.empty() || row.back().range().hi + 1 < blocks_.tile_rows) return false;
  const Read read = read_at(row, IndexExpr::var(reads_.vars().fresh(), p.k));
  return std::ranges::any_of(read.guards, [&](const Guard& g) { return !g.always() && !g.expr.depends_on(inner); });
}

llvm::Value* RowPointers::address(Scope& s, const Read& read, llvm::Value* inside, int lanes) const {
  const Shape& shape = reads_.operand(reads_.left_side())->shape;
  auto in_lanes = [&](llvm::Value* x) { return splat(s.builder, {DType::kS64, x}, lanes).v; };
  llvm::Value* at = in_lanes(e_.index(origin_ + linear_index(shape, read.coords) * dtype_bytes(shape.type), s));
  return inside ? s.builder.CreateSelect(inside, at, in_lanes(nothing_)) : at;
}

llvm::Value* RowPointers::store(Scope& s, const Coords& row, const IndexExpr& depth, const IndexExpr& place,
                                int lanes) {
  const Read read = read_at(row, depth);
  llvm::Value* inside = e_.holds(read.guards, s);
  e_.store(s, {table_, nullptr, nullptr}, place, {DType::kS64, address(s, read, inside, lanes)});
  return inside;
}

llvm::Value* RowPointers::stretches(Scope& s, const IndexExpr& row, const IndexExpr& k0) const {
  llvm::IRBuilder<>& b = s.builder;
  llvm::Value* first = b.CreateInBoundsGEP(b.getInt64Ty(), sets_, e_.index(row, s));
  llvm::Value* all = b.CreateLoad(b.getInt64Ty(), first);
  for (int64_t k = 1; k < blocks_.tile_rows; ++k)
    all = b.CreateOr(all, b.CreateLoad(b.getInt64Ty(),
                                       b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), first, static_cast<uint64_t>(k))));
  if (blocks_.depth < reads_.product().k) all = b.CreateLShr(all, e_.index(floordiv(k0, stretch_), s));
  const int64_t count = std::min(entries_, std::max<int64_t>(blocks_.depth / stretch_, 1));
  if (count < 64) all = b.CreateAnd(all, i64(b, (int64_t{1} << count) - 1));
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, all, i64(b, 1));
}

void RowPointers::begin(Scope& root, const IndexExpr& m0) {
  llvm::IRBuilder<>& b = root.builder;
  b.CreateMemSet(zeros_, b.getInt8(0), static_cast<uint64_t>(zero_bytes()), llvm::Align(64));
  nothing_ = b.CreatePtrToInt(zeros_, b.getInt64Ty());
  origin_ = e_.symbol(root, b.CreatePtrToInt(operand_.pointer, b.getInt64Ty()), {0, INT64_MAX});
  if (!by_position()) return;

  // Rows that the last tile has too many repeat the last one.
  const int64_t m = reads_.product().m;
  llvm::Value* rows = minimum(b, e_.index(IndexExpr(m) - m0, root), blocks_.rows);
  llvm::Value* tiles = ceil_quotient(b, rows, i64(b, blocks_.tile_rows));
  const int lanes = lanes_of(entries_, e_.vector_bytes());
  each_line(root, b.CreateMul(tiles, i64(b, blocks_.tile_rows / together_)), blocks_.rows / together_,
            [&](Scope& s, const IndexExpr& line) {
              const int64_t last = m / together_ - 1;
              llvm::Value* there = minimum(s.builder, e_.index(floordiv(m0, together_) + line, s), last);
              const Coords row = reads_.starts(s, reads_.left_side(), e_.symbol(s, there, {0, last}) * together_);
              llvm::Value* set = i64(s.builder, 0);
              for (int64_t first = 0; first < entries_; first += lanes) {
                const int entry = reads_.vars().fresh();
                LoopPiece piece;
                piece.loops = {{entry, lanes, std::nullopt, std::nullopt}};
                piece.has_lanes = lanes > 1;
                piece.coords = {IndexExpr::var(entry, lanes) + first};
                auto body = [&](Scope& at, const Coords& k, const Lanes&, const ElementEmitter::Carried&) {
                  llvm::Value* inside = store(at, row, k[0] * stretch_, line * entries_ + k[0], lanes);
                  if (skips_) set = at.builder.CreateOr(set, in_set(at.builder, inside, lanes, first));
                  return ElementEmitter::Carried{};
                };
                e_.loops(s, piece, 0, lane_widths(piece, lanes, lanes, true), {}, body);
              }
              if (skips_) e_.store(s, {sets_, nullptr, nullptr}, line, {DType::kS64, set});
            });
}

void RowPointers::begin_slice(Scope& scope, const IndexExpr& m0, const IndexExpr& k0, llvm::Value* rows) {
  if (by_position()) return;
  llvm::Value* groups = scope.builder.CreateUDiv(rows, i64(scope.builder, together_));
  each_line(scope, groups, blocks_.rows / together_, [&](Scope& s, const IndexExpr& line) {
    const Coords row = reads_.starts(s, reads_.left_side(), m0 + line * together_);
    const int lanes = e_.vector_bytes() / 8;
    reads_.in_slice(s, k0, blocks_.depth, [&](const IndexExpr& from, int64_t depth) {
      auto walk = [&](AccessWalk& w, const Coords& entry) {
        w.write(DType::kS64, line * entries_ + entry[0]);
        reads_.walk(w, read_at(row, from + entry[0]));
      };
      for (LoopPiece& piece : plan_loops(Ints{depth}, reads_.vars(), walk, {.max_lanes = lanes, .overlap = true})) {
        auto body = [&](Scope& at, const Coords& k, const Lanes& part, const ElementEmitter::Carried&) {
          store(at, row, from + k[0], line * entries_ + k[0], part.count);
          return ElementEmitter::Carried{};
        };
        e_.loops(s, piece, 0, lane_widths(piece, lanes, lanes, true), {}, body);
      }
    });
  });
}

TileRows RowPointers::tile(Scope& s, const IndexExpr& row, const IndexExpr& k0, int64_t terms) const {
  TileRows rows;
  IndexExpr from(0), entry(0);
  if (by_position()) {
    rows.form = {.row_stride = entries_, .stretch = std::min(stretch_, blocks_.depth) / terms};
    rows.form.apart = apart_ / terms;
    rows.form.ends_within = reads_.product().k % stretch_ != 0;
    from = floordiv(mod(k0, stretch_), terms);
    entry = floordiv(row, together_) * entries_ + floordiv(k0, stretch_);
    rows.form.skips = skips_;
    if (skips_) rows.stretches = stretches(s, row, k0);
  } else {
    rows.form = {.row_stride = 0, .stretch = 1};
    from = mod(row, together_);
    entry = floordiv(row, together_) * entries_;
  }
  rows.from = e_.index(from, s);
  rows.a = s.builder.CreateInBoundsGEP(s.builder.getPtrTy(), table_, e_.index(entry, s));
  return rows;
}

}  // namespace hlojit::codegen

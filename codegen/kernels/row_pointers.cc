// See row_pointers.h.
#include "codegen/kernels/row_pointers.h"

#include <bit>

#include "codegen/number/value.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

llvm::Value* i64(llvm::IRBuilder<>& b, int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }

// A row's entries are stored as one vector; what that has too many the next row overwrites.
int64_t lanes_of(int64_t taps) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(taps))); }

}  // namespace

RowPointers::RowPointers(const MatrixProduct& product, int64_t elements, int64_t count, int64_t element_bytes,
                         Scratch& scratch)
    : stretch(elements), taps(product.k / elements), rows(count), bytes(element_bytes) {
  table = scratch.take((rows * taps + lanes_of(taps)) * 8);
  zeros = scratch.take(stretch * bytes);
}

void fill(const RowPointers& p, Scope& scope, const BufferRef& operand, const IndexExpr& m0, llvm::Value* count,
          const RowReads& from) {
  auto& [e, vars, reads, product] = from;
  const int side = reads.left_side();
  llvm::IRBuilder<>& before = scope.builder;
  before.CreateMemSet(p.zeros, before.getInt8(0), static_cast<uint64_t>(p.stretch * p.bytes), llvm::Align(64));
  llvm::Value* nothing = before.CreatePtrToInt(p.zeros, before.getInt64Ty());
  llvm::Value* origin = before.CreatePtrToInt(operand.pointer, before.getInt64Ty());

  auto loop = open_loop(scope, count, 1, "point");
  int row_var = vars.fresh(), tap_var = vars.fresh();
  e.bind(row_var, *loop, loop->counter);
  const IndexExpr row = IndexExpr::var(row_var, p.rows);
  llvm::Value* there = loop->builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, e.index(m0 + row, *loop),
                                                           i64(loop->builder, product.m - 1));
  const Coords rows = reads.starts(*loop, side, e.symbol(*loop, there, {0, product.m - 1}));
  const Coords columns(product.rhs_free.size(), IndexExpr(0));
  LoopPiece piece;
  piece.loops = {{tap_var, lanes_of(p.taps), std::nullopt, std::nullopt}};
  piece.has_lanes = p.taps > 1;
  piece.coords = {IndexExpr::var(tap_var, lanes_of(p.taps))};
  const int wide = static_cast<int>(lanes_of(p.taps));
  e.loops(*loop, piece, 0, e.widths(piece, wide, wide, true), {},
          [&](Scope& s, const Coords& tap, const Lanes& part, const ElementEmitter::Carried&) {
            Read read = reads.read_at(side, reads.joined(rows, columns), tap[0] * p.stretch);
            llvm::Value* at = reads.address(s, read, part.count, origin, nothing);
            e.store(s, {p.table, nullptr, nullptr}, row * p.taps + tap[0], {DType::kS64, at});
            return ElementEmitter::Carried{};
          });
  close_loop(scope, std::move(loop));
}

}  // namespace hlojit::codegen

// See epilogue.h.
#include "codegen/kernels/epilogue.h"

#include <algorithm>

#include "codegen/kernels/packing.h"
#include "codegen/number/elementwise.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

llvm::Value* i64(llvm::IRBuilder<>& b, int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }

llvm::Value* least(Scope& s, llvm::Value* x, int64_t y) {
  return s.builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, i64(s.builder, y));
}

}  // namespace

Epilogue::Epilogue(KernelBuilder& kernel, VarSource& vars, const KernelPlan& plan, const Stage& stage,
                   ProductReads& reads, const RowTile& sums, bool once)
    : kernel_(kernel),
      e_(kernel.emitter()),
      vars_(vars),
      plan_(plan),
      stage_(stage),
      dot_(*stage.product),
      product_(reads.product()),
      reads_(reads),
      sums_(sums),
      once_(once),
      lanes_(std::max(1, e_.vector_bytes() / std::max(4, dtype_bytes(sum_type(dot_))))) {}

void Epilogue::tile(Scope& scope, const IndexExpr& row, const IndexExpr& column, const IndexExpr& sums,
                    int64_t columns) {
  const int64_t mr = stage_.blocks->tile_rows, nr = stage_.blocks->tile_columns;
  e_.provide(&dot_, [this](ElementEmitter& emitter, Scope& s, const Coords&) {
    Value raw = emitter.load(s, {sums_.pointer, nullptr, nullptr}, sum_type(dot_), sum_at_);
    return convert(s.builder, emitter.number(), raw, dot_.shape.type);
  });
  Tile t{row, column, sums, i64(scope.builder, mr)};
  if (product_.m % mr != 0) t.rows = least(scope, e_.index(IndexExpr(product_.m) - row, scope), mr);
  if (reads_.in_runs(reads_.right_side())) return run_boxes(scope, t);
  auto columns_at = [&](const IndexExpr& j) { return product_.split(product_.swapped, column + j); };
  auto all = [&] { box(scope, t, nr, IndexExpr(0), true, columns_at); };
  if (columns % nr == 0) return all();
  llvm::Value* within = scope.builder.CreateICmpSLE(e_.index(column, scope), i64(scope.builder, columns - nr));
  guarded(scope, within, all, [&] { box(scope, t, columns % nr, IndexExpr(0), true, columns_at); });
}

void Epilogue::run_boxes(Scope& scope, const Tile& t) {
  const int64_t run = product_.run, nr = stage_.blocks->tile_columns;
  llvm::Value* count = i64(scope.builder, nr / run);
  if (product_.n % nr != 0) {
    llvm::Value* left = scope.builder.CreateSub(i64(scope.builder, product_.n), e_.index(t.column, scope));
    count = scope.builder.CreateUDiv(least(scope, left, nr), i64(scope.builder, run));
  }
  auto run_loop = open_loop(scope, count, 1, "run");
  int r = vars_.fresh();
  e_.bind(r, *run_loop, run_loop->counter);
  IndexExpr first = IndexExpr::var(r, nr / run) * run;
  Coords start = reads_.starts(*run_loop, reads_.right_side(), t.column + first);
  auto columns_at = [&](const IndexExpr& j) {
    Coords at = start;
    at.back() = at.back() + j;
    return at;
  };
  Coords zero(product_.rhs_free.size(), IndexExpr(0));
  llvm::Value* whole = in_result(*run_loop, reads_.joined(zero, columns_at(IndexExpr(run - 1))));
  auto all = [&] { box(*run_loop, t, run, first, true, columns_at); };
  auto some = [&] {
    if (run > 1) box(*run_loop, t, run, first, false, columns_at);
  };
  if (whole)
    guarded(*run_loop, whole, all, some);
  else
    all();
  close_loop(scope, std::move(run_loop));
}

void Epilogue::box(Scope& outer, const Tile& t, int64_t columns, const IndexExpr& first, bool whole,
                   const ColumnsAt& columns_at) {
  auto by_rows = [&] { rows(outer, t, columns, first, whole, columns_at); };
  if (!whole || columns == 1 || reads_.in_runs(reads_.left_side()) || !rows_alternate()) return by_rows();
  const int64_t height = stage_.blocks->tile_rows, beside = product_.rows_beside;
  if (beside > 1 && height % beside == 0 && product_.m % beside == 0)
    return groups(outer, t, columns, first, columns_at);
  auto together = [&] { e_.within(outer, [&] { rows_together(outer, t, height, columns, first, columns_at); }); };
  if (product_.m % height == 0) return together();
  llvm::Value* full = outer.builder.CreateICmpEQ(t.rows, i64(outer.builder, height));
  guarded(outer, full, together, by_rows);
}

bool Epilogue::rows_alternate() const {
  return std::ranges::any_of(stage_.stores, [&](size_t k) {
    auto address = [&](int64_t column) {
      return linear_index(plan_.roots[k]->shape, reads_.result_coords(IndexExpr(0), IndexExpr(column)));
    };
    return !(address(1) - address(0) == IndexExpr(1));
  });
}

void Epilogue::groups(Scope& outer, const Tile& t, int64_t columns, const IndexExpr& first,
                      const ColumnsAt& columns_at) {
  const int64_t beside = product_.rows_beside;
  auto loop = open_loop(outer, outer.builder.CreateUDiv(t.rows, i64(outer.builder, beside)), 1, "rows");
  loop->enters = true;
  const int g = vars_.fresh();
  e_.bind(g, *loop, loop->counter);
  const IndexExpr row = IndexExpr::var(g, stage_.blocks->tile_rows / beside) * beside;
  const Tile group{t.row + row, t.column, t.sums + row * sums_.stride, i64(outer.builder, beside)};
  e_.within(*loop, [&] { rows_together(*loop, group, beside, columns, first, columns_at); });
  close_loop(outer, std::move(loop));
}

// Vectors that are rounded on the way are a loop. (Those of a single row are few, and written out: else a bf16
// transformer block took 1.013 of the time.)
void Epilogue::rows_together(Scope& outer, const Tile& t, int64_t height, int64_t columns, const IndexExpr& first,
                             const ColumnsAt& columns_at) {
  auto at = [&](const Coords& c) {
    return reads_.joined(product_.split(!product_.swapped, t.row + c[0]), columns_at(c[1]));
  };
  auto sum_at = [&](const Coords& c) { return t.sums + c[0] * sums_.stride + first + c[1]; };
  auto walk = [&](AccessWalk& w, const Coords& c) {
    w.stop_at(&dot_, [place = sum_at(c)](const Coords&) { return place; });
    for (size_t k : stage_.stores) {
      w.write(plan_.roots[k]->shape, at(c));
      w.read(plan_.roots[k], at(c));
    }
  };
  constexpr int kRound = 8;  // operations
  const LoopPlanOptions options{.max_lanes = lanes_, .unroll = lanes_, .overlap = !once_};
  const Ints dims = {height, columns};
  for (LoopPiece& piece : plan_loops(dims, vars_, walk, options)) {
    if (dot_.shape.type != sum_type(dot_)) piece.operations += kRound * static_cast<int>(piece.unroll.count);
    e_.loops(outer, piece, 0, lane_widths(piece, lanes_, lanes_, !once_), {},
             [&](Scope& s, const Coords& c, const Lanes&, const ElementEmitter::Carried&) {
               e_.in_parts(s, c, piece.unroll, [&](Scope& in, const Coords& part_at, const Unroll& part) {
                 store_block(in, part_at, part, at, sum_at);
               });
               return ElementEmitter::Carried{};
             });
  }
}

int Epilogue::operations(const Coords& at) {
  AccessWalk walk(vars_);
  walk.stop_at(&dot_, [](const Coords&) { return IndexExpr(0); });
  for (size_t k : stage_.stores) walk.read(plan_.roots[k], at);
  return walk.operations() + static_cast<int>(walk.accesses().size() + stage_.stores.size());
}

void Epilogue::store_block(Scope& s, const Coords& c, const Unroll& unroll,
                           const std::function<Coords(const Coords&)>& at,
                           const std::function<IndexExpr(const Coords&)>& sum_at) {
  std::vector<std::vector<Value>> values(stage_.stores.size());
  std::vector<std::vector<IndexExpr>> addresses(stage_.stores.size());
  for (const Coords& x : e_.elements(c, unroll)) {
    sum_at_ = sum_at(x);
    for (size_t k = 0; k < values.size(); ++k) {
      const Instruction* root = plan_.roots[stage_.stores[k]];
      values[k].push_back(e_.emit(root, at(x), s));
      addresses[k].push_back(linear_index(root->shape, at(x)));
    }
  }
  for (size_t k = 0; k < values.size(); ++k) {
    const BufferRef& result = kernel_.result(stage_.stores[k]);
    if (unroll.var >= 0)
      e_.store_block(s, result, addresses[k], values[k]);
    else
      e_.store(s, result, addresses[k][0], values[k][0]);
  }
}

void Epilogue::rows(Scope& outer, const Tile& t, int64_t columns, const IndexExpr& first, bool whole,
                    const ColumnsAt& columns_at) {
  auto row_loop = open_loop(outer, t.rows, 1, "row");
  row_loop->enters = true;
  int i = vars_.fresh(), j = vars_.fresh();
  e_.bind(i, *row_loop, row_loop->counter);
  IndexExpr in_tile = IndexExpr::var(i, stage_.blocks->tile_rows);
  const bool row_runs = reads_.in_runs(reads_.left_side());
  Coords rows_at = reads_.starts(*row_loop, reads_.left_side(), t.row + in_tile);
  LoopPiece piece;
  piece.loops = {{j, columns, std::nullopt, std::nullopt}};
  piece.has_lanes = columns > 1;
  piece.coords = {IndexExpr::var(j, columns)};
  piece.operations = operations(reads_.joined(rows_at, columns_at(piece.coords[0])));
  auto elements = [&] {
    e_.loops(*row_loop, piece, 0, lane_widths(piece, lanes_, lanes_, !once_), {},
             [&](Scope& s, const Coords& c, const Lanes& part, const ElementEmitter::Carried&) {
               sum_at_ = t.sums + in_tile * sums_.stride + first + c[0];
               store_results(s, reads_.joined(rows_at, columns_at(c[0])), part.count, whole || row_runs);
               return ElementEmitter::Carried{};
             });
  };
  llvm::Value* there = row_runs ? in_result(*row_loop, reads_.joined(rows_at, columns_at(IndexExpr(0)))) : nullptr;
  if (there)
    guarded(*row_loop, there, elements, [] {});
  else
    elements();
  close_loop(outer, std::move(row_loop));
}

void Epilogue::store_results(Scope& s, const Coords& at, int lanes, bool all) {
  llvm::Value* there = all ? nullptr : in_result(s, at);
  if (there) there = splat(s.builder, {DType::kPred, there}, lanes).v;
  std::vector<Value> values;
  e_.under(there, [&] {
    for (size_t k : stage_.stores) values.push_back(e_.emit(plan_.roots[k], at, s));
  });
  for (size_t k = 0; k < values.size(); ++k) {
    size_t root = stage_.stores[k];
    e_.store(s, kernel_.result(root), linear_index(plan_.roots[root]->shape, at), values[k], there);
  }
}

llvm::Value* Epilogue::in_result(Scope& scope, const Coords& at) {
  std::vector<Guard> guards;
  for (size_t d = 0; product_.overhangs() && d < at.size(); ++d) guards.push_back({at[d], 0, dot_.shape.dims[d]});
  return e_.holds(guards, scope);
}

}  // namespace hlojit::codegen

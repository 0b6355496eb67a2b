// See packing.h.
#include "codegen/kernels/packing.h"

#include <algorithm>

#include "codegen/nest/branch.h"
#include "codegen/nest/loop_split.h"
#include "codegen/number/elementwise.h"
#include "compiler/plan/operands_in_place.h"
#include "layout/divide.h"

namespace hlojit::codegen {
namespace {

llvm::Value* i64(llvm::IRBuilder<>& b, int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }

}  // namespace

void guarded(Scope& scope, llvm::Value* condition, const std::function<void()>& yes, const std::function<void()>& no) {
  auto none = [](const std::function<void()>& emit) { return [&] { return emit(), std::vector<llvm::Value*>(); }; };
  branch(scope, condition, none(yes), none(no));
}

Coords ProductReads::result_coords(const IndexExpr& m, const IndexExpr& n) const {
  return joined(product_.split(!product_.swapped, m), product_.split(product_.swapped, n));
}

Coords ProductReads::joined(const Coords& rows, const Coords& columns) const {
  return product_.swapped ? product_.join(batch_, columns, rows) : product_.join(batch_, rows, columns);
}

const Instruction* ProductReads::array(int side) const {
  const Instruction* i = operand(side);
  while (i && !i->is(Opcode::kParameter)) i = array_of_piece(*i);
  return i;
}

Coords ProductReads::place_in_array(Scope& scope, int side, Coords at) {
  for (const Instruction* i = operand(side); !i->is(Opcode::kParameter); i = i->operand(0)) {
    const AccessRelation relation = access_relation(*i, at, {}, vars_);
    at = substitute(relation.reads[0].coords, e_.bind_symbols(i, relation.symbols, scope));
  }
  return at;
}

Coords ProductReads::starts(Scope& scope, int side, const IndexExpr& position) {
  Coords at = product_.split(side == 0, position);
  if (!in_runs(side)) return at;
  for (IndexExpr& x : at) {
    if (!x.is_constant()) x = e_.symbol(scope, e_.index(x, scope), x.range());
  }
  return at;
}

Read ProductReads::read_at(int side, const Coords& result, const IndexExpr& k) {
  AccessRelation relation = access_relation(contraction_, result, delinearize(product_.contracting, k), vars_);
  for (Read& r : relation.reads) {
    if (r.operand == static_cast<size_t>(side)) return std::move(r);
  }
  throw Error(ErrorKind::kFailed, contraction_.location, "a contraction does not read its operand");
}

Read ProductReads::of_images(Read read, const Coords& result) const {
  const int64_t images = overhung_images(static_cast<int>(read.operand));
  if (images == 0) return read;
  const Guard inside{result[static_cast<size_t>(contraction_.attrs.conv->out_batch)], 0, images};
  if (!inside.always()) read.guards.push_back(inside);
  return read;
}

int64_t ProductReads::overhung_images(int side) const {
  if (!in_runs(side) || !product_.overhangs()) return 0;
  const int64_t dim = contraction_.attrs.conv->out_batch;
  const bool along = static_cast<int64_t>(product_.lhs_free.back().dim) == dim;
  return along ? contraction_.shape.dims[static_cast<size_t>(dim)] : 0;
}

void ProductReads::walk(AccessWalk& walk, Read read) const {
  AccessRelation relation;
  relation.reads.push_back(std::move(read));
  walk.follow(&contraction_, relation);
}

std::optional<llvm::Value*> ProductReads::always_inside(Scope& scope, int side,
                                                        const std::function<Coords(const IndexExpr&)>& result_at) {
  int local = vars_.fresh();
  std::vector<int> inner = {local};
  Coords reduced;
  for (int64_t n : product_.contracting) {
    inner.push_back(vars_.fresh());
    reduced.push_back(IndexExpr::var(inner.back(), n));
  }
  IndexExpr along = IndexExpr::var(local, std::max<int64_t>(product_.run, 1));
  AccessRelation relation = access_relation(contraction_, result_at(along), reduced, vars_);
  std::vector<Guard> guards;
  for (const Read& r : relation.reads) {
    if (r.operand != static_cast<size_t>(side)) continue;
    for (const Guard& g : r.guards) {
      auto all = for_all(g, inner);
      if (!all) return std::nullopt;
      guards.push_back(*all);
    }
  }
  return e_.holds(guards, scope);
}

void ProductReads::in_slice(Scope& scope, const IndexExpr& k0, int64_t depth,
                            const std::function<void(const IndexExpr&, int64_t)>& emit) const {
  const int64_t rest = product_.k % depth;
  if (rest == 0) return emit(k0, depth);
  if (product_.k < depth) return emit(k0, product_.k);
  llvm::Value* whole = scope.builder.CreateICmpSLE(e_.index(k0, scope), i64(scope.builder, product_.k - depth));
  auto on_way = [&](const IndexExpr& from, int64_t deep) { e_.on_way(scope, [&] { emit(from, deep); }); };
  guarded(scope, whole, [&] { on_way(k0, depth); }, [&] { on_way(IndexExpr(product_.k - rest), rest); });
}

// The parts of a slice: whole groups; one that the depth ends within; and groups of zeros.
void Packing::in_groups(Scope& scope, const std::function<void(const Groups&)>& pack) {
  const int64_t terms = form_.terms, depth = std::min(form_.depth, product_.k), rest = product_.k % depth;
  if (depth >= terms) pack({0, depth / terms, (rest > 0 ? rest : depth) / terms, terms});
  if (depth % form_.step == 0 && rest % form_.step == 0) return;
  deep(scope, [&](int64_t deep) {
    const int64_t whole = deep / terms * terms, begun = round_up(deep, terms), end = round_up(deep, form_.step);
    if (whole < deep) pack({whole, 1, 1, deep - whole});
    if (begun < end) pack({begun, (end - begun) / terms, (end - begun) / terms, 0});
  });
}

// What is read for the `term`-th element of a group. (The group that the depth ends within is put together from
// vectors, as the others are: bytes and bfloats that LLVM stored one by one took up to two thirds of a product's
// compile time.)
std::optional<Read> Packing::read_in(const Groups& groups, const IndexExpr& term, Read read) const {
  if (groups.there == 0) return std::nullopt;
  if (groups.there < form_.terms) read.guards.push_back({term, 0, groups.there});
  return read;
}

// As it is packed; zero where there is none.
Value Packing::packed_value(Scope& s, const std::optional<Read>& source) {
  const Value zero = constant(s.builder, form_.type, 0, 1);
  if (!source) return zero;
  const Read& read = *source;
  llvm::Value* there =
      std::ranges::any_of(read.guards, &Guard::never) ? s.builder.getFalse() : e_.holds(read.guards, s);
  Value v = zero;
  if (there != s.builder.getFalse()) {
    auto element = [&] {
      v = convert(s.builder, e_.number(), e_.emit(reads_.operand(static_cast<int>(read.operand)), read.coords, s),
                  form_.type);
    };
    e_.where(read.guards, [&] { e_.under(there, element); });
    if (there) v = choose(s.builder, there, v, zero);
  }
  if (!form_.biased || static_cast<int>(read.operand) != reads_.left_side()) return v;
  return {v.type, s.builder.CreateXor(v.v, llvm::ConstantInt::get(v.v->getType(), 0x80))};
}

// A nest over a box inside `scope`, in a scope of its own (values must not leak past branches).
void Packing::nest(Scope& scope, const Box& box, const std::function<void(AccessWalk&, const Coords&)>& walk,
                   const std::function<void(Scope&, const Coords&, const Unroll&)>& body) {
  int lanes = std::max(1, form_.vector_bytes / 4);
  const LoopPlanOptions options{
      .max_lanes = lanes, .unroll = lanes, .in_parts = INT64_MAX, .overlap = true, .packs = true};
  auto planned = [&](int64_t groups) {
    std::vector<int64_t> dims = box.dims;
    dims[box.along] = groups;
    return plan_loops(dims, vars_, walk, options);
  };
  auto emit = [&](const std::vector<LoopPiece>& pieces) {
    for (const LoopPiece& piece : pieces) {
      // Copies of a few vectors a turn; blocks are transposed one by one.
      int wide = piece.unroll.var < 0 ? 4 * lanes : lanes;
      e_.loops(scope, piece, 0, lane_widths(piece, wide, lanes, true), {},
               [&](Scope& s, const Coords& coords, const Lanes&, const ElementEmitter::Carried&) {
                 body(s, coords, piece.unroll);
                 return ElementEmitter::Carried{};
               });
    }
  };
  const int64_t groups = box.dims[box.along], all = product_.k / form_.depth * groups + box.last;
  const IndexExpr before = floordiv(k0_, form_.depth) * groups;
  std::vector<LoopPiece> pieces = planned(groups);
  // The last slice has the others' loops, which end early for it: gemm_odd_tiled compiles in 16.1 ms, with loops of its
  // own in 17.2. Where lanes or blocks go along the depth they are its own.
  auto ends = [&](LoopPiece& p) { return end_early(p, box.along, before, all); };
  if (box.last == groups || std::ranges::all_of(pieces, ends)) return emit(pieces);
  deep(scope, [&](int64_t depth) { emit(planned(depth == form_.depth ? groups : box.last)); });
}

// What is read at the same place of the next slice: its rows are pages of their own, which no prefetcher gets past.
// (Two rows by 1152x13824 bf16, one core of a Zen 4: 2.2 ms without, 1.2 so.)
void Packing::prefetch_next(Scope& scope, const Source& source, const Coords& at) {
  AccessWalk w(vars_);
  if (auto read = source(k0_ + form_.depth, at)) reads_.walk(w, *std::move(read));
  for (const Access& a : w.accesses()) {
    if (a.parameter) e_.prefetch(scope, a);
  }
}

// Packs elements of a box: loops by where they are read and written, blocks transposed in registers.
void Packing::fill(Scope& scope, const BufferRef& target, const Box& box,
                   const std::function<void(AccessWalk&, const Coords&)>& walk, const Source& source,
                   const std::function<IndexExpr(const Coords&)>& place) {
  nest(scope, box, walk, [&](Scope& s, const Coords& c, const Unroll& unroll) {
    e_.in_parts(s, c, unroll, [&](Scope& in, const Coords& at, const Unroll& part) {
      if (part.var < 0) {
        if (box.looks_down) prefetch_next(in, source, at);
        return e_.store(in, target, place(at), packed_value(in, source(k0_, at)));
      }
      std::vector<Value> values;
      std::vector<IndexExpr> addresses;
      for (const IndexExpr& u : e_.block()) {
        const Coords x = substitute(at, part.var, u);
        if (box.looks_down) prefetch_next(in, source, x);
        values.push_back(packed_value(in, source(k0_, x)));
        addresses.push_back(place(x));
      }
      e_.store_block(in, target, addresses, values);
    });
  });
}

void Packing::deep(Scope& scope, const std::function<void(int64_t)>& emit_depth) {
  const IndexExpr k0 = k0_;
  reads_.in_slice(scope, k0, form_.depth, [&](const IndexExpr& from, int64_t depth) {
    k0_ = from;
    emit_depth(depth);
  });
  k0_ = k0;
}

void Packing::pack_run(Scope& scope, const BufferRef& target, int side, const IndexExpr& first, int64_t run,
                       const TargetAt& target_at) {
  const Coords start = reads_.starts(scope, side, first);
  const int64_t images = reads_.overhung_images(side), rest = images % run;
  if (images <= run || rest == 0) return pack_positions(scope, target, side, start, run, target_at);
  // Of the last run it is known which images there are not, of the others that there are all.
  llvm::Value* image = e_.index(start.back(), scope);
  auto from = [&](Range range) {
    Coords at = start;
    at.back() = e_.symbol(scope, image, range);
    e_.on_way(scope, [&] { pack_positions(scope, target, side, at, run, target_at); });
  };
  llvm::Value* whole = scope.builder.CreateICmpSLE(image, i64(scope.builder, images - run));
  guarded(scope, whole, [&] { from({0, images - run}); }, [&] { from({images - rest, images - rest}); });
}

void Packing::pack_positions(Scope& scope, const BufferRef& target, int side, const Coords& start, int64_t run,
                             const TargetAt& target_at) {
  const bool lhs = side == 0;
  auto result_at = [&](const IndexExpr& local) {
    Coords along = start;
    if (!along.empty()) along.back() = along.back() + local;
    Coords other(lhs ? product_.rhs_free.size() : product_.lhs_free.size(), IndexExpr(0));
    return lhs ? product_.join(reads_.batch_, along, other) : product_.join(reads_.batch_, other, along);
  };
  auto pack = [&](bool inside) {
    in_groups(scope, [&](const Groups& g) {
      auto k_at = [&](const Coords& c) { return g.first + c[1] * form_.terms + c[2]; };
      auto element = [&](const IndexExpr& k0, const Coords& c) {
        Read read = reads_.read_at(side, result_at(c[0]), k0 + k_at(c));
        if (inside) read.guards.clear();
        return read;
      };
      auto source = [&](const IndexExpr& k0, const Coords& c) {
        return read_in(g, c[2], reads_.of_images(element(k0, c), result_at(c[0])));
      };
      // For the order of the loops alone: rows one after the other, or vectors of columns. All images are one piece.
      auto place = [&](const Coords& c) { return target_at(c[0], k_at(c)); };
      auto walk = [&](AccessWalk& w, const Coords& c) {
        w.write(form_.type, place(c));
        if (auto read = read_in(g, c[2], element(k0_, c))) reads_.walk(w, *std::move(read));
      };
      fill(scope, target, {{run, g.count, form_.terms}, 1, g.last}, walk, source, place);
    });
  };
  auto inside = reads_.always_inside(scope, side, result_at);
  if (!inside) return pack(false);
  if (!*inside) return pack(true);
  guarded(scope, *inside, [&] { e_.on_way(scope, [&] { pack(true); }); }, [&] { pack(false); });
}

void Packing::pack_side(Scope& scope, const BufferRef& target, const Side& side, const IndexExpr& first) {
  const int64_t terms = form_.terms, panel = form_.packed_depth() * side.stride;
  in_groups(scope, [&](const Groups& g) {
    auto source = [&](const IndexExpr& k0, const Coords& c) -> std::optional<Read> {
      if (side.zeros) return std::nullopt;
      const IndexExpr at = first + c[1] * side.stride + c[2], none(0);
      Coords rc = side.left ? reads_.result_coords(at, none) : reads_.result_coords(none, at);
      const int operand = side.left ? reads_.left_side() : reads_.right_side();
      return read_in(g, c[3], reads_.read_at(operand, rc, k0 + g.first + c[0] * terms + c[3]));
    };
    auto place = [&](const Coords& c) {
      return g.first * side.stride + c[1] * panel + (c[0] * side.stride + side.from + c[2]) * terms + c[3];
    };
    // For the order of the loops the panels lie side by side, with a gap: k goes outermost.
    Shape order =
        Shape::array(form_.type, {g.count, side.group, side.group == 1 ? side.stride : 2 * side.stride, terms});
    auto walk = [&](AccessWalk& w, const Coords& c) {
      w.write(order, c);
      if (auto read = source(k0_, c)) reads_.walk(w, *std::move(read));
    };
    fill(scope, target, {{g.count, side.group, side.width, terms}, 0, g.last, side.looks_down}, walk, source, place);
  });
}

void Packing::pack_columns(Scope& scope, const BufferRef& target, int64_t group, int64_t width, int64_t size,
                           const IndexExpr& first, bool from_memory) {
  in_boxes(scope, width, size, first, [&](int64_t columns) {
    pack_side(scope, target, {group, 0, columns, width, false, false, from_memory}, first);
  });
}

void Packing::pack_across(Scope& scope, const BufferRef& target, int64_t width, int64_t stride, int64_t tile,
                          int64_t size, const IndexExpr& first) {
  in_boxes(scope, width, size, first, [&](int64_t rows) {
    pack_side(scope, target, {1, 0, rows, stride, true, false, false}, first);
    if (const int64_t rest = round_up(rows, tile) - rows; rest > 0)
      pack_side(scope, target, {1, rows, rest, stride, true, true, false}, first);
  });
}

void Packing::pack_rows(Scope& scope, const BufferRef& target, const IndexExpr& offset, int64_t width, int64_t size,
                        const IndexExpr& first) {
  in_boxes(scope, width, size, first, [&](int64_t rows) {
    in_groups(scope, [&](const Groups& g) {
      auto k_at = [&](const Coords& c) { return g.first + c[1] * form_.terms + c[2]; };
      auto source = [&](const IndexExpr& k0, const Coords& c) {
        const Coords row = reads_.result_coords(first + c[0], IndexExpr(0));
        return read_in(g, c[2], reads_.read_at(reads_.left_side(), row, k0 + k_at(c)));
      };
      auto place = [&](const Coords& c) { return offset + c[0] * form_.packed_depth() + k_at(c); };
      auto walk = [&](AccessWalk& w, const Coords& c) {
        w.write(form_.type, place(c));
        if (auto read = source(k0_, c)) reads_.walk(w, *std::move(read));
      };
      fill(scope, target, {{rows, g.count, form_.terms}, 1, g.last}, walk, source, place);
    });
  });
}

void Packing::in_boxes(Scope& scope, int64_t width, int64_t size, const IndexExpr& first,
                       const std::function<void(int64_t)>& box) {
  int64_t tail = size % width;
  if (tail == 0 || size < width) return box(std::min(size, width));
  llvm::Value* whole = scope.builder.CreateICmpSLE(e_.index(first, scope), i64(scope.builder, size - width));
  auto on_way = [&](int64_t columns) { e_.on_way(scope, [&] { box(columns); }); };
  guarded(scope, whole, [&] { on_way(width); }, [&] { on_way(tail); });
}

}  // namespace hlojit::codegen

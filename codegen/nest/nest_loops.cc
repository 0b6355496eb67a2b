// The loops of a piece as IR: scalar digits outside, the lane digit innermost as full vectors.
//
// lane_widths.h says what becomes of the elements behind the last full vector. What is carried keeps its old value in
// the lanes that were seen before; a body that is cheap, or carries much, is written a second time for a vector moved
// back.
//
// Loops of a few steps with little inside are no loops: counting took a product of 3 x 3 matrices more time than
// multiplying.
#include <algorithm>
#include <bit>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/loop_order.h"
#include "codegen/nest/loop_split.h"

namespace hlojit::codegen {
namespace {

llvm::Value* i64(llvm::IRBuilder<>& b, int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); }

// Whole vectors of so many lanes, a power of two, in n elements; `exact`: n is a multiple.
llvm::Value* vectors_in(llvm::IRBuilder<>& b, llvm::Value* n, int lanes, bool exact = false) {
  if (lanes == 1) return n;
  return b.CreateLShr(n, static_cast<uint64_t>(std::countr_zero(static_cast<unsigned>(lanes))), "", exact);
}

// Of vectors of `lanes`, `next` in those of the last `fresh` elements and `old` in those before. Accumulators of other
// lane counts belong to other pieces of the loops: they only go around these, though ways that join have made new
// values of them.
ElementEmitter::Carried in_last_lanes(llvm::IRBuilder<>& b, int lanes, int pairs, int64_t fresh,
                                      const ElementEmitter::Carried& old, ElementEmitter::Carried next) {
  std::vector<llvm::Constant*> bits;
  for (int k = 0; k < lanes; ++k) bits.push_back(b.getInt1(element_of_lane(k, pairs) >= lanes - fresh));
  for (size_t k = 0; k < next.size(); ++k) {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(next[k]->getType());
    if (next[k] == old[k] || !type || type->getNumElements() != bits.size()) continue;
    next[k] = b.CreateSelect(llvm::ConstantVector::get(bits), next[k], old[k]);
  }
  return next;
}

// Which lanes of a vector that begins at `position` are elements 0 to `extent`.
llvm::Value* lanes_below(llvm::IRBuilder<>& b, llvm::Value* position, int64_t extent, int lanes) {
  std::vector<llvm::Constant*> numbers;
  for (int k = 0; k < lanes; ++k) numbers.push_back(b.getInt32(static_cast<uint32_t>(k)));
  llvm::Value* at = b.CreateVectorSplat(static_cast<unsigned>(lanes), b.CreateTrunc(position, b.getInt32Ty()));
  at = b.CreateAdd(at, llvm::ConstantVector::get(numbers));
  return b.CreateICmpULT(at, llvm::ConstantInt::get(at->getType(), static_cast<uint64_t>(extent)));
}

// Steps of a loop that is written out, and vector operations of all that is.
constexpr int64_t kFewSteps = 8, kFewOperations = 40;
// Machine vectors carried around a loop that also keeps what they were a turn ago: cross-entropy's eight of each
// spill on 16 registers, and cost 9 %.
constexpr int64_t kCarriedTwice = 4;

// What `count` vectors of so many lanes take, with machine vectors of `native` lanes.
int64_t operations_of(const LoopPiece& piece, int64_t count, int lanes, int native) {
  return count * piece.operations * std::max(1, lanes / std::max(1, native));
}

// Operations of the lanes' loop if it is written out; none if it is too long.
std::optional<int64_t> few_vectors(const LoopPiece& piece, const LaneWidths& shape, int native) {
  if (!piece.has_lanes) return piece.operations;
  const LoopDigit& loop = piece.loops.back();
  if (loop.clip || shape.into_line) return std::nullopt;
  int64_t left = loop.extent, operations = 0;
  for (int w : shape.widths) {
    const bool ends = w == shape.widths.back() && shape.rest != Rest::kNone && shape.last == 0;
    int64_t count = ends ? (left + w - 1) / w : left / w;
    if (count > kFewSteps) return std::nullopt;
    operations += operations_of(piece, count, w, native);
    if (shape.last > 0) operations += operations_of(piece, 1, shape.last, native);
    left %= w;
  }
  return operations <= kFewOperations ? std::optional(operations) : std::nullopt;
}

// From which loop on everything is written out.
size_t first_short(const LoopPiece& piece, const LaneWidths& shape, int native) {
  auto operations = few_vectors(piece, shape, native);
  size_t k = piece.loops.size();
  if (!operations) return k;
  if (piece.has_lanes) --k;
  for (; k > 0; --k) {
    const LoopDigit& loop = piece.loops[k - 1];
    if (loop.clip || loop.steps || loop.written == Written::kAsLoop || loop.extent > kFewSteps) break;
    *operations *= loop.extent;
    if (*operations > kFewOperations && loop.written != Written::kOut) break;
  }
  return k;
}

}  // namespace

llvm::Value* ElementEmitter::digit_value(const LoopDigit& loop, llvm::Value* counter, Scope& scope) {
  if (!loop.steps) return counter;
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Value* at = b.CreateAdd(index(loop.steps->first, scope), counter);
  if (loop.steps->step == 1) return at;  // blocks of one fit
  at = b.CreateMul(at, i64(b, loop.steps->step));
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at, i64(b, loop.steps->last));
}

// Where the vector of this turn of the loop `in` begins.
IndexExpr ElementEmitter::vector_position(Scope& s, Scope& in, const LoopDigit& loop, const VectorRun& run) {
  const int lanes = run.lanes;
  const IndexExpr& start = run.start;
  llvm::IRBuilder<>& b = in.builder;
  if (const int64_t last = run.last; last >= 0) {
    return start + symbol(in, b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, in.counter, i64(b, last)), {0, last});
  }
  const int64_t whole = (loop.steps ? loop.steps->last + 1 : loop.extent) / lanes;
  if (run.most <= 1) {
    // One turn or none: the position must not look as if it were known outside of the loop. It counts vectors, and
    // no more of them than there are, so that addresses stay affine.
    in.once = true;
    llvm::Value* number = vectors_in(s.builder, index(start, s), lanes);
    return symbol(in, number, {0, std::max<int64_t>(1, whole - 1)}) * lanes;
  }
  const int counter = vars_.fresh();
  if (!loop.steps) {
    bind(counter, in, vectors_in(b, in.counter, lanes, true));
    return start + IndexExpr::var(counter, run.most) * lanes;
  }
  // Counted from where the digit begins: of that the range is known, and its parts begin at whole vectors.
  bind(counter, in, vectors_in(b, b.CreateAdd(index(start, in), in.counter), lanes, true));
  return IndexExpr::var(counter, whole) * lanes;
}

// `count` lanes of a body in `scope`, from number `first` on.
Lanes ElementEmitter::lanes_in(Scope& scope, int64_t first, int count, bool in_pairs) {
  if (count == 1) return {1, IndexExpr(first)};
  const int pairs = in_pairs ? pairs_of(count) : 0;
  auto [lane, is_new] = (pairs > 0 ? scope.lanes_in_pairs : scope.lanes).try_emplace(count, 0);
  if (is_new) bound_[lane->second = vars_.fresh()] = {&scope, nullptr, count, pairs};
  return {count, IndexExpr(first) + IndexExpr::var(lane->second, count)};
}

// A vector of which only the lanes that belong to the row are read and written. Where one of these may be, as the range
// of the position says, is all that addresses and guards have to be right for.
void ElementEmitter::some_lanes(Scope& s, const LoopPiece& piece, llvm::Value* position, int lanes, const Body& body) {
  const LoopDigit& loop = piece.loops.back();
  const Lanes all = lanes_in(s, 0, lanes);
  line_lane_ = s.lanes.at(lanes);
  in_row_ = lanes_below(s.builder, position, loop.extent, lanes);
  const bool known = loop.extent <= lanes;
  const IndexExpr start = known ? IndexExpr(0) : symbol(s, position, {0, loop.extent - lanes});
  body(s, substitute(piece.coords, loop.var, start + all.number), all, {});
  line_lane_ = -1;
}

// Vectors from line to line: the first and the last in a loop of their own, under a mask, then all between them.
void ElementEmitter::line_vectors(Scope& s, const LoopPiece& piece, const LaneWidths& shape, const Body& body) {
  const LoopDigit& loop = piece.loops.back();
  const int lanes = shape.widths[0];
  llvm::IRBuilder<>& b = s.builder;
  llvm::Value* before = index(*shape.into_line, s);
  // Lanes between the two, a multiple of a vector's.
  llvm::Value* between = b.CreateAdd(before, i64(b, loop.extent - 1 - lanes));
  between = b.CreateAnd(between, i64(b, -lanes));
  in_lines_ = true;
  auto ends = open_loop(s, i64(b, 2), 1, "end", {});
  llvm::Value* last = ends->builder.CreateAdd(between, i64(b, lanes));
  llvm::Value* end = ends->builder.CreateMul(ends->counter, last);
  some_lanes(*ends, piece, ends->builder.CreateSub(end, before), lanes, body);
  close_loop(s, std::move(ends), {});
  auto inner = open_loop(s, between, lanes, "line", {});
  llvm::Value* line = inner->builder.CreateAdd(inner->counter, i64(b, lanes));
  const Lanes all = lanes_in(*inner, 0, lanes);
  const IndexExpr start = symbol(*inner, inner->builder.CreateSub(line, before), {0, loop.extent - lanes});
  body(*inner, substitute(piece.coords, loop.var, start + all.number), all, {});
  close_loop(s, std::move(inner), {});
  in_lines_ = false;
}

ElementEmitter::Carried ElementEmitter::lane_vectors(Scope& s, const LoopPiece& piece, const VectorRun& run, Carried c,
                                                     const Body& body) {
  const LoopDigit& loop = piece.loops.back();
  const int lanes = run.lanes;
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(run.count);
  if (known && known->isZero()) return c;
  if (known && !known->isOne() && few_vectors(piece, {{lanes}, Rest::kMovedBack}, vector_bytes() / 4)) {
    const int64_t count = known->getSExtValue();
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = run.last >= 0 ? std::min(k * lanes, run.last) : k * lanes;
      const VectorRun one{.count = i64(s.builder, 1),
                          .lanes = lanes,
                          .at_a_time = run.at_a_time,
                          .start = run.start + IndexExpr(at),
                          .fresh = k + 1 == count ? run.fresh : 0};
      c = lane_vectors(s, piece, one, std::move(c), body);
    }
    return c;
  }
  std::unique_ptr<Scope> inner;
  Scope* at = &s;
  IndexExpr position = run.start;
  if (!(known && known->isOne())) {
    // The loop counts elements: a counter of vectors would be shifted to be added to an address.
    inner = open_loop(s, s.builder.CreateMul(run.count, i64(s.builder, lanes)), lanes, lanes > 1 ? "v" : "t", c);
    at = inner.get();
    position = vector_position(s, *inner, loop, run);
    c.assign(inner->carried.begin(), inner->carried.end());
  }
  const Carried old = std::move(c);
  Carried next = old;
  const int step = run.at_a_time > 0 ? std::min(run.at_a_time, lanes) : lanes;
  for (int first = 0; first < lanes; first += step) {
    const Lanes part = lanes_in(*at, first, step, piece.pairs);
    next = body(*at, substitute(piece.coords, loop.var, position + part.number), part, next);
  }
  if (inner) next = close_loop(s, std::move(inner), next);
  if (run.fresh == 0) return next;
  return in_last_lanes(s.builder, lanes, piece.pairs ? pairs_of(lanes) : 0, run.fresh, old, std::move(next));
}

// Vectors of one width, of which the last is moved back to the end of the digit.
ElementEmitter::Carried ElementEmitter::moved_back_vectors(Scope& s, const LoopPiece& piece, const LaneWidths& shape,
                                                           Carried c, const Body& body) {
  const int64_t extent = piece.loops.back().extent;
  llvm::IRBuilder<>& b = s.builder;
  const int lanes = shape.widths[0], fresh = shape.twice ? 0 : static_cast<int>(extent % lanes);
  const int64_t full = extent / lanes, last = extent - lanes;
  VectorRun run{.count = i64(b, full), .most = full, .lanes = lanes, .at_a_time = shape.at_a_time};
  if (shape.last > 0) {
    lane_vectors(s, piece, run, {}, body);
    const VectorRun end{.count = i64(b, 1), .lanes = shape.last, .start = IndexExpr(extent - shape.last)};
    return lane_vectors(s, piece, end, {}, body);
  }
  const int native = vector_bytes() / 4;
  auto carried = static_cast<int64_t>(c.size()) * std::max(1, lanes / native);
  bool dear = operations_of(piece, 1, lanes, native) > kFewOperations;
  if (c.empty() || (dear && carried <= kCarriedTwice)) {
    run.count = i64(b, full + 1), run.most = full + 1, run.last = last, run.fresh = fresh;
    return lane_vectors(s, piece, run, std::move(c), body);
  }
  c = lane_vectors(s, piece, run, std::move(c), body);
  run.count = i64(b, 1), run.most = 1, run.start = IndexExpr(last), run.fresh = fresh;
  return lane_vectors(s, piece, run, std::move(c), body);
}

ElementEmitter::Carried ElementEmitter::lane_loops(Scope& s, const LoopPiece& piece, const LaneWidths& shape, Carried c,
                                                   const Body& body) {
  if (shape.into_line) {
    line_vectors(s, piece, shape, body);
    return {};
  }
  if (shape.rest == Rest::kMovedBack) return moved_back_vectors(s, piece, shape, std::move(c), body);
  const LoopDigit& loop = piece.loops.back();
  llvm::IRBuilder<>& b = s.builder;
  // As many vectors as fit, then what is left at narrower widths or under a mask.
  IndexExpr start = loop.steps ? loop.steps->first : IndexExpr(0);
  llvm::Value* left = trip_count(loop, loop.clip ? loop.clip->so_far : IndexExpr(0), s);
  const std::vector<int>& widths = shape.widths;
  for (size_t w = 0; w < widths.size(); ++w) {
    int lanes = widths[w];
    // After wider vectors less than one of them is left: a tight range keeps addresses free of wraps.
    int64_t most = w == 0 ? loop.extent / lanes : (widths[w - 1] - 1) / lanes;
    llvm::Value* count = vectors_in(b, left, lanes);
    const VectorRun run{.count = count, .most = most, .lanes = lanes, .at_a_time = shape.at_a_time, .start = start};
    c = lane_vectors(s, piece, run, std::move(c), body);
    if (w + 1 == widths.size()) {
      const int64_t rest = shape.rest == Rest::kMasked ? loop.extent % lanes : 0;
      if (rest > 0) some_lanes(s, piece, i64(b, loop.extent - rest), lanes, body);
      break;
    }
    if (auto* n = llvm::dyn_cast<llvm::ConstantInt>(left)) {
      auto total = static_cast<int64_t>(n->getZExtValue());
      start = start + IndexExpr(total / lanes * lanes);
      left = i64(b, total % lanes);
    } else {
      start = start + symbol(s, count, Range{0, most}) * lanes;
      left = b.CreateAnd(left, i64(b, lanes - 1));
    }
  }
  return c;
}

ElementEmitter::Carried ElementEmitter::loops(Scope& scope, const LoopPiece& piece, size_t first,
                                              const LaneWidths& widths, Carried carried, const Body& body,
                                              const Cascade* cascade) {
  const size_t is_short = first_short(piece, widths, vector_bytes() / 4);
  std::function<Carried(Scope&, const LoopPiece&, size_t, Carried)> nest, from;
  nest = [&](Scope& s, const LoopPiece& p, size_t k, Carried c) -> Carried {
    bool cut = cascade && std::find(cascade->cuts.begin(), cascade->cuts.end(), k) != cascade->cuts.end();
    if (!cut) return from(s, p, k, std::move(c));
    return cascade->add(s, c, from(s, p, k, cascade->fresh(s)));
  };
  from = [&](Scope& s, const LoopPiece& p, size_t k, Carried c) -> Carried {
    if (k == p.loops.size()) return body(s, p.coords, Lanes{}, c);
    if (p.has_lanes && k + 1 == p.loops.size()) return lane_loops(s, p, widths, std::move(c), body);
    const LoopDigit& loop = p.loops[k];
    if (k >= is_short) {
      for (int64_t n = 0; n < loop.extent; ++n) c = nest(s, at_step(p, k, n), k + 1, std::move(c));
      return c;
    }
    llvm::Value* trip = trip_count(loop, loop.clip ? loop.clip->so_far : IndexExpr(0), s);
    auto* fixed = llvm::dyn_cast<llvm::ConstantInt>(trip);
    if (fixed && fixed->isOne()) {
      bind(loop.var, s, digit_value(loop, i64(s.builder, 0), s));
      return nest(s, p, k + 1, std::move(c));
    }
    auto inner = open_loop(s, trip, 1, "i", c);
    bind(loop.var, *inner, digit_value(loop, inner->counter, *inner));
    Carried next = nest(*inner, p, k + 1, Carried(inner->carried.begin(), inner->carried.end()));
    return close_loop(s, std::move(inner), next);
  };
  return nest(scope, piece, first, std::move(carried));
}

std::vector<Coords> ElementEmitter::elements(const Coords& at, const Unroll& unroll) const {
  if (unroll.var < 0) return {at};
  std::vector<Coords> all;
  for (const IndexExpr& number : block_) all.push_back(substitute(at, unroll.var, number));
  return all;
}

void ElementEmitter::in_parts(Scope& scope, const Coords& at, const Unroll& unroll,
                              const std::function<void(Scope&, const Coords&, const Unroll&)>& body) {
  if (unroll.var < 0) return body(scope, at, unroll);
  if (unroll.part == unroll.count) {
    begin_block(scope, unroll);
    return body(scope, at, unroll);
  }
  const LoopDigit part{vars_.fresh(), unroll.count / unroll.part, std::nullopt, std::nullopt};
  const Unroll inside{vars_.fresh(), unroll.part, unroll.part};
  const IndexExpr number =
      IndexExpr::var(inside.var, inside.count) + IndexExpr::var(part.var, part.extent) * unroll.part;
  auto inner = open_loop(scope, scope.builder.getInt64(static_cast<uint64_t>(part.extent)), 1, "part", {});
  bind(part.var, *inner, inner->counter);
  begin_block(*inner, inside);
  body(*inner, substitute(at, unroll.var, number), inside);
  close_loop(scope, std::move(inner), {});
}

}  // namespace hlojit::codegen

// Lanes whose places to each other are known: the runs of memory in which they lie are loaded as vectors, each lane is
// taken out of the one that has it by constant shuffles. So are lanes across short rows of which each lies where an
// index says: the rows are loaded.
#include <algorithm>
#include <bit>

#include <llvm/Analysis/VectorUtils.h>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/lane_pattern.h"
#include "codegen/nest/packed.h"
#include "codegen/number/parts.h"
#include "layout/divide.h"
#include "layout/index_expr.h"

namespace hlojit::codegen {
namespace {

// Can the lane be read? (Null: each is.)
bool reads(const llvm::Value* mask, size_t lane) { return !mask || !never_holds(mask, static_cast<unsigned>(lane), 1); }

// But for constants, the mask is one condition for all lanes.
bool holds_alike(const llvm::Value* mask) {
  if (!mask || llvm::isa<llvm::Constant>(mask) || llvm::getSplatValue(mask)) return true;
  auto* both = llvm::dyn_cast<llvm::BinaryOperator>(mask);
  return both && both->getOpcode() == llvm::Instruction::And && holds_alike(both->getOperand(0)) &&
         holds_alike(both->getOperand(1));
}

}  // namespace

// `lanes` elements of which [first, last] from the base are wanted, nothing beyond the buffer read: from the first on,
// up to the last, or fewer than all. The vector, and where it begins.
std::pair<llvm::Value*, int64_t> ElementEmitter::window_at(Scope& scope, const BufferRef& buffer, llvm::Type* element,
                                                           const IndexExpr& base, int64_t first, int64_t last,
                                                           int64_t lanes) {
  llvm::IRBuilder<>& b = scope.builder;
  const Range range = base.range();
  auto loaded = [&](int64_t count, int64_t start) {
    llvm::Value* v = vector_at(scope, buffer, element, count, base + IndexExpr(start));
    if (!v->getType()->isVectorTy()) v = b.CreateVectorSplat(1, v);
    return std::pair(lanes_from(b, v, 0, static_cast<unsigned>(lanes)), start);
  };
  const int64_t least = last - first + 1;
  for (int64_t count = lanes; count >= least && count > 1; count /= 2) {
    if (range.hi + first + count <= buffer.elements) return loaded(count, first);
    if (range.lo + last + 1 >= count && buffer.elements > 0) return loaded(count, last + 1 - count);
  }
  return loaded(least, first);
}

// The windows of all vectors of a block at whole vectors from the first element that any of them reads, where that
// takes no more of them: neighbours share those between them. (Images of bytes, flipped, 112 pixels wide: 3.7 us.)
void ElementEmitter::share_windows(const IndexExpr& in_block, const LanePattern& pattern,
                                   const std::vector<int64_t>& wanted, std::vector<int64_t>& starts) const {
  const int lane = lane_var(in_block);
  const auto lanes = static_cast<int>(pattern.offsets.size());
  const auto id = std::ranges::find_if(block_ids_, [&](int v) { return in_block.depends_on(v); });
  if (id == block_ids_.end()) return;
  int64_t before = 0;  // from the first element of the block to the vector's first
  for (int64_t value : block_values_) {
    const auto other = lane_pattern(in_block.substitute(*id, IndexExpr(value)), lane, lanes);
    const IndexExpr apart = other ? pattern.base - other->base : in_block;
    if (!apart.is_constant()) return;
    before = std::max(before, apart.constant());
  }
  std::vector<int64_t> cells;
  for (int64_t at : wanted) cells.push_back((at + before) / lanes * lanes - before);
  std::ranges::sort(cells);
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  if (cells.size() <= starts.size()) starts = std::move(cells);
}

// Where no lane may be read the buffer's first elements are, or its last: nothing is asked of the condition.
std::optional<Value> ElementEmitter::load_pattern(Scope& scope, const BufferRef& buffer, DType type,
                                                  const IndexExpr& in_block, llvm::Value* mask) {
  const int lane = lane_var(in_block), lanes = lane_count(in_block);
  if (lane < 0 || vector_bound(in_block) || dtype_bytes(type) > 8 || !holds_alike(mask)) return std::nullopt;
  const IndexExpr address = of_block_values(in_block);
  if (!address.depends_on(lane) && !mask)
    return splat(scope.builder, load_one(scope, buffer, type, address, nullptr), lanes);
  if (address.coefficient(lane).value_or(0) != 0) return load(scope, buffer, type, address, mask);
  auto pattern = lane_pattern(address, lane, lanes);
  if (!pattern) return std::nullopt;
  std::vector<int64_t> wanted;
  for (size_t l = 0; l < pattern->offsets.size(); ++l) {
    if (reads(mask, l)) wanted.push_back(pattern->offsets[l]);
  }
  if (wanted.empty()) return std::nullopt;
  std::vector<int64_t> starts = windows_of(wanted, lanes);
  if (!mask && starts.size() > 1) share_windows(in_block, *pattern, wanted, starts);
  if (std::ssize(starts) > std::max<int64_t>(kMostWindows, lanes / 4)) return std::nullopt;
  if (mask && !llvm::isa<llvm::Constant>(mask)) {
    const int64_t last = buffer.elements - 1 - (std::ranges::max(wanted) - starts[0]);
    if (last < 0) return std::nullopt;
    llvm::IRBuilder<>& b = scope.builder;
    llvm::Value* first = index(pattern->base + IndexExpr(starts[0]), scope);
    first = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, first, b.getInt64(0));
    first = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, first, b.getInt64(static_cast<uint64_t>(last)));
    pattern->base = symbol(scope, first, {0, last}) - IndexExpr(starts[0]);
  }
  llvm::Type* element = storage_type(scope.builder, type, 1);
  std::vector<LaneOf> places(pattern->offsets.size());
  for (size_t w = 0; w < starts.size(); ++w) {
    const int64_t end = w + 1 < starts.size() ? starts[w + 1] : INT64_MAX;
    int64_t last = starts[w];
    for (int64_t at : wanted) {
      if (at < end) last = std::max(last, at);
    }
    const auto [vector, begin] = window_at(scope, buffer, element, pattern->base, starts[w], last, lanes);
    for (size_t l = 0; l < places.size(); ++l) {
      const int64_t at = pattern->offsets[l];
      if (!reads(mask, l))
        places[l] = {vector, 0};
      else if (at >= starts[w] && at < end)
        places[l] = {vector, static_cast<int>(at - begin)};
    }
  }
  return from_storage(scope.builder, type, put_together(scope.builder, places));
}

// Which row each lane is in, of those that the block's vectors lie across: none where the coordinate is no number of
// rows, or where such a vector is no row after the other.
std::optional<ElementEmitter::RowNumbers> ElementEmitter::row_numbers(const IndexExpr& coordinate, int lane,
                                                                      int lanes) const {
  IndexExpr first = coordinate.substitute(lane, 0), last = coordinate.substitute(lane, lanes - 1);
  for (int id : block_ids_) {
    first = first.substitute(id, IndexExpr(0));
    last = last.substitute(id, IndexExpr(block_values_.back()));
  }
  const IndexExpr length = last - first;
  const auto pattern = lane_pattern(of_block_values(coordinate), lane, lanes);
  if (!length.is_constant() || !pattern) return std::nullopt;
  const IndexExpr before = pattern->base - first;
  if (!before.is_constant() || before.constant() < 0) return std::nullopt;
  RowNumbers numbers{first, length.constant() + 1, pattern->offsets};
  for (size_t l = 0; l < numbers.of_lane.size(); ++l) {
    numbers.of_lane[l] += before.constant();
    const int64_t step = l == 0 ? 0 : numbers.of_lane[l] - numbers.of_lane[l - 1];
    if (step < 0 || step > 1 || numbers.of_lane[l] >= numbers.count) return std::nullopt;
  }
  return numbers;
}

// The indices on which an address depends, all of the same rows.
std::optional<ElementEmitter::FoundRows> ElementEmitter::found_rows(const IndexExpr& found, int lane, int lanes) const {
  FoundRows rows;
  for (const IndexExpr::Term& t : found.terms()) {
    const auto at = found_at_.find(t.atom->var);
    if (at == found_at_.end()) return std::nullopt;
    FoundRows::Index index{at->second.of, at->second.symbol, {}, {}, {}, t.coefficient};
    Coords coordinates;
    for (size_t d = 0; d < index.symbol.coords.size(); ++d) {
      if (!index.symbol.coords[d].depends_on(lane)) continue;
      index.along.push_back(d);
      index.sizes.push_back(index.of->operand(index.symbol.operand)->shape.dims[d]);
      coordinates.push_back(index.symbol.coords[d]);
    }
    auto numbers = row_numbers(linearize(index.sizes, coordinates), lane, lanes);
    if (!numbers) return std::nullopt;
    if (rows.count > 0 && (rows.count != numbers->count || rows.of_lane != numbers->of_lane)) return std::nullopt;
    index.first = numbers->first;
    rows.count = numbers->count;
    rows.of_lane = std::move(numbers->of_lane);
    rows.indices.push_back(std::move(index));
  }
  return rows.count > 0 ? std::optional(std::move(rows)) : std::nullopt;
}

// Where each of the rows begins, a lane each. Their indices are loaded as any others are, by vectors of 2^k lanes.
llvm::Value* ElementEmitter::elements_of(const FoundRows& rows, const IndexExpr& base, Scope& scope) {
  std::vector<llvm::Value*> parts;
  for (int64_t from = 0; from < rows.count;) {
    const auto lanes = static_cast<int>(std::bit_floor(static_cast<uint64_t>(rows.count - from)));
    const IndexExpr number = lanes_in(scope, from, lanes).number;
    IndexExpr start = base;
    for (const FoundRows::Index& i : rows.indices) {
      Symbol symbol = i.symbol;
      const Coords coordinates = delinearize(i.sizes, i.first + number);
      for (size_t k = 0; k < i.along.size(); ++k) symbol.coords[i.along[k]] = coordinates[k];
      symbol.var = vars_.fresh();
      bind_symbols(i.of, {{symbol}}, scope);
      start = start + IndexExpr::var(symbol.var, symbol.clamp) * i.step;
    }
    llvm::Value* v = index(start, scope);
    parts.push_back(v->getType()->isVectorTy() ? v : scope.builder.CreateVectorSplat(static_cast<unsigned>(lanes), v));
    from += lanes;
  }
  return llvm::concatenateVectors(scope.builder, parts);
}

// Lanes across rows of three or four words, each of which is loaded as a vector. (20000 rows of four floats, one core
// of a Granite Rapids: 10.1 us a row at a time, 5.3 so; of three 16.4 transposed, 9.3.)
Value ElementEmitter::words_found(Scope& scope, const BufferRef& buffer, DType type, const FoundRows& rows,
                                  const LanePattern& pattern) {
  constexpr int kWords = kMostFoundInWords / 4;
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Value* numbers = elements_of(rows, pattern.base, scope);
  const int64_t first = rows.of_lane[0], count = rows.of_lane.back() + 1 - first;
  const int there = static_cast<int>(std::ranges::max(pattern.offsets)) + 1;
  std::vector<llvm::Value*> found;
  numbers = lanes_from(b, numbers, static_cast<unsigned>(first), static_cast<unsigned>(round_up(count, 2)));
  const std::vector<llvm::Value*> offsets = offsets_of_lanes(b, numbers, 4);
  for (int64_t r = 0; r < count; ++r) {
    llvm::Value* at = b.CreateGEP(b.getInt8Ty(), buffer.pointer, offsets[static_cast<size_t>(r)]);
    found.push_back(load_beginning(b, buffer, element, at, kWords, there));
  }
  std::vector<int> places;
  for (size_t l = 0; l < rows.of_lane.size(); ++l)
    places.push_back(static_cast<int>((rows.of_lane[l] - first) * kWords + pattern.offsets[l]));
  return from_storage(b, type, b.CreateShuffleVector(joined(b, found), places));
}

// The same of rows of a few bytes, as integers, which one shuffle puts side by side. (9001 rows of 6 bytes out of
// 20003, a Zen 4: 21.5 us element by element.)
Value ElementEmitter::integers_found(Scope& scope, const BufferRef& buffer, DType type, const FoundRows& rows,
                                     const LanePattern& pattern) {
  llvm::IRBuilder<>& b = scope.builder;
  const int64_t bytes = dtype_bytes(type), length = std::ranges::max(pattern.offsets) + 1;
  const int64_t first = rows.of_lane[0], count = rows.of_lane.back() + 1 - first;
  const int64_t unit = (length * bytes > 4 ? 8 : 4) / bytes;  // elements
  const auto units = static_cast<int64_t>(std::bit_ceil(std::max<uint64_t>(2, static_cast<uint64_t>(count))));
  llvm::Value* numbers = elements_of(rows, pattern.base, scope);
  // A row at the end of the buffer is loaded with what is in front of it, and shifted.
  llvm::Value* last =
      b.CreateVectorSplat(static_cast<unsigned>(rows.count), b.getInt64(static_cast<uint64_t>(buffer.elements - unit)));
  auto narrow = [&](llvm::Value* v) {
    return buffer.elements > INT32_MAX ? v : b.CreateTrunc(v, v->getType()->getWithNewType(b.getInt32Ty()));
  };
  numbers = narrow(numbers), last = narrow(last);
  llvm::Value* starts = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, numbers, last);
  llvm::Value* shifts = b.CreateMul(b.CreateSub(numbers, starts),
                                    llvm::ConstantInt::get(starts->getType(), static_cast<uint64_t>(8 * bytes)));
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Type* whole = b.getIntNTy(static_cast<unsigned>(8 * unit * bytes));
  constexpr int64_t kFewRows = 8;  // (two of eight bytes, again and again: 0.77 us one by one, 0.93 gathered)
  llvm::Value* all = nullptr;
  if (gathers_slowly(*options_.target, DType::kU32) || count < kFewRows) {
    all = llvm::PoisonValue::get(vector_of(whole, units));
    for (int64_t r = 0; r < count; ++r) {
      llvm::Value* start = b.CreateExtractElement(starts, static_cast<uint64_t>(first + r));
      llvm::Value* at = b.CreateGEP(element, buffer.pointer, b.CreateZExt(start, b.getInt64Ty()));
      auto* row = b.CreateAlignedLoad(whole, at, llvm::Align(static_cast<uint64_t>(bytes)));
      annotate(row, buffer);
      all = b.CreateInsertElement(all, row, static_cast<uint64_t>(r));
    }
  } else {
    std::vector<int> lanes;  // the last one again, where there are fewer
    for (int64_t r = 0; r < units; ++r) lanes.push_back(static_cast<int>(first + std::min(r, count - 1)));
    llvm::Value* at = b.CreateGEP(element, buffer.pointer, b.CreateShuffleVector(starts, lanes));
    auto* rows_found = b.CreateMaskedGather(vector_of(whole, units), at, llvm::Align(static_cast<uint64_t>(bytes)));
    annotate(rows_found, buffer);
    all = rows_found;
  }
  shifts = lanes_from(b, shifts, static_cast<unsigned>(first), static_cast<unsigned>(units));
  all = b.CreateLShr(all, b.CreateZExtOrTrunc(shifts, all->getType()));
  std::vector<int> places;
  for (size_t l = 0; l < rows.of_lane.size(); ++l)
    places.push_back(static_cast<int>((rows.of_lane[l] - first) * unit + pattern.offsets[l]));
  return from_storage(b, type, b.CreateShuffleVector(b.CreateBitCast(all, vector_of(element, unit * units)), places));
}

// Lanes across short rows that each lie where an index says: each row is loaded once.
std::optional<Value> ElementEmitter::load_found(Scope& scope, const BufferRef& buffer, DType type,
                                                const IndexExpr& in_block) {
  const int lane = lane_var(in_block), lanes = lane_count(in_block);
  if (lane < 0 || block_ids_.empty() || packs(buffer, type) || dtype_bytes(type) > kMostFoundBytes / 2)
    return std::nullopt;
  const IndexExpr address = of_block_values(in_block);
  IndexExpr found;
  for (const IndexExpr::Term& t : address.terms()) {
    const auto bound = t.atom->kind == IndexExpr::AtomKind::kVar ? bound_.find(t.atom->var) : bound_.end();
    if (bound != bound_.end() && bound->second.value && bound->second.lanes > 0)
      found = found + IndexExpr::var(t.atom->var, t.atom->range) * t.coefficient;
  }
  const IndexExpr inside = address - found;
  if (found.is_constant() || vector_bound(inside)) return std::nullopt;
  const auto pattern = lane_pattern(inside, lane, lanes);
  const auto rows = pattern ? found_rows(found, lane, lanes) : std::nullopt;
  const int64_t bytes = dtype_bytes(type), length = pattern ? std::ranges::max(pattern->offsets) + 1 : 0;
  if (!rows || length * bytes > most_found_bytes(bytes) || buffer.elements * bytes < kMostFoundBytes)
    return std::nullopt;
  const int64_t first = rows->of_lane[0], count = rows->of_lane.back() + 1 - first;
  if (2 * count > lanes + 2) return std::nullopt;
  const bool in_words = length * bytes > kMostFoundBytes;
  if (in_words && buffer.elements * bytes > UINT32_MAX) return std::nullopt;
  return in_words ? words_found(scope, buffer, type, *rows, *pattern)
                  : integers_found(scope, buffer, type, *rows, *pattern);
}

}  // namespace hlojit::codegen

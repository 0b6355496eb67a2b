// Loads. The coefficient of the lane variable decides how a vector is read: 0 a splat, 1 contiguous, -1 reversed, a
// block of an unrolled digit transposed in registers, small strides as whole vectors of which lanes are picked, rows
// side by side, else a gather.
#include <algorithm>
#include <bit>

#include <llvm/IR/IntrinsicInst.h>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/packed.h"
#include "codegen/number/memory.h"
#include "codegen/number/parts.h"
#include "codegen/number/table.h"
#include "layout/divide.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

// So many lanes are loaded one by one sooner than a table is read: what was stored just before by the word has a load
// of all of it wait. (A Viterbi decoder of 4 states, 50 steps: 1.91 us by permutations of two lanes, 1.68 by loads.)
constexpr int kFewLanes = 2;

// No machine gathers less than a word, a Zen takes half as long again to do so as to load.
bool gathers_slowly(const Target& target, DType type) { return dtype_bytes(type) <= (target.is_zen() ? 8 : 2); }

// Lanes at addresses of their own, a masked one left out (zero). No machine moves 16 bytes so: of c128 each part goes
// on its own.
Value gather(llvm::IRBuilderBase& b, DType type, const BufferRef& buffer, llvm::Value* pointers, llvm::Value* mask) {
  int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements());
  auto part = [&](llvm::Type* element, llvm::Value* from) {
    llvm::Type* whole = vector_of(element, lanes);
    llvm::Align align(element->getScalarSizeInBits() / 8);
    auto* l = b.CreateMaskedGather(whole, from, align, mask, llvm::Constant::getNullValue(whole));
    annotate(l, buffer);
    return l;
  };
  if (type != DType::kC128) return from_storage(b, type, part(storage_type(b, type, 1), pointers));
  llvm::Type* f64 = b.getDoubleTy();
  llvm::Value* imaginary = b.CreateConstGEP1_64(f64, pointers, 1);
  llvm::Value* real = part(f64, pointers);
  return {type, real, part(f64, imaginary)};
}

// The first `there` elements of a vector of `lanes`.
llvm::Value* load_beginning(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, llvm::Value* pointer,
                            int lanes, int there) {
  auto* l = load_first(b, vector_of(element, lanes), pointer, element->getScalarSizeInBits() / 8, there);
  annotate(l, buffer);
  return l;
}

// Lanes loaded one by one: at(k) is where lane k is.
template <class At>
llvm::Value* load_each(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, unsigned lanes, At at) {
  const llvm::Align align(element->getScalarSizeInBits() / 8);
  llvm::Value* all = llvm::PoisonValue::get(vector_of(element, lanes));
  for (unsigned k = 0; k < lanes; ++k) {
    auto* one = b.CreateAlignedLoad(element, at(k), align);
    annotate(one, buffer);
    all = b.CreateInsertElement(all, one, b.getInt64(k));
  }
  return all;
}

// Lanes wherever they are said to be. Where they are in memory, which are words, leaves the vector
// in pairs. (16 floats from a table of 64 KiB, a Zen 4: 6.1 ns by the instruction, 5.4 word by word, 4.1 so. Bytes, for
// LLVM 19 loses the mask of a number that an address multiplies.)
llvm::Value* each_at(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, llvm::Value* numbers) {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(numbers->getType())->getNumElements();
  const uint64_t bytes = element->getScalarSizeInBits() / 8;
  llvm::Value* words = b.CreateTrunc(numbers, vector_of(b.getInt32Ty(), lanes));
  words = b.CreateShl(words, static_cast<uint64_t>(std::countr_zero(bytes)));
  llvm::Value* pairs = b.CreateBitCast(words, vector_of(b.getInt64Ty(), lanes / 2));
  llvm::Value* pair = nullptr;
  return load_each(b, buffer, element, lanes, [&](unsigned k) {
    if (k % 2 == 0) pair = lanes > 2 ? b.CreateExtractElement(pairs, b.getInt64(k / 2)) : pairs;
    llvm::Value* offset = k % 2 == 0 ? b.CreateAnd(pair, b.getInt64(UINT32_MAX)) : b.CreateLShr(pair, b.getInt64(32));
    return b.CreateGEP(b.getInt8Ty(), buffer.pointer, offset);
  });
}

// Lanes of a contiguous vector, zero where the mask does not hold. A part of the machine's `native` lanes of which none
// can be wanted is not read: without mask registers LLVM 19 takes a mask that it finds to be false for a true one, and
// reads what may be no memory.
llvm::Value* load_some(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, llvm::Value* pointer,
                       llvm::Value* mask, unsigned native) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  auto read = [&](unsigned first, unsigned count) -> llvm::Value* {
    auto* part = vector_of(element, count);
    auto* l = b.CreateMaskedLoad(part, b.CreateConstInBoundsGEP1_64(element, pointer, first),
                                 llvm::Align(element->getScalarSizeInBits() / 8), lanes_from(b, mask, first, count),
                                 llvm::Constant::getNullValue(part));
    annotate(l, buffer);
    return l;
  };
  std::vector<bool> none;
  for (unsigned first = 0; first + native <= lanes; first += native) none.push_back(never_holds(mask, first, native));
  if (std::ranges::find(none, true) == none.end()) return read(0, lanes);
  std::vector<llvm::Value*> parts;
  for (unsigned k = 0; k < none.size(); ++k) {
    parts.push_back(none[k] ? llvm::Constant::getNullValue(vector_of(element, native)) : read(k * native, native));
  }
  return joined(b, parts);
}

// Memory in vectors of n elements; `starts`: which element each begins with.
struct Run {
  std::vector<llvm::Value*> vectors;
  std::vector<int64_t> starts;
  int64_t n;

  int64_t vector_of(int64_t element) const { return element / n; }
  int64_t place_of(int64_t element) const { return element - starts[static_cast<size_t>(vector_of(element))]; }
};

// Of three vectors: an element's kind (its number modulo 3) has other places in each, as 3 divides no power of two. So
// the first two are blended, and one permutation takes the rest from the third.
llvm::Value* third(llvm::IRBuilderBase& b, const Run& run, const std::vector<int64_t>& wanted) {
  std::vector<int> blend(static_cast<size_t>(run.n), -1), order;
  for (int64_t at : wanted) {
    const auto place = static_cast<int>(run.place_of(at)), v = static_cast<int>(run.vector_of(at));
    const int n = static_cast<int>(run.n);
    if (v < 2) blend[static_cast<size_t>(place)] = v * n + place;
    order.push_back(v < 2 ? place : n + place);
  }
  return b.CreateShuffleVector(b.CreateShuffleVector(run.vectors[0], run.vectors[1], blend), run.vectors[2], order);
}

// Of four: of every two, halves of two kinds next to each other are brought together, which both of these share. (A
// machine that permutes once a cycle: areas of 20001 boxes of four corners 4.2 us by inserting from each vector, 3.2.)
llvm::Value* fourth(llvm::IRBuilderBase& b, const Run& run, const std::vector<int64_t>& wanted) {
  const int64_t half = run.n / 2, kind = wanted[0] % 4, first = kind / 2 * 2;
  std::vector<int> pairs, order;
  for (int64_t k = 0; k < run.n; ++k) pairs.push_back(static_cast<int>(k % half * 4 + first + k / half));
  for (int64_t at : wanted)
    order.push_back(static_cast<int>(at / 4 / half * run.n + (kind - first) * half + at / 4 % half));
  return b.CreateShuffleVector(b.CreateShuffleVector(run.vectors[0], run.vectors[1], pairs),
                               b.CreateShuffleVector(run.vectors[2], run.vectors[3], pairs), order);
}

// Of eight: of every two, the four kinds of which the wanted one is; what is left is every fourth of four.
llvm::Value* eighth(llvm::IRBuilderBase& b, const Run& run, std::vector<int64_t> wanted) {
  const int64_t first = wanted[0] % 8 / 4 * 4;
  std::vector<int> kinds;
  for (int64_t at = 0; at < 2 * run.n; ++at) {
    if (at % 8 / 4 * 4 == first) kinds.push_back(static_cast<int>(at));
  }
  Run half{{}, {}, run.n};
  for (size_t v = 0; v < run.vectors.size(); v += 2)
    half.vectors.push_back(b.CreateShuffleVector(run.vectors[v], run.vectors[v + 1], kinds));
  for (int64_t& at : wanted) at = at / 8 * 4 + at % 4;
  return fourth(b, half, wanted);
}

// The elements `wanted`, every second, third, fourth or eighth of a run of as many vectors.
llvm::Value* picked(llvm::IRBuilderBase& b, const Run& run, const std::vector<int64_t>& wanted) {
  const auto step = std::ssize(run.vectors);
  const bool whole = run.starts.back() == (step - 1) * run.n;
  if (whole && step == 3) return third(b, run, wanted);
  if (whole && step == 4) return fourth(b, run, wanted);
  if (whole && step == 8) return eighth(b, run, wanted);
  llvm::Value* all = llvm::PoisonValue::get(run.vectors[0]->getType());
  for (int64_t v = 0; v < step; ++v) {
    std::vector<int> mask;
    for (int64_t k = 0; k < run.n; ++k) {
      const int64_t at = wanted[static_cast<size_t>(k)];
      mask.push_back(static_cast<int>(run.vector_of(at) == v ? run.n + run.place_of(at) : k));
    }
    all = b.CreateShuffleVector(all, run.vectors[static_cast<size_t>(v)], mask);
  }
  return all;
}

}  // namespace

llvm::Value* pointers_at(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, llvm::Value* numbers) {
  const bool words = buffer.elements > 0 && buffer.elements <= INT32_MAX;
  if (words) numbers = b.CreateTrunc(numbers, numbers->getType()->getWithNewType(b.getInt32Ty()));
  return b.CreateGEP(element, buffer.pointer, numbers);
}

bool fits_transposed(int64_t count, int64_t lanes, DType type) {
  constexpr int64_t kPart = 16;  // bytes that are turned at a time
  if (count == lanes) return true;
  if (!std::has_single_bit(static_cast<uint64_t>(count))) return false;
  const bool wide = count > lanes && std::has_single_bit(static_cast<uint64_t>(lanes));
  return count * dtype_bytes(type) <= kPart || (wide && lanes * dtype_bytes(type) >= kPart);
}

bool gathers_each(const Target& target, const Shape& shape) {
  return gathers_slowly(target, shape.type) &&
         physical_elements(shape) > largest_table(target, dtype_bytes(shape.type));
}

std::optional<Value> ElementEmitter::load_block(Scope& scope, const BufferRef& buffer, DType type,
                                                const IndexExpr& address) {
  int lane = lane_var(address);
  auto stride = address.coefficient(lane);
  if (block_ids_.empty() || !stride || *stride <= 1) return std::nullopt;
  size_t k = 0;
  while (k < block_ids_.size() && !address.depends_on(block_ids_[k])) ++k;
  if (k == block_ids_.size() || address.coefficient(block_ids_[k]) != 1) return std::nullopt;
  auto count = static_cast<int64_t>(block_ids_.size());
  int lanes = lane_count(address);
  const bool fits = fits_transposed(count, lanes, type);
  if (!fits && *stride != count) return std::nullopt;
  // The whole block is one run of memory. (Not squares, whose lanes LLVM moves one by one: packing 33x16 took 16 ms to
  // compile instead of 6.)
  const bool one_run = *stride == count && !(fits && count >= lanes);
  const BlockPart part{read_together_.first, std::min(read_together_.end, block_ids_.size())};
  const bool whole = part == BlockPart{0, block_ids_.size()};
  if (one_run && !whole) return std::nullopt;
  IndexExpr base = address.substitute(lane, 0).substitute(block_ids_[k], 0);
  llvm::IRBuilder<>& b = scope.builder;
  for (const BlockLoad& known : scope.blocks) {
    if (known.pointer == buffer.pointer && known.address == base && known.part == part) {
      return from_storage(b, type, known.values[k]);
    }
  }
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(type)));
  std::vector<llvm::Value*> values;
  llvm::Value* first_row = nullptr;
  if (one_run) {
    auto* wide =
        b.CreateAlignedLoad(vector_of(element, lanes * count), address_of(scope, buffer, element, base), align);
    annotate(wide, buffer);
    for (int64_t j = 0; j < count; ++j) {
      std::vector<int> mask;
      for (int l = 0; l < lanes; ++l) mask.push_back(static_cast<int>(l * count + j));
      values.push_back(b.CreateShuffleVector(wide, mask));
    }
  } else {
    std::vector<int> places(block_ids_.size(), -1);
    for (size_t j = part.first; j < part.end; ++j) places[j] = static_cast<int>(j - part.first);
    const auto there = static_cast<int64_t>(part.end - part.first);
    const IndexExpr first = base + IndexExpr(static_cast<int64_t>(part.first));
    for (int l = 0; l < lanes; ++l) {
      auto* row = b.CreateAlignedLoad(vector_of(element, there),
                                      address_of(scope, buffer, element, first + IndexExpr(l * *stride)), align);
      annotate(row, buffer);
      values.push_back(whole        ? row
                       : there == 1 ? b.CreateVectorSplat(static_cast<unsigned>(count), row)
                                    : b.CreateShuffleVector(row, places));
    }
    if (whole && buffer.read_only) first_row = llvm::cast<llvm::LoadInst>(values[0])->getPointerOperand();
    values = transposed(b, values);
  }
  scope.blocks.push_back({buffer.pointer, base, part, values, first_row, *stride});
  return from_storage(b, type, values[k]);
}

// Rows that begin at `start`, a lane each, `there` elements of `per`: their element k in the lanes of values[k].
std::vector<llvm::Value*> ElementEmitter::rows_at(Scope& scope, const BufferRef& buffer, DType type,
                                                  const IndexExpr& start, int per, int there) {
  llvm::IRBuilder<>& b = scope.builder;
  const int lane = lane_var(start), lanes = lane_count(start), bytes = static_cast<int>(dtype_bytes(type));
  const int native = std::min(lanes, vector_bytes() / std::max(bytes, 4));
  const bool found = vector_bound(start);
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Value* numbers = found ? index(start, scope) : nullptr;
  auto row_at = [&](int l) {
    llvm::Value* at = found ? b.CreateGEP(element, buffer.pointer, b.CreateExtractElement(numbers, b.getInt64(l)))
                            : address_of(scope, buffer, element, start.substitute(lane, l));
    return load_beginning(b, buffer, element, at, per, there);
  };
  std::vector<std::vector<llvm::Value*>> parts(static_cast<size_t>(per));
  for (int from = 0; from < lanes; from += native) {
    std::vector<llvm::Value*> rows;
    for (int l = from; l < from + native; ++l) rows.push_back(row_at(l));
    auto columns = transposed(b, rows);
    for (size_t k = 0; k < columns.size(); ++k) parts[k].push_back(columns[k]);
  }
  std::vector<llvm::Value*> values;
  parts.resize(static_cast<size_t>(there));
  for (auto& p : parts) values.push_back(joined(b, p));
  return values;
}

// Does an index of its own say where each number of the block lies?
bool ElementEmitter::found_by_block(const IndexExpr& asked) const {
  auto in_block = [&](const IndexExpr& e) {
    return std::ranges::any_of(block_ids_, [&](int id) { return e.depends_on(id); });
  };
  return std::ranges::any_of(asked.terms(), [&](const IndexExpr::Term& t) {
    const auto at = t.atom->kind == IndexExpr::AtomKind::kVar ? found_at_.find(t.atom->var) : found_at_.end();
    return at != found_at_.end() && std::ranges::any_of(at->second.symbol.coords, in_block);
  });
}

// Lanes in rows of their own, far apart or where an index says: the elements next to each other in a row are mostly
// asked for one after the other, so four (two of 8 bytes) of each row are loaded and transposed. (One by one, rows of 9
// took 1.3 cycles an element; four elements of a row each by gathers three times as long, Zen 4.) Backwards if the last
// ones came so; never beyond the buffer.
std::optional<Value> ElementEmitter::load_rows(Scope& scope, const BufferRef& buffer, DType type,
                                               const IndexExpr& asked) {
  const int lane = lane_var(asked), bytes = static_cast<int>(dtype_bytes(type));
  const bool found = vector_bound(asked);
  if ((lane < 0 && !found) || packs(buffer, type) || bytes < 2 || bytes > 8) return std::nullopt;
  IndexExpr address = of_block_values(asked);
  const bool in_block = !(address == asked);
  // Of what an index says, neighbours are asked for where they are numbers of a block, or steps of a group.
  auto stride = found ? std::nullopt : address.coefficient(lane);
  if (found ? (!in_block && !in_groups_) || found_by_block(asked) : !stride || *stride <= kFewStrides)
    return std::nullopt;
  // What is contiguous along the block is load_block's.
  if (!found && std::ranges::any_of(block_ids_, [&](int id) { return asked.coefficient(id) == 1; }))
    return std::nullopt;
  int per = bytes == 8 ? 2 : 4;
  if (std::min(lane_count(address), vector_bytes() / std::max(bytes, 4)) < 2 * per) return std::nullopt;
  auto apart = [](const IndexExpr& x, const IndexExpr& y) -> std::optional<int64_t> {
    IndexExpr d = x - y;
    return d.terms().empty() ? std::optional(d.constant()) : std::nullopt;
  };
  int64_t behind = 0;  // the first element loaded
  std::vector<RowLoad>& loaded = scope.rows[buffer.pointer];
  for (const RowLoad& known : loaded) {
    auto at = apart(address, known.address);
    if (!at) continue;
    if (*at >= 0 && *at < std::ssize(known.values))
      return from_storage(scope.builder, type, known.values[static_cast<size_t>(*at)]);
    if (*at == -1) behind = per - 1;
  }
  const Range range = address.range();
  behind = std::max(behind, range.hi + per - buffer.elements);
  int there = per;
  if (range.lo < behind) {  // the beginnings of short rows, the last of which ends the buffer
    behind = 0;
    there = static_cast<int>(std::min<int64_t>(per, buffer.elements - range.hi));
    if (there == 2) per = 2;
    if (there < 2) return std::nullopt;
  }
  // (A range may be wider than what is read, and end behind the buffer.)
  if (range.lo < behind || behind >= per || buffer.elements < per) return std::nullopt;
  RowLoad made{address - IndexExpr(behind), {}};
  made.values = rows_at(scope, buffer, type, made.address, per, there);
  loaded.push_back(std::move(made));
  return from_storage(scope.builder, type, loaded.back().values[static_cast<size_t>(behind)]);
}

// Every stride-th element, where stride elements make an integer: whole groups are loaded and each lane
// shifts its element out (one row of a bf16 pair in T(8,128)(2,1), every second f32). If the buffer consists of whole
// groups, the element's is read; else one that begins with an element whose address has a multiple for its constant, so
// that the elements of a written-out row share loads. Nothing behind the buffer's end is read.
std::optional<Value> ElementEmitter::load_groups(Scope& scope, const BufferRef& buffer, DType type,
                                                 const IndexExpr& address, int64_t stride) {
  int64_t bytes = dtype_bytes(type);
  if (!in_group(stride, bytes) || buffer.elements == 0) return std::nullopt;
  const bool whole = buffer.elements % stride == 0;
  IndexExpr phase = mod(whole ? address : IndexExpr(address.constant()), stride);
  if (lane_count(phase) > 1) return std::nullopt;
  IndexExpr base = address - phase;
  if (const Range at = base.range(); !whole && (at.lo < 0 || at.hi + stride > buffer.elements)) return std::nullopt;
  int lane = lane_var(base);
  llvm::IRBuilder<>& b = scope.builder;
  int lanes = lane_count(address);
  auto group_bits = static_cast<unsigned>(8 * stride * bytes);
  auto* groups = vector_of(b.getIntNTy(group_bits), lanes);
  llvm::Type* element = storage_type(b, type, 1);
  auto* wide = b.CreateAlignedLoad(groups, address_of(scope, buffer, element, base.substitute(lane, 0)),
                                   llvm::Align(static_cast<uint64_t>(bytes)));
  annotate(wide, buffer);
  llvm::Value* shift = b.CreateMul(index(phase, scope), b.getInt64(static_cast<uint64_t>(8 * bytes)));
  shift = b.CreateVectorSplat(static_cast<unsigned>(lanes), b.CreateTrunc(shift, b.getIntNTy(group_bits)));
  llvm::Value* narrow =
      b.CreateTrunc(b.CreateLShr(wide, shift), vector_of(b.getIntNTy(static_cast<unsigned>(8 * bytes)), lanes));
  return from_storage(b, type, b.CreateBitCast(narrow, vector_of(element, lanes)));
}

// A vector as it lies in memory. Whoever asks again gets the same one: what is picked out of several may then be put
// together anew by what they hold (store_block).
llvm::Value* ElementEmitter::vector_at(Scope& scope, const BufferRef& buffer, llvm::Type* element, int64_t lanes,
                                       const IndexExpr& address) {
  llvm::Type* type = vector_of(element, lanes);
  for (const VectorLoad& known : scope.vectors) {
    if (known.pointer == buffer.pointer && known.value->getType() == type && known.address == address)
      return known.value;
  }
  auto* l = scope.builder.CreateAlignedLoad(type, address_of(scope, buffer, element, address),
                                            llvm::Align(element->getScalarSizeInBits() / 8));
  annotate(l, buffer);
  scope.vectors.push_back({buffer.pointer, address, l});
  return l;
}

// Every few elements, forwards or backwards: the vectors from the first of them to the last, the last vector
// moved back to end there, and each lane picked out of the one that has it. Nothing beyond is read. Eight
// lanes of stride 2 took 10 cycles as a gather, take 2 so.
std::optional<Value> ElementEmitter::load_strided(Scope& scope, const BufferRef& buffer, DType type,
                                                  const IndexExpr& address, int64_t stride) {
  int64_t step = std::abs(stride), lanes = lane_count(address);
  int64_t n = std::min<int64_t>(lanes, vector_bytes() / dtype_bytes(type));
  // Bytes, of which no machine has gathers, also in groups of eight. (Bits packed into 20,000 bytes: 9.2 us by groups.)
  const bool bytes = step == 8 && dtype_bytes(type) == 1 && n >= 32;
  if (step < 2 || (step > kFewStrides && !bytes) || n < 4) return std::nullopt;
  // (Of other vectors than of 2^k lanes, two would have elements in the same lanes.)
  if (!std::has_single_bit(static_cast<uint64_t>(n)) || lanes % n != 0) return std::nullopt;
  int lane = lane_var(address);
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Type* element = storage_type(b, type, 1);
  // Reads of several of the elements in between share their vectors if those begin with the first of the group. Where
  // the last group may be cut short, the last vector ends with the element that is wanted.
  const int64_t first = address.substitute(lane, stride > 0 ? 0 : lanes - 1).constant();
  const int64_t phase = (first % step + step) % step;
  const Range range = address.range();
  const bool whole = range.lo >= phase && range.hi - phase + step <= buffer.elements;
  if (bytes && !whole) return std::nullopt;
  const int64_t before = whole ? phase : 0, last = whole ? (step - 1) * n : (n - 1) * step + 1 - n;
  std::vector<llvm::Value*> parts;
  for (int64_t part = 0; part < lanes; part += n) {
    IndexExpr base = address.substitute(lane, stride > 0 ? part : part + n - 1) - IndexExpr(before);  // the lowest
    Run run{{}, {}, n};
    for (int64_t v = 0; v < step; ++v) {
      run.starts.push_back(std::min(v * n, last));
      run.vectors.push_back(vector_at(scope, buffer, element, n, base + IndexExpr(run.starts.back())));
    }
    std::vector<int64_t> wanted;
    for (int64_t k = 0; k < n; ++k) wanted.push_back((stride > 0 ? k : n - 1 - k) * step + before);
    parts.push_back(picked(b, run, wanted));
  }
  return from_storage(b, type, joined(b, parts));
}

// Elements at distances that are known, one by one from one pointer. Those of less than a word, which no machine
// gathers: a vector of pointers was taken apart (sums of two columns of bytes 1.24 us, 0.66 so). Others where a gather
// takes longer than its loads (3001 rows of 11, five columns found by index, a Zen 4: 7.6 us, 2.6 so).
Value ElementEmitter::load_apart(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address) {
  llvm::IRBuilder<>& b = scope.builder;
  const int lane = lane_var(address);
  llvm::Type* element = storage_type(b, type, 1);
  const auto at = [&](unsigned k) { return address_of(scope, buffer, element, address.substitute(lane, k)); };
  return from_storage(b, type, load_each(b, buffer, element, static_cast<unsigned>(lane_count(address)), at));
}

// A scalar. Under a mask that does not hold it is the first element, which is there to be read whenever the array has
// one.
Value ElementEmitter::load_one(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                               llvm::Value* mask) {
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Value* at = nullptr;
  if (mask)
    at = b.CreateGEP(element, buffer.pointer, b.CreateSelect(mask, index(address, scope), b.getInt64(0)));
  else
    at = address_of(scope, buffer, element, address);
  auto* l = b.CreateAlignedLoad(element, at, llvm::Align(static_cast<uint64_t>(dtype_bytes(type))));
  annotate(l, buffer);
  return from_storage(b, type, l);
}

bool ElementEmitter::fits_table(const BufferRef& buffer, DType type, int lanes) const {
  const Target& target = *options_.target;
  const int64_t bytes = dtype_bytes(type);
  if (lanes <= kFewLanes || !buffer.read_only || buffer.elements <= 0 || packs(buffer, type)) return false;
  if (buffer.known_in) return false;  // tables are loaded outside of all loops
  if (buffer.elements > largest_table(target, bytes)) return false;
  // All of many registers are read however few lanes want them. (Six rows in columns of a table of 13 registers, four
  // lanes at a time, a Zen 4: 11.0 us, word by word 6.6.)
  const int64_t few = target.isa() == Isa::kAvx2 ? 2 : 4;
  return ceil_div(buffer.elements, table_lanes(target, bytes)) <= std::max<int64_t>(few, lanes / 2);
}

// Lanes anywhere in a buffer of few elements: these are registers, loaded outside of all loops, which are picked from.
Value ElementEmitter::load_from_table(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                                      int lanes, llvm::Value* mask) {
  const int64_t bytes = dtype_bytes(type);
  const int per = table_lanes(*options_.target, bytes);
  llvm::Type* number = scope.builder.getIntNTy(static_cast<unsigned>(8 * bytes));
  std::vector<llvm::Value*>& table = outermost_->tables[buffer.pointer];
  for (int64_t first = std::ssize(table) * per; first < buffer.elements; first += per) {
    llvm::IRBuilder<>& b = outermost_->builder;
    llvm::Value* at = first == 0 ? buffer.pointer
                                 : b.CreateConstInBoundsGEP1_64(number, buffer.pointer, static_cast<uint64_t>(first));
    table.push_back(
        load_beginning(b, buffer, number, at, per, static_cast<int>(std::min<int64_t>(per, buffer.elements - first))));
  }
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Value* at = splat(b, {DType::kS64, index(address, scope)}, lanes).v;
  llvm::Value* found = look_up(b, *options_.target, table, b.CreateTrunc(at, vector_of(number, lanes)));
  if (mask) found = b.CreateSelect(mask, found, llvm::Constant::getNullValue(found->getType()));
  return from_storage(b, type, b.CreateBitCast(found, vector_of(storage_type(b, type, 1), lanes)));
}

// Whole vectors, of which constant shuffles take the lanes: these lie at one distance, or as a pattern says.
std::optional<Value> ElementEmitter::load_by_shuffles(Scope& scope, const BufferRef& buffer, DType type,
                                                      const IndexExpr& address, std::optional<int64_t> stride,
                                                      llvm::Value* mask) {
  if (!stride) return load_pattern(scope, buffer, type, address, mask);
  if (mask) return std::nullopt;
  if (auto v = load_block(scope, buffer, type, address)) return v;
  const bool wide = std::abs(*stride) > kFewStrides;
  const IndexExpr known = of_block_values(address);
  if (auto v = wide ? load_strided(scope, buffer, type, known, *stride) : std::nullopt) return v;
  if (auto v = load_groups(scope, buffer, type, address, *stride)) return v;
  return wide ? std::nullopt : load_strided(scope, buffer, type, known, *stride);
}

// Lanes side by side, forwards or backwards. (In pairs forwards, and without a mask.)
Value ElementEmitter::load_run(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                               int64_t stride, llvm::Value* mask) {
  llvm::IRBuilder<>& b = scope.builder;
  const int lane = lane_var(address), lanes = lane_count(address);
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Value* pointer = address_of(scope, buffer, element, address.substitute(lane, stride == 1 ? 0 : lanes - 1));
  llvm::Value* l = nullptr;
  if (mask) {
    const auto native = static_cast<unsigned>(options_.target->vector_bytes() / dtype_bytes(type));
    l = load_some(b, buffer, element, pointer, stride == 1 ? mask : reversed(b, mask), native);
  } else {
    auto* run =
        b.CreateAlignedLoad(vector_of(element, lanes), pointer, llvm::Align(static_cast<uint64_t>(dtype_bytes(type))));
    annotate(run, buffer);
    l = run;
  }
  return from_storage(b, type, stride == 1 ? l : reversed(b, l), pairs_along(address));
}

void ElementEmitter::prefetch(Scope& scope, const Access& access, Cache cache) {
  llvm::IRBuilder<>& b = scope.builder;
  const int lanes = lane_count(access.address);
  if (lanes == 1 || access.address.coefficient(lane_var(access.address)) != 1) return;
  const IndexExpr first = access.address.substitute(lane_var(access.address), 0);
  llvm::Type* element = storage_type(b, access.parameter->shape.type, 1);
  llvm::Value* at = address_of(scope, buffers_.at(access.parameter), element, first);
  for (int64_t line = 0; line < lanes * access.bytes; line += kCacheLine) {
    llvm::Value* to = b.CreateConstGEP1_64(b.getInt8Ty(), at, static_cast<uint64_t>(line));
    codegen::prefetch(b, to, cache);
  }
}

Value ElementEmitter::load(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                           llvm::Value* mask) {
  if (packs(buffer, type)) return load_packed(scope, buffer, type, address, mask);
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Type* element = storage_type(b, type, 1);
  int lanes = lane_count(address);
  auto* mask_lanes = mask ? llvm::dyn_cast<llvm::FixedVectorType>(mask->getType()) : nullptr;
  if (lanes == 1 && !mask_lanes) return load_one(scope, buffer, type, address, mask);
  int lane = lane_var(address);
  auto stride = lane < 0 || vector_bound(address) ? std::nullopt : address.coefficient(lane);
  // Where all lanes are read or none, those at the buffer's beginning do for none: a masked load whose address is no
  // memory takes a processor hundreds of cycles, a gather becomes a branch a lane.
  if (mask && !mask_lanes && stride) {
    const IndexExpr lowest = address.substitute(lane, *stride > 0 ? 0 : lanes - 1);
    const int64_t last = buffer.elements - 1 - std::abs(*stride) * (lanes - 1);
    if (last >= 0) {
      llvm::Value* start = b.CreateSelect(mask, index(lowest, scope), b.getInt64(0));
      return load(scope, buffer, type, symbol(scope, start, {0, last}) + (address - lowest), nullptr);
    }
  }
  if (llvm::Value* own = belonging(address)) {
    if (mask && !mask_lanes) mask = b.CreateVectorSplat(static_cast<unsigned>(lanes), mask);
    mask = mask ? b.CreateAnd(mask, own) : own;
    mask_lanes = llvm::cast<llvm::FixedVectorType>(mask->getType());
  }
  if (mask_lanes)
    lanes = static_cast<int>(mask_lanes->getNumElements());
  else if (mask)
    mask = b.CreateVectorSplat(static_cast<unsigned>(lanes), mask);
  const int pairs = pairs_along(address);
  const bool runs = stride == 1 || (stride == -1 && pairs == 0);
  if (runs && !(mask && pairs > 0)) return load_run(scope, buffer, type, address, *stride, mask);
  const bool table = fits_table(buffer, type, lanes);
  if (table && vector_bound(address)) return load_from_table(scope, buffer, type, address, lanes, mask);
  if (auto v = pairs > 0 ? std::nullopt : load_by_shuffles(scope, buffer, type, address, stride, mask)) return *v;
  if (table) return load_from_table(scope, buffer, type, address, lanes, mask);
  if (pairs == 0 && stride && !mask && gathers_slowly(*options_.target, type))
    return load_apart(scope, buffer, type, address);
  llvm::Value* at = splat(b, {DType::kS64, index(address, scope)}, lanes).v;
  // One by one what no machine gathers, and what is gathered slowly. Under a mask each load would be a branch and a
  // block of its own (50 gathers of 32 bytes took LLVM 1.2 s); what is not wanted reads the first element.
  const bool by_words = lanes % 2 == 0 && buffer.elements > 0 && buffer.elements * dtype_bytes(type) <= UINT32_MAX;
  if (by_words && gathers_slowly(*options_.target, type) && (few_gathers_ || dtype_bytes(type) < 4)) {
    if (mask) at = b.CreateSelect(mask, at, llvm::Constant::getNullValue(at->getType()));
    llvm::Value* found = each_at(b, buffer, element, at);
    if (mask) found = b.CreateSelect(mask, found, llvm::Constant::getNullValue(found->getType()));
    return from_storage(b, type, found);
  }
  if (!mask) mask = llvm::Constant::getAllOnesValue(vector_of(b.getInt1Ty(), lanes));
  return gather(b, type, buffer, pointers_at(b, buffer, element, at), mask);
}

}  // namespace hlojit::codegen

// Loads. The coefficient of the lane variable decides how a vector is read: 0 a splat, 1 contiguous, -1 reversed, a
// block of an unrolled digit transposed in registers (load_rows.cc), small strides as whole vectors of which lanes are
// picked (load_strided.cc), a known pattern as runs (load_pattern.cc), what wraps here and there as if it did not
// (load_wrapping.cc), rows side by side, else a gather.
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

// Lanes wherever they are said to be.
llvm::Value* each_at(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, llvm::Value* numbers) {
  const std::vector<llvm::Value*> offsets = offsets_of_lanes(b, numbers, element->getScalarSizeInBits() / 8);
  return load_each(b, buffer, element, static_cast<unsigned>(offsets.size()),
                   [&](unsigned k) { return b.CreateGEP(b.getInt8Ty(), buffer.pointer, offsets[k]); });
}

// The same of less than a word, which is shifted out of the word that begins there, or, at the end of the buffer, of
// its last one. (184301 bf16, each where an index says, a Granite Rapids: 68 us one by one, 32 so; 86060 bytes 32
// and 15.)
llvm::Value* gather_in_words(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element,
                             llvm::Value* numbers) {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(numbers->getType())->getNumElements();
  const auto bits = static_cast<uint64_t>(element->getScalarSizeInBits());
  llvm::Type* word = vector_of(b.getInt32Ty(), lanes);
  auto all = [&](int64_t n) { return llvm::ConstantInt::get(word, static_cast<uint64_t>(n), true); };
  llvm::Value* offsets = b.CreateMul(b.CreateTrunc(numbers, word), all(static_cast<int64_t>(bits / 8)));
  llvm::Value* last = all(buffer.elements * static_cast<int64_t>(bits / 8) - 4);
  llvm::Value* starts = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, offsets, last);
  auto* words = b.CreateMaskedGather(word, b.CreateGEP(b.getInt8Ty(), buffer.pointer, starts), llvm::Align(bits / 8));
  annotate(words, buffer);
  llvm::Value* shifted = b.CreateLShr(words, b.CreateMul(b.CreateSub(offsets, starts), all(8)));
  llvm::Value* found = b.CreateTrunc(shifted, vector_of(b.getIntNTy(static_cast<unsigned>(bits)), lanes));
  return b.CreateBitCast(found, vector_of(element, lanes));
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

}  // namespace

llvm::Value* load_beginning(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, llvm::Value* pointer,
                            int lanes, int there) {
  auto* l = load_first(b, vector_of(element, lanes), pointer, element->getScalarSizeInBits() / 8, there);
  annotate(l, buffer);
  return l;
}

llvm::Value* pointers_at(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, llvm::Value* numbers) {
  const bool words = buffer.elements > 0 && buffer.elements <= INT32_MAX;
  if (words) numbers = b.CreateTrunc(numbers, numbers->getType()->getWithNewType(b.getInt32Ty()));
  return b.CreateGEP(element, buffer.pointer, numbers);
}

// They leave the vector in pairs. (16 floats from a table of 64 KiB, a Zen 4: 6.1 ns by the instruction that gathers,
// 5.4 word by word, 4.1 so. Bytes, for LLVM 19 loses the mask of a number that an address multiplies.)
std::vector<llvm::Value*> offsets_of_lanes(llvm::IRBuilderBase& b, llvm::Value* numbers, uint64_t bytes) {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(numbers->getType())->getNumElements();
  llvm::Value* words = b.CreateTrunc(numbers, vector_of(b.getInt32Ty(), lanes));
  words = b.CreateShl(words, static_cast<uint64_t>(std::countr_zero(bytes)));
  llvm::Value* pairs = b.CreateBitCast(words, vector_of(b.getInt64Ty(), lanes / 2));
  std::vector<llvm::Value*> offsets;
  for (uint64_t k = 0; k < lanes / 2; ++k) {
    llvm::Value* pair = lanes > 2 ? b.CreateExtractElement(pairs, b.getInt64(k)) : pairs;
    offsets.push_back(b.CreateAnd(pair, b.getInt64(UINT32_MAX)));
    offsets.push_back(b.CreateLShr(pair, b.getInt64(32)));
  }
  return offsets;
}

bool gathers_slowly(const Target& target, DType type) { return dtype_bytes(type) <= (target.is_zen() ? 8 : 2); }

bool gathers_each(const Target& target, const Shape& shape) {
  return gathers_slowly(target, shape.type) &&
         physical_elements(shape) > largest_table(target, dtype_bytes(shape.type));
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
  // What an index says is known to the read alone.
  if (!std::ranges::all_of(first.variables(), [&](int v) { return bound_.contains(v); })) return;
  llvm::Type* element = storage_type(b, access.parameter->shape.type, 1);
  llvm::Value* at = address_of(scope, buffers_.at(access.parameter), element, first);
  for (int64_t line = 0; line < lanes * access.bytes; line += kCacheLine) {
    llvm::Value* to = b.CreateConstGEP1_64(b.getInt8Ty(), at, static_cast<uint64_t>(line));
    codegen::prefetch(b, to, cache);
  }
}

// Lanes at addresses of their own. In words, or one by one, what no machine gathers; one by one what is gathered
// slowly. Under a mask each load would be a branch and a block of its own (50 gathers of 32 bytes took LLVM 1.2 s);
// what is not wanted reads the first element.
Value ElementEmitter::load_anywhere(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                                    llvm::Value* mask) {
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Type* element = storage_type(b, type, 1);
  const int lanes = mask ? static_cast<int>(llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements())
                         : lane_count(address);
  llvm::Value* at = splat(b, {DType::kS64, index(address, scope)}, lanes).v;
  const bool by_words = lanes % 2 == 0 && buffer.elements > 0 && buffer.elements * dtype_bytes(type) <= UINT32_MAX;
  if (by_words && gathers_slowly(*options_.target, type) && (few_gathers_ || dtype_bytes(type) < 4)) {
    if (mask) at = b.CreateSelect(mask, at, llvm::Constant::getNullValue(at->getType()));
    const int64_t size = buffer.elements * dtype_bytes(type);
    const bool in_words = !gathers_slowly(*options_.target, DType::kU32) && size >= 4 && size <= INT32_MAX;
    llvm::Value* found = in_words ? gather_in_words(b, buffer, element, at) : each_at(b, buffer, element, at);
    if (mask) found = b.CreateSelect(mask, found, llvm::Constant::getNullValue(found->getType()));
    return from_storage(b, type, found);
  }
  if (!mask) mask = llvm::Constant::getAllOnesValue(vector_of(b.getInt1Ty(), lanes));
  return gather(b, type, buffer, pointers_at(b, buffer, element, at), mask);
}

Value ElementEmitter::load(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                           llvm::Value* mask) {
  if (packs(buffer, type)) return load_packed(scope, buffer, type, address, mask);
  llvm::IRBuilder<>& b = scope.builder;
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
  if (auto v = stride ? std::nullopt : load_wrapping(scope, buffer, type, address, mask)) return *v;
  return load_anywhere(scope, buffer, type, address, mask);
}

}  // namespace hlojit::codegen

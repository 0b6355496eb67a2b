// Stores, the mirror of load.cc: contiguous, reversed, a block transposed or interleaved in registers, else a scatter.
#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>

#include <llvm/IR/MDBuilder.h>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/packed.h"
#include "codegen/number/interleave.h"
#include "codegen/number/parts.h"
#include "codegen/number/transpose.h"
#include "compiler/plan/target_info.h"
#include "layout/divide.h"

namespace hlojit::codegen {
namespace {

void scatter(llvm::IRBuilderBase& b, const Value& value, const BufferRef& buffer, llvm::Value* pointers,
             llvm::Value* mask) {
  auto part = [&](llvm::Value* v, llvm::Value* to) {
    annotate(b.CreateMaskedScatter(v, to, llvm::Align(v->getType()->getScalarSizeInBits() / 8), mask), buffer);
  };
  if (value.type != DType::kC128) return part(to_storage(b, value), pointers);
  part(value.v, pointers);
  part(value.imag, b.CreateConstGEP1_64(b.getDoubleTy(), pointers, 1));
}

// Rows of lanes that one call turns, through no registers of ours.
bool is_called_square(Isa isa, int64_t rows, int64_t lanes) {
  return rows == square_side(isa) && lanes == rows && fewest_squares(isa) == 1;
}

// Shuffles a vector that interleaving takes: the sum of the prime factors.
int64_t shuffles_in_turn(int64_t count) {
  int64_t sum = 0;
  for (int64_t factor = 2; count > 1; ++factor) {
    for (; count % factor == 0; count /= factor) sum += factor;
  }
  return sum;
}

// Are so many rows that alternate in the result rather transposed, square by square, and their columns stored one after
// the other? The last square ends with the last row; the only one, of fewer rows, writes beyond a column what the next
// column overwrites. (11 results for each of 8 doubles, and 11 of these as floats: 3,000 instructions and 490 us for
// 51684 of them by vectors that are interleaved, 370 so.)
bool turns_squares(int64_t count, int64_t lanes) {
  const auto most = static_cast<uint64_t>(lanes);
  if (!std::has_single_bit(most) || lanes < 4 || std::bit_ceil(static_cast<uint64_t>(count)) < most) return false;
  const int64_t squares = ceil_div(count, lanes);
  return squares * lanes * static_cast<int64_t>(std::bit_width(most)) < count * (shuffles_in_turn(count) + 1);
}

// A lane of a vector that is shuffled from others: that of the vector it comes from. Null where nothing does.
LaneOf origin_of(llvm::Value* vector, int lane) {
  while (auto* moved = llvm::dyn_cast<llvm::ShuffleVectorInst>(vector)) {
    const int from = moved->getMaskValue(static_cast<unsigned>(lane));
    if (from < 0) return {nullptr, 0};
    auto* type = llvm::cast<llvm::FixedVectorType>(moved->getOperand(0)->getType());
    const int first = static_cast<int>(type->getNumElements());
    vector = moved->getOperand(from < first ? 0 : 1);
    lane = from < first ? from : from - first;
  }
  return {vector, lane};
}

// Vector number `part` of rows that alternate in the result, put together from the vectors that these were picked from,
// as the channels of pixels in another order are from memory. Null where some row was not, or from more than there are
// rows.
// (An image of bytes, three to a pixel, flipped: by way of the rows 12 shuffles for three vectors, else 4.)
llvm::Value* from_origins(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows, size_t part) {
  const size_t lanes = llvm::cast<llvm::FixedVectorType>(rows[0]->getType())->getNumElements();
  std::vector<LaneOf> wanted;
  std::vector<llvm::Value*> vectors;
  for (size_t at = part * lanes; at < (part + 1) * lanes; ++at) {
    llvm::Value* row = rows[at % rows.size()];
    wanted.push_back(origin_of(row, static_cast<int>(at / rows.size())));
    llvm::Value* from = wanted.back().vector;
    if (!from || from == row || from->getType() != row->getType()) return nullptr;
    if (std::ranges::find(vectors, from) == vectors.end()) vectors.push_back(from);
  }
  if (vectors.size() > rows.size()) return nullptr;
  return put_together(b, wanted);
}

// Lanes of the registers that a vector would be put together from to be stored: floats made narrower, and elements
// loaded one by one (registers of 32 bytes LLVM stores in halves by itself). Else those of a register; of integers made
// narrower, too: several are picked by one permutation. (Larger of two f16[171,203] on a Zen 4: 4.5 us, 3.9 so; 9001
// elements found by index 3.4, 2.9.)
int64_t lanes_made(const llvm::Value* vector, int64_t register_bytes) {
  constexpr int64_t kInserted = 16, kInHalves = 32;  // bytes
  auto bytes = [](const llvm::Value* x) { return static_cast<int64_t>(x->getType()->getScalarSizeInBits() / 8); };
  if (llvm::isa<llvm::InsertElementInst>(vector) && register_bytes > kInHalves) return kInserted / bytes(vector);
  auto* narrower = llvm::dyn_cast<llvm::FPTruncInst>(vector);
  return register_bytes / bytes(narrower ? narrower->getOperand(0) : vector);
}

/// Where vectors were loaded from: one after the other, so many bytes apart.
struct MemoryRows {
  llvm::Value* first;
  int64_t stride;
};

/// None if they are no loads of words, or not at one distance, or something may have been written since.
std::optional<MemoryRows> rows_of_memory(const llvm::BasicBlock& block, std::span<llvm::Value* const> rows) {
  constexpr unsigned kWordBits = 32;
  llvm::Value *first = nullptr, *base = nullptr;
  std::vector<int64_t> at;
  if (std::ranges::any_of(block, [](const llvm::Instruction& i) { return i.mayWriteToMemory(); })) return std::nullopt;
  for (llvm::Value* row : rows) {
    auto* load = llvm::dyn_cast<llvm::LoadInst>(row);
    if (!load || load->getParent() != &block || load->getType()->getScalarSizeInBits() != kWordBits)
      return std::nullopt;
    llvm::Value* pointer = load->getPointerOperand();
    llvm::APInt offset(64, 0);
    llvm::Value* from = pointer->stripAndAccumulateConstantOffsets(load->getModule()->getDataLayout(), offset, true);
    if (base && from != base) return std::nullopt;
    base = from;
    if (!first) first = pointer;
    at.push_back(offset.getSExtValue());
  }
  const int64_t stride = at[1] - at[0];
  for (size_t k = 1; k < at.size(); ++k) {
    if (at[k] - at[k - 1] != stride) return std::nullopt;
  }
  return MemoryRows{first, stride};
}

// The elements of rows in turn; of a number of them that is no power of two, out of the vectors they come from if that
// is less.
std::vector<llvm::Value*> in_turn(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows, bool permutes_two) {
  std::vector<llvm::Value*> vectors;
  if (std::has_single_bit(rows.size())) return interleaved(b, rows, permutes_two);
  for (size_t part = 0; part < rows.size(); ++part) {
    vectors.push_back(from_origins(b, rows, part));
    if (!vectors.back()) return interleaved(b, rows, permutes_two);
  }
  return vectors;
}

}  // namespace

// A contiguous store; past the cache where the buffer asks for it and the address is aligned by form. Wider vectors
// than the machine's are stored in their parts, from the first on: LLVM, which would split them, begins anywhere, and
// what is stored in another order than memory's, not aligned, is not put together. (A column broadcast into 171x203 on
// a Zen 4: 2.5 us, 2.0 in order.) Where line ends are dear, what may cross one is stored in halves, of which every
// second does not (cross products of 20001 vectors, their three results in rows: 13.4 us, 12.3). But for what is
// shuffled into its place: the shuffle would be split with it, and elements taken out of bytes one by one.
void ElementEmitter::store_vector(Scope& scope, const BufferRef& buffer, llvm::Type* element, llvm::Value* vector,
                                  const IndexExpr& in_block) {
  llvm::IRBuilder<>& b = scope.builder;
  const IndexExpr address = of_block_values(in_block);
  const auto bytes = static_cast<int64_t>(element->getScalarSizeInBits() / 8);
  const auto lanes = static_cast<int64_t>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  const int64_t native = std::min(lanes, std::max<int64_t>(1, options_.target->vector_bytes() / bytes));
  auto* moved = llvm::dyn_cast<llvm::ShuffleVectorInst>(vector);
  int64_t unit = std::gcd(kCacheLine, address.constant() * bytes);
  for (const IndexExpr::Term& t : address.terms()) unit = std::gcd(unit, t.coefficient * bytes);
  const bool past = buffer.streaming && unit >= native * bytes;
  const int64_t made = past ? native : std::min(native, lanes_made(vector, options_.target->vector_bytes()));
  const int64_t part = moved && !moved->isZeroEltSplat() ? lanes : made;
  const bool crosses = stores_in_halves_ && !in_lines_ && unit % kCacheLine != 0 && native * bytes == kCacheLine;
  const bool halved = crosses && buffer.elements * bytes > target_.l1_bytes;
  const int64_t stored = halved && part == native ? native / 2 : part;
  const llvm::Align align(static_cast<uint64_t>(past ? native * bytes : bytes));
  llvm::Value* pointer = address_of(scope, buffer, element, address);
  for (int64_t first = 0; first < lanes; first += stored) {
    const auto from = static_cast<unsigned>(first), count = static_cast<unsigned>(std::min(stored, lanes - first));
    llvm::Value* to = first == 0 ? pointer : b.CreateConstInBoundsGEP1_64(element, pointer, from);
    auto* s = b.CreateAlignedStore(count == lanes ? vector : lanes_from(b, vector, from, count), to, align);
    s->setVolatile(stored < native);  // else LLVM puts the parts together again
    annotate(s, buffer);
    if (!past) continue;
    s->setMetadata(llvm::LLVMContext::MD_nontemporal,
                   llvm::MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt32(1))));
  }
}

void ElementEmitter::store(Scope& scope, const BufferRef& buffer, const IndexExpr& address, Value value,
                           llvm::Value* mask) {
  llvm::IRBuilder<>& b = scope.builder;
  int lanes = lane_count(address);
  value = splat(b, value, lanes);
  if (mask && lanes > 1 && !mask->getType()->isVectorTy())
    mask = b.CreateVectorSplat(static_cast<unsigned>(lanes), mask);
  if (llvm::Value* own = lanes > 1 ? belonging(address) : nullptr) mask = mask ? b.CreateAnd(mask, own) : own;
  if (packs(buffer, value.type)) return store_packed(scope, buffer, address, value, mask);
  llvm::Type* element = storage_type(b, value.type, 1);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(value.type)));
  int lane = lane_var(address);
  auto stride = lane < 0 || vector_bound(address) ? std::nullopt : address.coefficient(lane);
  if (const int pairs = pairs_along(address); pairs > 0) {
    if (!mask && stride == 1)
      return store_vector(scope, buffer, element, to_storage(b, value, {.pairs = pairs}), address.substitute(lane, 0));
    stride = std::nullopt;
  }
  llvm::Value* raw = to_storage(b, value, {.permutes_words = options_.target->isa() == Isa::kAvx512});
  if (lanes == 1)
    return annotate(b.CreateAlignedStore(raw, address_of(scope, buffer, element, address), align), buffer);
  if (mask && stride == 1) {
    llvm::Value* pointer = address_of(scope, buffer, element, address.substitute(lane, 0));
    return annotate(b.CreateMaskedStore(raw, pointer, align, mask), buffer);
  }
  if (!mask && stride == 1) return store_vector(scope, buffer, element, raw, address.substitute(lane, 0));
  if (!mask && stride == -1) {
    return store_vector(scope, buffer, element, reversed(b, raw), address.substitute(lane, lanes - 1));
  }
  const bool scatters = options_.target->isa() == Isa::kAvx512;
  if (!mask && stride && !scatters && value.type != DType::kC128) return store_apart(scope, buffer, raw, address);
  if (!mask) mask = llvm::Constant::getAllOnesValue(vector_of(b.getInt1Ty(), lanes));
  scatter(b, value, buffer, pointers_at(b, buffer, element, index(address, scope)), mask);
}

// Elements at distances that are known, one by one from one pointer, where no instruction scatters: LLVM would take a
// vector of pointers apart. (Nine columns put together to 1000 rows, a Zen 3: 6.1 us, 3.7 so.)
void ElementEmitter::store_apart(Scope& scope, const BufferRef& buffer, llvm::Value* lanes, const IndexExpr& address) {
  llvm::IRBuilder<>& b = scope.builder;
  auto* type = llvm::cast<llvm::FixedVectorType>(lanes->getType());
  const llvm::Align align(type->getScalarSizeInBits() / 8);
  for (unsigned k = 0; k < type->getNumElements(); ++k) {
    llvm::Value* at = address_of(scope, buffer, type->getElementType(), address.substitute(lane_var(address), k));
    annotate(b.CreateAlignedStore(b.CreateExtractElement(lanes, k), at, align), buffer);
  }
}

// A block that was loaded and transposed, and goes to memory as it is. What was made for it in registers is not used.
bool ElementEmitter::copy_square(Scope& scope, const BufferRef& buffer, const std::vector<IndexExpr>& addresses,
                                 const std::vector<Value>& values) {
  const int lane = lane_var(addresses[0]);
  const Isa isa = options_.target->isa();
  const bool square = is_called_square(isa, std::ssize(values), lane_count(addresses[0]));
  if (!square || dtype_bytes(values[0].type) != 4) return false;
  if (buffer.streaming || stores_in_halves_ || line_lane_ >= 0 || packs(buffer, values[0].type)) return false;
  if (vector_bound(addresses[0]) || addresses[0].coefficient(lane) != 1) return false;
  const auto known = std::ranges::find_if(scope.blocks, [&](const BlockLoad& load) {
    return load.first_row && std::ranges::equal(load.values, values, {}, {}, &Value::v);
  });
  if (known == scope.blocks.end()) return false;
  auto apart = [&](size_t k) { return of_block_values(addresses[k]) - of_block_values(addresses[k - 1]); };
  const IndexExpr step = apart(1);
  for (size_t k = 1; k < addresses.size(); ++k) {
    if (!step.is_constant() || !(apart(k) == step)) return false;
  }
  llvm::Type* element = storage_type(scope.builder, values[0].type, 1);
  llvm::Value* to = address_of(scope, buffer, element, addresses[0].substitute(lane, 0));
  copy_squares_transposed(scope.builder, isa, 1, known->first_row, 4 * known->row_stride, to, 4 * step.constant());
  return true;
}

// Rows that alternate in the result, from `base` on, as turns_squares says.
void ElementEmitter::store_squares(Scope& scope, const BufferRef& buffer, std::span<llvm::Value* const> rows,
                                   const IndexExpr& base) {
  llvm::IRBuilder<>& b = scope.builder;
  auto* type = llvm::cast<llvm::FixedVectorType>(rows[0]->getType());
  llvm::Type* element = type->getElementType();
  const auto lanes = static_cast<int64_t>(type->getNumElements()), count = std::ssize(rows);
  for (int64_t first = 0;; first = std::min(first + lanes, count - lanes)) {
    std::vector<llvm::Value*> square(rows.begin() + first, rows.begin() + std::min(first + lanes, count));
    square.resize(static_cast<size_t>(lanes), llvm::PoisonValue::get(type));
    const std::vector<llvm::Value*> columns = transposed(b, square);
    for (int64_t l = 0; l < lanes; ++l) {
      llvm::Value* column = columns[static_cast<size_t>(l)];
      const IndexExpr at = base + IndexExpr(l * count + first);
      if (l + 1 < lanes || count >= lanes) {
        store_vector(scope, buffer, element, column, at);
        continue;
      }
      // Nothing follows the last column that would overwrite what is beyond it.
      const auto half = static_cast<unsigned>(lanes / 2), rest = static_cast<unsigned>(count) - half;
      store_vector(scope, buffer, element, lanes_from(b, column, 0, half), at);
      store_vector(scope, buffer, element, lanes_from(b, column, rest, half),
                   at + IndexExpr(static_cast<int64_t>(rest)));
    }
    if (first + lanes >= count) return;
  }
}

// Neighbours in memory are one lane's values, not one value's lanes.
bool ElementEmitter::stores_across(const BufferRef& buffer, const IndexExpr& address, DType type, int64_t count) const {
  const int lane = lane_var(address), lanes = lane_count(address);
  const auto stride = lane < 0 ? std::nullopt : address.coefficient(lane);
  return !packs(buffer, type) && stride && *stride > 1 && address.coefficient(block_ids_[0]) == 1 &&
         !vector_bound(address) && (fits_transposed(count, lanes, type) || *stride == count);
}

bool ElementEmitter::stores_each(const BufferRef& buffer, const IndexExpr& address, DType type, int64_t count) const {
  const int64_t lanes = lane_count(address), registers = count * ceil_div(lanes * dtype_bytes(type), vector_bytes());
  const bool square = is_called_square(options_.target->isa(), count, lanes);
  return registers > options_.target_info().vector_registers && !square && !stores_across(buffer, address, type, count);
}

void ElementEmitter::store_block(Scope& scope, const BufferRef& buffer, const std::vector<IndexExpr>& addresses,
                                 const std::vector<Value>& values) {
  const IndexExpr& address = addresses[0];
  int lane = lane_var(address);
  int lanes = lane_count(address);
  const int64_t count = std::ssize(values);
  auto stride = lane < 0 ? std::nullopt : address.coefficient(lane);
  if (!stores_across(buffer, address, values[0].type, count)) {
    if (copy_square(scope, buffer, addresses, values)) return;
    for (size_t k = 0; k < values.size(); ++k) store(scope, buffer, addresses[k], values[k]);
    return;
  }
  llvm::IRBuilder<>& b = scope.builder;
  IndexExpr base = address.substitute(lane, 0).substitute(block_ids_[0], 0);
  DType type = values[0].type;
  llvm::Type* element = storage_type(b, type, 1);
  const Isa isa = options_.target->isa();
  std::vector<llvm::Value*> rows;
  for (const Value& v : values)
    rows.push_back(to_storage(b, splat(b, v, lanes), {.permutes_words = isa == Isa::kAvx512}));
  const int64_t side = square_side(isa);
  const bool squares_in_turn = count == side || (*stride == count && count % side == 0);
  if (squares_in_turn && count / side >= fewest_squares(isa) && lanes == side && !buffer.streaming) {
    if (const auto from = rows_of_memory(*b.GetInsertBlock(), rows)) {
      llvm::Value* to = address_of(scope, buffer, element, base);
      return copy_squares_transposed(b, isa, count / side, from->first, from->stride, to, *stride * dtype_bytes(type));
    }
  }
  if (*stride == count && count != lanes) {
    const bool squares = !std::has_single_bit(static_cast<uint64_t>(count)) && turns_squares(count, lanes);
    if (!buffer.streaming && squares) return store_squares(scope, buffer, rows, base);
    int64_t at = 0;
    for (llvm::Value* vector : in_turn(b, rows, isa == Isa::kAvx512)) {
      store_vector(scope, buffer, element, vector, base + IndexExpr(at));
      at += llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
    }
    return;
  }
  rows = transposed(b, rows);
  for (int l = 0; l < lanes; ++l) {
    store_vector(scope, buffer, element, rows[static_cast<size_t>(l)], base + IndexExpr(l * *stride));
  }
}

}  // namespace hlojit::codegen

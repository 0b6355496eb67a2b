// Loads of every few elements: whole vectors of which constant shuffles pick the lanes, or integers of which each lane
// shifts its element out.
#include <algorithm>
#include <bit>

#include "codegen/nest/element_emitter.h"
#include "codegen/number/interleave.h"
#include "codegen/number/parts.h"

namespace hlojit::codegen {

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

// How many elements apart whole vectors are loaded and lanes picked: each vector takes a permutation, or several.
// Bytes, which no machine gathers, also where each row of a vector of them is one in memory, if two of these are
// permuted at once. (Any of 12000 rows of five bytes, a Zen 4: 8.7 us by loads of each, 2.3 so.)
int64_t ElementEmitter::strides_picked(DType type) const {
  return dtype_bytes(type) == 1 && options_.target->has("avx512vbmi") ? kShortRow : kFewStrides;
}

// Every few elements, forwards or backwards: the vectors from the first of them to the last, the last vector
// moved back to end there, and each lane picked out of the one that has it. Nothing beyond is read. Eight
// lanes of stride 2 took 10 cycles as a gather, take 2 so.
std::optional<Value> ElementEmitter::load_strided(Scope& scope, const BufferRef& buffer, DType type,
                                                  const IndexExpr& address, int64_t stride) {
  const int64_t step = std::abs(stride), lanes = lane_count(address), native = vector_bytes() / dtype_bytes(type);
  const int64_t n = std::min(lanes, native);
  // Bytes, of which no machine has gathers, also in groups of eight. (Bits packed into 20,000 bytes: 9.2 us by groups.)
  const bool bytes = step == 8 && dtype_bytes(type) == 1 && n >= 32;
  if (step < 2 || (step > strides_picked(type) && !bytes) || n < 4) return std::nullopt;
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
  if (bytes && !whole && step > strides_picked(type)) return std::nullopt;
  const int64_t before = whole ? phase : 0, span = whole ? step * n : (n - 1) * step + 1;
  const int64_t width =
      step <= kFewStrides ? n : std::min(native, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(span))));
  const bool permutes_two = options_.target->isa() == Isa::kAvx512;
  std::vector<llvm::Value*> parts;
  for (int64_t part = 0; part < lanes; part += n) {
    IndexExpr base = address.substitute(lane, stride > 0 ? part : part + n - 1) - IndexExpr(before);  // the lowest
    MemoryVectors run{{}, {}, width};
    for (int64_t at = 0; at < span; at += width) {
      run.starts.push_back(std::min(at, span - width));
      run.vectors.push_back(vector_at(scope, buffer, element, width, base + IndexExpr(run.starts.back())));
    }
    std::vector<int64_t> wanted;
    for (int64_t k = 0; k < n; ++k) wanted.push_back((stride > 0 ? k : n - 1 - k) * step + before);
    parts.push_back(width == n ? every_few(b, run, wanted, step, permutes_two) : from_each(b, run, wanted));
  }
  return from_storage(b, type, joined(b, parts));
}

}  // namespace hlojit::codegen

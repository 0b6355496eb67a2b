// See codec.h.
#include "codegen/number/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include <llvm/IR/PatternMatch.h>

#include "codegen/number/ir_number.h"
#include "codegen/number/multiply_add.h"
#include "codegen/number/parts.h"
#include "compiler/math/convert.h"

namespace hlojit::codegen {
namespace {

using B = llvm::IRBuilderBase;
using Parts = std::vector<llvm::Value*>;

constexpr uint64_t kUpperHalf = 0xffff0000;

llvm::IRBuilder<>& recording_builder(B& b) { return static_cast<llvm::IRBuilder<>&>(b); }

llvm::Type* storage_scalar(B& b, DType type) {
  switch (type) {
    case DType::kF16: return b.getHalfTy();
    case DType::kF32: return b.getFloatTy();
    case DType::kF64: return b.getDoubleTy();
    default: return b.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(type)));
  }
}

llvm::Type* with_scalar(llvm::Value* like, llvm::Type* scalar) { return like->getType()->getWithNewType(scalar); }

// The fence keeps LLVM from moving the op behind it into halves, which it then takes apart: 218 us for the
// maximum of 64k halves instead of 3.
llvm::Value* half_to_float(B& b, llvm::Value* half) {
  llvm::Value* wide = b.CreateFPExt(half, with_scalar(half, b.getFloatTy()));
  return b.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {wide->getType()}, {wide});
}

// What has just been rounded, or loaded, is there as a half already, which LLVM does not see through the fence:
// f16[95,129] times 1.7 took 1.58 us, 0.91 so.
llvm::Value* float_to_half(B& b, llvm::Value* x) {
  using namespace llvm::PatternMatch;
  llvm::Type* type = with_scalar(x, b.getHalfTy());
  llvm::Value* half = nullptr;
  if (match(x, m_Intrinsic<llvm::Intrinsic::arithmetic_fence>(m_FPExt(m_Value(half)))) && half->getType() == type)
    return half;
  return b.CreateFPTrunc(x, type);
}

// Eight bits of which a half holds every value, if it is divided by 2^`power`: the exponents have as many bits or
// fewer, and the code is what it ends before. (20,011 of bf16 to f8e5m2 5.7 us by f32's bits, 2.5 so; of f8e4m3fn to
// f32 2.2, 1.6.)
struct WithinHalf {
  unsigned after;  // bits of the half behind the code's
  int power;
  uint64_t nan;  // the greatest code
};
std::optional<WithinHalf> within_half(DType type) {
  if (type == DType::kF8E5M2) return WithinHalf{8, 0, 0x7e};
  if (type == DType::kF8E4M3FN) return WithinHalf{7, 8, 0x7f};
  return std::nullopt;
}

// The code's bits and NaN, which has but one code where exponents are shorter: all ones, a number to the half.
llvm::Value* float_of_code(B& b, llvm::Value* raw, const WithinHalf& w) {
  llvm::Type* words = with_scalar(raw, b.getInt16Ty());
  auto c = [&](uint64_t n) { return llvm::ConstantInt::get(words, n); };
  llvm::Value* bits = b.CreateShl(b.CreateSExt(raw, words), w.after);
  if (w.power > 0) {
    constexpr uint64_t kSignAndCode = 0xbf80, kCode = 0x3f80, kNan = 0x7e00;
    bits = b.CreateAnd(bits, c(kSignAndCode));
    llvm::Value* nan = b.CreateICmpEQ(b.CreateAnd(bits, c(kCode)), c(kCode));
    bits = b.CreateSelect(nan, b.CreateOr(bits, c(kNan)), bits);
  }
  llvm::Value* x = half_to_float(b, b.CreateBitCast(bits, with_scalar(raw, b.getHalfTy())));
  return w.power > 0 ? b.CreateFMul(x, llvm::ConstantFP::get(x->getType(), std::ldexp(1.0, w.power))) : x;
}

// Of what has been rounded.
llvm::Value* code_of_float(B& b, llvm::Value* x, const WithinHalf& w) {
  if (w.power > 0) x = b.CreateFMul(x, llvm::ConstantFP::get(x->getType(), std::ldexp(1.0, -w.power)));
  llvm::Value* bits = b.CreateBitCast(float_to_half(b, x), with_scalar(x, b.getInt16Ty()));
  auto c = [&](uint64_t n) { return llvm::ConstantInt::get(bits->getType(), n); };
  llvm::Value* size = b.CreateLShr(b.CreateAnd(bits, c(0x7fff)), w.after);
  size = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size, c(w.nan));
  llvm::Value* sign = b.CreateAnd(b.CreateLShr(bits, 8), c(0x80));
  return b.CreateTrunc(b.CreateOr(size, sign), with_scalar(x, b.getInt8Ty()));
}

// Twice the lanes of the parts, re im re im ...
llvm::Value* interleaved(B& b, const Value& x) {
  int lanes = lanes_of(x);
  if (lanes == 1) {
    llvm::Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(x.v->getType(), 2));
    return b.CreateInsertElement(b.CreateInsertElement(pair, x.v, uint64_t{0}), x.imag, uint64_t{1});
  }
  std::vector<int> mask;
  for (int l = 0; l < lanes; ++l) mask.push_back(l), mask.push_back(lanes + l);
  return b.CreateShuffleVector(x.v, x.imag, mask);
}

Value deinterleaved(B& b, DType type, llvm::Value* pairs, int lanes) {
  if (lanes == 1) {
    return {type, b.CreateExtractElement(pairs, uint64_t{0}), b.CreateExtractElement(pairs, uint64_t{1})};
  }
  std::vector<int> even, odd;
  for (int l = 0; l < lanes; ++l) even.push_back(2 * l), odd.push_back(2 * l + 1);
  return {type, b.CreateShuffleVector(pairs, even), b.CreateShuffleVector(pairs, odd)};
}

// Sign- or zero-extends the low bits of an integer narrower than its byte.
Value of_width(B& b, const Value& x) {
  const auto bits = static_cast<uint64_t>(dtype_bits(x.type));
  if (bits >= 8) return x;
  if (is_signed(x.type)) return {x.type, b.CreateAShr(b.CreateShl(x.v, 8 - bits), 8 - bits)};
  return {x.type, b.CreateAnd(x.v, (uint64_t{1} << bits) - 1)};
}

// bits + 0x7fff, + 1 where the upper half is odd: carried into the upper half, the nearest of these. Both terms are
// words that one instruction adds up where there is one (two of a vector instead of four; three roundings in a row on a
// Zen 4: 5.6 ns, 4.0).
llvm::Value* carried(B& b, const NumberOptions& o, llvm::Value* bits) {
  auto c = [&](uint64_t n) { return llvm::ConstantInt::get(bits->getType(), n); };
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(bits->getType());
  const unsigned lanes = std::min(vector ? vector->getNumElements() : 1, o.avx512 ? 16U : 8U);
  if (o.target && lanes >= 4 && std::has_single_bit(lanes) && adds_words_at_once(*o.target, lanes)) {
    llvm::Value* terms = b.CreateOr(b.CreateAnd(bits, c(0x10000)), c(0x7fff));
    return multiply_add(b, MultiplyAdd::kWords, terms, c(0x00010001), bits, *o.target);
  }
  return b.CreateAdd(bits, b.CreateAdd(b.CreateAnd(b.CreateLShr(bits, 16), c(1)), c(0x7fff)));
}

// Nearest even on the bits. The add carries only out of a NaN whose low half is set: then it is quieted and
// kept instead.
llvm::Value* round_bf16(B& b, const NumberOptions& o, llvm::Value* x, bool any_nan) {
  llvm::Type* type = with_scalar(x, b.getInt32Ty());
  auto c = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
  llvm::Value* bits = b.CreateBitCast(x, type);
  llvm::Value* r = carried(b, o, bits);
  if (any_nan) r = b.CreateSelect(b.CreateFCmpUNO(x, x), b.CreateOr(bits, c(0x00400000)), r);
  return b.CreateBitCast(b.CreateAnd(r, c(kUpperHalf)), x->getType());
}

llvm::Value* in_pairs(B& b, llvm::Value* memory, int pairs) {
  std::vector<int> order;
  for (int l = 0; l < lanes_of({DType::kInvalid, memory}); ++l) order.push_back(element_of_lane(l, pairs));
  return b.CreateShuffleVector(memory, order);
}

llvm::Value* out_of_pairs(B& b, llvm::Value* lanes, int pairs) {
  std::vector<int> order(static_cast<size_t>(lanes_of({DType::kInvalid, lanes})));
  for (size_t l = 0; l < order.size(); ++l)
    order[static_cast<size_t>(element_of_lane(static_cast<int>(l), pairs))] = static_cast<int>(l);
  return b.CreateShuffleVector(lanes, order);
}

// What `f` makes of a group's halves at a time.
llvm::Value* by_halves(B& b, llvm::Value* x, int pairs, const std::function<void(llvm::Value*, Parts&)>& f) {
  Parts parts;
  const int lanes = lanes_of({DType::kInvalid, x});
  for (int first = 0; first < lanes; first += pairs)
    f(lanes_from(b, x, static_cast<unsigned>(first), static_cast<unsigned>(pairs)), parts);
  return joined(b, parts);
}

llvm::Value* floats_of_words(B& b, llvm::Value* raw, int pairs) {
  llvm::Type* words = vector_of(b.getInt32Ty(), pairs / 2);
  llvm::Type* floats = vector_of(b.getFloatTy(), pairs / 2);
  return by_halves(b, raw, pairs, [&](llvm::Value* group, Parts& parts) {
    llvm::Value* both = b.CreateBitCast(group, words);
    parts.push_back(b.CreateBitCast(b.CreateShl(both, 16), floats));
    parts.push_back(b.CreateBitCast(b.CreateAnd(both, kUpperHalf), floats));
  });
}

llvm::Value* words_of_floats(B& b, llvm::Value* x, int pairs) {
  const auto half = static_cast<unsigned>(pairs / 2);
  llvm::Type* words = vector_of(b.getInt32Ty(), pairs / 2);
  llvm::Value* all = by_halves(b, x, pairs, [&](llvm::Value* group, Parts& parts) {
    llvm::Value* even = b.CreateBitCast(lanes_from(b, group, 0, half), words);
    llvm::Value* odd = b.CreateBitCast(lanes_from(b, group, half, half), words);
    parts.push_back(b.CreateOr(b.CreateLShr(even, 16), b.CreateAnd(odd, kUpperHalf)));
  });
  return b.CreateBitCast(all, vector_of(b.getInt16Ty(), lanes_of({DType::kInvalid, x})));
}

// What has just been rounded ends in zeros: the upper halves of its words are picked, of two vectors by one
// permutation, where LLVM would shift each vector, truncate it and put two side by side.
llvm::Value* upper_halves(B& b, llvm::Value* x) {
  using namespace llvm::PatternMatch;
  llvm::Value* words = nullptr;
  if (!x->getType()->isVectorTy() || !match(x, m_BitCast(m_And(m_Value(words), m_SpecificInt(kUpperHalf)))))
    return nullptr;
  const auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(words->getType())->getNumElements());
  std::vector<int> upper;
  for (int l = 0; l < lanes; ++l) upper.push_back(2 * l + 1);
  return b.CreateShuffleVector(b.CreateBitCast(words, vector_of(b.getInt16Ty(), 2 * lanes)), upper);
}

}  // namespace

int element_of_lane(int lane, int pairs) {
  if (pairs == 0) return lane;
  const int at = lane % pairs, half = pairs / 2;
  return lane - at + 2 * (at % half) + at / half;
}

llvm::Type* storage_type(B& b, DType type, int lanes) { return vector_of(storage_scalar(b, type), lanes); }

Value from_storage(B& b, DType type, llvm::Value* raw, int pairs) {
  if (pairs > 0 && type == DType::kBF16) return {type, floats_of_words(b, raw, pairs)};
  if (pairs > 0) raw = in_pairs(b, raw, pairs);
  switch (type) {
    case DType::kPred: return {type, b.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()))};
    case DType::kF16: return {type, half_to_float(b, raw)};
    case DType::kBF16: {
      llvm::Value* wide = b.CreateShl(b.CreateZExt(raw, with_scalar(raw, b.getInt32Ty())), 16);
      return {type, b.CreateBitCast(wide, with_scalar(raw, b.getFloatTy()))};
    }
    case DType::kC64:
    case DType::kC128: {
      int lanes = lanes_of({type, raw});
      return deinterleaved(b, type, b.CreateBitCast(raw, register_type(b, type, 2 * lanes)), lanes);
    }
    default: break;
  }
  if (const auto w = within_half(type)) return {type, float_of_code(b, raw, *w)};
  if (is_narrow_float(type)) {
    ir::Recording recording(recording_builder(b), false);
    ir::F32 like = {llvm::Constant::getNullValue(with_scalar(raw, b.getFloatTy()))};
    ir::Int<32> code = {b.CreateZExt(raw, with_scalar(raw, b.getInt32Ty()))};
    return {type, math::decode_narrow(like, code, math::narrow_format(type)).v};
  }
  return is_integral(type) ? of_width(b, {type, raw}) : Value{type, raw};
}

llvm::Value* to_storage(B& b, const Value& x, const StorageWay& way) {
  if (way.pairs > 0 && x.type == DType::kBF16) return words_of_floats(b, x.v, way.pairs);
  if (way.pairs > 0) return out_of_pairs(b, to_storage(b, x), way.pairs);
  switch (x.type) {
    case DType::kPred: return b.CreateZExt(x.v, with_scalar(x.v, b.getInt8Ty()));
    case DType::kF16: return float_to_half(b, x.v);
    case DType::kBF16: {
      if (llvm::Value* upper = way.permutes_words ? upper_halves(b, x.v) : nullptr) return upper;
      llvm::Value* bits = b.CreateBitCast(x.v, with_scalar(x.v, b.getInt32Ty()));
      return b.CreateTrunc(b.CreateLShr(bits, 16), with_scalar(x.v, b.getInt16Ty()));
    }
    case DType::kC64:
    case DType::kC128: return b.CreateBitCast(interleaved(b, x), storage_type(b, x.type, lanes_of(x)));
    default: break;
  }
  if (!is_narrow_float(x.type)) return x.v;
  if (const auto w = within_half(x.type)) return code_of_float(b, x.v, *w);
  ir::Recording recording(recording_builder(b), false);
  llvm::Value* code = math::code_of(ir::F32{x.v}, math::narrow_format(x.type)).v;
  return b.CreateTrunc(code, with_scalar(x.v, b.getInt8Ty()));
}

Value half_to_f8e5m2(B& b, const Value& x) {
  llvm::Value* half = b.CreateBitCast(float_to_half(b, x.v), with_scalar(x.v, b.getInt16Ty()));
  auto c = [&](uint64_t n) { return llvm::ConstantInt::get(half->getType(), n); };
  constexpr uint64_t kSign = 0x8000, kUpper = 0x7f00, kInfinity = 0x7c00, kNan = 0x7e00;
  llvm::Value* size = b.CreateAnd(half, c(~kSign & 0xffff));
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(size, 8), c(1));
  llvm::Value* rounded = b.CreateAnd(b.CreateAdd(size, b.CreateAdd(odd, c(0x7f))), c(kUpper));
  // (Of a NaN the upper half alone may be infinity, and a carry leave no exponent.)
  rounded = b.CreateSelect(b.CreateICmpSGT(size, c(kInfinity)), c(kNan), rounded);
  llvm::Value* bits = b.CreateOr(rounded, b.CreateAnd(half, c(kSign)));
  return {DType::kF8E5M2, half_to_float(b, b.CreateBitCast(bits, with_scalar(x.v, b.getHalfTy())))};
}

Value round_to_type(B& b, const NumberOptions& o, const Value& x, bool any_nan) {
  if (is_integral(x.type)) return of_width(b, x);
  if (!is_narrow_float(x.type)) return x;
  if (x.type == DType::kF16) return {x.type, half_to_float(b, float_to_half(b, x.v))};
  if (x.type == DType::kBF16) return {x.type, round_bf16(b, o, x.v, any_nan)};
  ir::Recording recording(recording_builder(b), false);
  return {x.type, math::round_narrow(ir::F32{x.v}, math::narrow_format(x.type)).v};
}

}  // namespace hlojit::codegen

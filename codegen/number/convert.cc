// Conversions between any two types, by the templates of compiler/math/convert.h: one rounding each.
#include <cmath>

#include <llvm/IR/IRBuilder.h>

#include "codegen/number/families.h"
#include "codegen/number/ir_number.h"
#include "codegen/number/parts.h"
#include "compiler/math/convert.h"

namespace hlojit::codegen {
namespace {

using B = llvm::IRBuilderBase;

llvm::IRBuilder<>& recording_builder(B& b) { return static_cast<llvm::IRBuilder<>&>(b); }
llvm::Type* with_scalar(const Value& like, llvm::Type* scalar) { return like.v->getType()->getWithNewType(scalar); }

// Words to their lower halves or bytes. Of two vectors each permutation makes one, where LLVM would truncate each in
// two steps and put them side by side. (As shuffles of one vector LLVM knows the truncation again.)
llvm::Value* truncated(B& b, const NumberOptions& o, llvm::Value* words, llvm::Type* type) {
  constexpr unsigned kVectorBits = 512;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(words->getType());
  const unsigned to = type->getScalarSizeInBits(), lanes = vector ? vector->getNumElements() : 1;
  for (unsigned bits = words->getType()->getScalarSizeInBits(); o.avx512 && bits > to && bits <= 32; bits /= 2) {
    const unsigned count = kVectorBits / bits;
    if (lanes % (2 * count) != 0) break;
    llvm::Type* halves = vector_of(b.getIntNTy(bits / 2), static_cast<int>(2 * count));
    std::vector<int> lower;
    for (unsigned k = 0; k < 2 * count; ++k) lower.push_back(static_cast<int>(2 * k));
    std::vector<llvm::Value*> parts;
    for (unsigned first = 0; first < lanes; first += 2 * count) {
      llvm::Value* pair[] = {lanes_from(b, words, first, count), lanes_from(b, words, first + count, count)};
      parts.push_back(b.CreateShuffleVector(b.CreateBitCast(pair[0], halves), b.CreateBitCast(pair[1], halves), lower));
    }
    words = joined(b, parts);
  }
  return b.CreateTrunc(words, type);
}

// LLVM computes such a value as narrow as it is wanted: lower bits depend on no others. (Bytes chosen by a comparison
// from two words, permuted, take 1.5 times as long.)
bool made_of_lower_bits(const llvm::Value* x) {
  if (llvm::isa<llvm::SelectInst, llvm::CastInst, llvm::Constant, llvm::ShuffleVectorInst>(x)) return true;
  const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(x);
  return binary && !binary->isIntDivRem() && !binary->isArithmeticShift() && !binary->isLogicalShift();
}

Value float_to_float(B& b, const NumberOptions& o, const Value& x, DType to) {
  if (to == DType::kF64) return {to, b.CreateFPExt(x.v, with_scalar(x, b.getDoubleTy()))};
  if (is_half(x.type) && to == DType::kF8E5M2) return half_to_f8e5m2(b, x);
  if (x.type != DType::kF64) return round_to_type(b, o, {to, x.v}, true);
  llvm::Value* v = x.v;
  if (is_narrow_float(to)) {
    ir::Recording recording(recording_builder(b), o.avx512);
    v = math::round_narrow(ir::F64{v}, math::narrow_format(to)).v;
  }
  return {to, b.CreateFPTrunc(v, with_scalar(x, b.getFloatTy()))};
}

Value float_to_integer(B& b, const NumberOptions& o, const Value& x, DType to) {
  ir::Recording recording(recording_builder(b), o.avx512);
  int bits = dtype_bits(to);
  llvm::Value* n;
  if (x.type != DType::kF64 && bits <= 32) {
    n = math::to_int_saturating(ir::F32{x.v}, bits, is_signed(to)).v;
  } else {
    ir::F64 wide = x.type == DType::kF64 ? ir::F64{x.v} : ir::to_f64(ir::F32{x.v});
    n = math::to_int_saturating(wide, bits, is_signed(to)).v;
  }
  return {to, truncated(b, o, n, register_type(b, to, lanes_of(x)))};
}

// Integers as floats, rounded once. AVX2 has no such instruction for signed 64 bits, and LLVM takes lane by lane: as
// unsigned ones, their halves become mantissas of two powers of two, and one sum is left to be rounded.
// (65,536 of them to bf16 through f64, AVX2 on a Zen 4: 75 us lane by lane, 56.)
llvm::Value* rounded(B& b, const NumberOptions& o, const Value& x, DType to) {
  llvm::Type* real = register_type(b, to, lanes_of(x));
  if (!is_signed(x.type)) return b.CreateUIToFP(x.v, real);
  const bool direct = o.avx512 || to != DType::kF64 || dtype_bits(x.type) < 64 || lanes_of(x) == 1;
  if (direct) return b.CreateSIToFP(x.v, real);
  constexpr uint64_t kLow = 0x4330000000000000;   // 2^52
  constexpr uint64_t kHigh = 0x4530000080000000;  // 2^84 + 2^63, to which the upper half is added
  llvm::Type* type = x.v->getType();
  auto c = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
  llvm::Value* low = b.CreateOr(b.CreateAnd(x.v, c(UINT32_MAX)), c(kLow));
  llvm::Value* high = b.CreateXor(b.CreateLShr(x.v, c(32)), c(kHigh));
  llvm::Value* offset = b.CreateBitCast(c(kHigh | 1 << 20), real);  // 2^84 + 2^63 + 2^52
  return b.CreateFAdd(b.CreateFSub(b.CreateBitCast(high, real), offset), b.CreateBitCast(low, real));
}

// An integer of 32 bits as an f32 that a later rounding to at most 12 bits cannot tell from the integer itself, of 64
// bits as an f64 and to at most 24: where the float does not hold it, the bits that it has no place for are folded into
// one, which is set if any of them is. What is cut off a negative number lies on the same side of what is left as of
// any other number.
Value sticky_float(B& b, const NumberOptions& o, const Value& x) {
  const bool wide = dtype_bits(x.type) == 64;
  const DType type = wide ? DType::kF64 : DType::kF32;
  const int mantissa = wide ? 53 : 24;
  const uint64_t exact = uint64_t{1} << mantissa, low = (uint64_t{2} << (dtype_bits(x.type) - mantissa)) - 1;
  auto c = [&](uint64_t n) { return llvm::ConstantInt::get(x.v->getType(), n); };
  llvm::Value* large =
      is_signed(x.type) ? b.CreateICmpUGT(b.CreateAdd(x.v, c(exact)), c(2 * exact)) : b.CreateICmpUGT(x.v, c(exact));
  llvm::Value* rest = b.CreateICmpNE(b.CreateAnd(x.v, c(low)), c(0));
  llvm::Value* folded = b.CreateOr(b.CreateAnd(x.v, b.CreateNot(c(low))), b.CreateSelect(rest, c(low / 2 + 1), c(0)));
  return {type, rounded(b, o, {x.type, b.CreateSelect(large, folded, x.v)}, type)};
}

Value integer_to_float(B& b, const NumberOptions& o, const Value& x, DType to) {
  if (is_narrow_float(to) && dtype_bytes(x.type) >= 4) return float_to_float(b, o, sticky_float(b, o, x), to);
  const Value r = {to, rounded(b, o, x, to)};
  // Both halves hold every integer of a byte. (Weights of s8, 2048x2752, times a vector of bf16: 420 us rounded.)
  const bool exact = is_half(to) && dtype_bits(x.type) <= 8;
  return exact ? r : round_to_type(b, o, r);
}

Value complex_part(const Value& x, bool imaginary) { return {component_type(x.type), imaginary ? x.imag : x.v}; }

}  // namespace

Value convert(B& b, const NumberOptions& o, const Value& x, DType to) {
  if (x.type == to) return x;
  if (is_complex(to)) {
    DType part = component_type(to);
    if (!is_complex(x.type)) return {to, convert(b, o, x, part).v, constant(b, part, 0, lanes_of(x)).v};
    return {to, convert(b, o, complex_part(x, false), part).v, convert(b, o, complex_part(x, true), part).v};
  }
  if (is_complex(x.type)) {
    Value re = convert(b, o, complex_part(x, false), to);
    return is_pred(to) ? Value{to, b.CreateOr(re.v, convert(b, o, complex_part(x, true), to).v)} : re;
  }
  if (is_pred(to)) {
    if (is_float(x.type)) return {to, b.CreateFCmpUNE(x.v, llvm::ConstantFP::get(x.v->getType(), 0.0))};
    return {to, b.CreateICmpNE(x.v, llvm::Constant::getNullValue(x.v->getType()))};
  }
  if (is_float(x.type)) return is_float(to) ? float_to_float(b, o, x, to) : float_to_integer(b, o, x, to);
  // One of two constants: no integer is made of the condition, and nothing is rounded. (Rows of a one-hot matrix of
  // 129x1000 bf16 on a Zen 4: 17.6 us by way of an integer, 5.0 so.)
  if (is_pred(x.type) && is_float(to) && has_zero(to)) {
    const int lanes = lanes_of(x);
    return {to, b.CreateSelect(x.v, constant(b, to, 1, lanes).v, constant(b, to, 0, lanes).v)};
  }
  if (is_float(to)) return integer_to_float(b, o, x, to);
  llvm::Type* type = register_type(b, to, lanes_of(x));
  const bool permutes = type->getScalarSizeInBits() < x.v->getType()->getScalarSizeInBits() && !made_of_lower_bits(x.v);
  return round_to_type(b, o,
                       {to, permutes ? truncated(b, o, x.v, type) : b.CreateIntCast(x.v, type, is_signed(x.type))});
}

Value from_index(B& b, llvm::Value* index, DType type) {
  llvm::Type* t = index->getType();
  if (is_complex(type)) {
    DType part = component_type(type);
    Value re = from_index(b, index, part);
    return {type, re.v, constant(b, part, 0, lanes_of(re)).v};
  }
  if (type == DType::kF64) return {type, b.CreateSIToFP(index, t->getWithNewType(b.getDoubleTy()))};
  if (is_float(type)) return round_to_type(b, {}, {type, b.CreateSIToFP(index, t->getWithNewType(b.getFloatTy()))});
  return round_to_type(b, {}, {type, b.CreateIntCast(index, t->getWithNewType(register_type(b, type, 1)), true)});
}

unsigned bitcast_bits(DType type) { return static_cast<unsigned>(is_pred(type) ? 8 : dtype_bits(type)); }

// Elements narrower than their byte have zeros or their sign above: the code read back ignores them.
Value bitcast_convert(B& b, DType to, const Value& x) {
  if (is_complex(to)) return {to, x.v, x.imag};
  if (bitcast_bits(to) != bitcast_bits(x.type)) return {};
  return from_storage(b, to, b.CreateBitCast(to_storage(b, x), storage_type(b, to, lanes_of(x))));
}

Value reduce_precision(B& b, const NumberOptions& o, const Instruction& i, const Value& x) {
  ir::Recording recording(recording_builder(b), o.avx512);
  const math::Precision to = math::reduced_precision(x.type, i.attrs.exponent_bits, i.attrs.mantissa_bits);
  llvm::Value* r =
      x.type == DType::kF64 ? math::reduce_precision(ir::F64{x.v}, to).v : math::reduce_precision(ir::F32{x.v}, to).v;
  return round_to_type(b, o, {x.type, r}, true);
}

// |x| rounded up where the random bits, unsigned and as wide as x, lie below its fraction.
Value stochastic_convert(B& b, const NumberOptions& o, const Value& x, const Value& random, DType to) {
  if (!is_signed(to)) return {};
  llvm::Type* type = x.v->getType();
  auto real = [&](double c) { return llvm::ConstantFP::get(type, c); };
  llvm::Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.v);
  llvm::Value* whole = b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, magnitude);
  llvm::Value* fraction = b.CreateFSub(magnitude, whole);
  // fraction * 2^N as an integer: both exact, and below 2^N.
  llvm::Value* scaled = b.CreateFMul(fraction, real(std::ldexp(1.0, dtype_bits(x.type))));
  llvm::Value* finite = b.CreateFCmpOLT(magnitude, llvm::ConstantFP::getInfinity(type));
  DType bits = dtype_bits(x.type) == 64 ? DType::kU64 : dtype_bits(x.type) == 32 ? DType::kU32 : random.type;
  llvm::Value* limit = convert(b, o, {x.type, b.CreateSelect(finite, scaled, real(0))}, bits).v;
  llvm::Value* up = b.CreateAnd(finite, b.CreateICmpULT(random.v, limit));
  llvm::Value* rounded = b.CreateFAdd(whole, b.CreateSelect(up, real(1), real(0)));
  rounded = b.CreateSelect(finite, rounded, magnitude);
  return convert(b, o, {x.type, b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rounded, x.v)}, to);
}

}  // namespace hlojit::codegen

// See extrema.h.
#include "codegen/number/extrema.h"

#include <llvm/IR/IRBuilder.h>

#include "codegen/number/codec.h"
#include "codegen/number/elementwise.h"
#include "compiler/ir/narrow.h"

namespace hlojit::codegen {
namespace {

// The bits below the sign turned round where it is set: in the order of floats.
llvm::Value* with_magnitude_turned(llvm::IRBuilderBase& b, llvm::Value* x) {
  const unsigned bits = x->getType()->getScalarSizeInBits();
  auto* rest = llvm::ConstantInt::get(x->getType(), llvm::APInt::getSignedMaxValue(bits));
  return b.CreateXor(x, b.CreateAnd(b.CreateAShr(x, bits - 1), rest));
}

llvm::Constant* nans_of_a_sign(DType type, llvm::Type* integers) {
  const int mantissa = type == DType::kF64 ? 52 : type == DType::kF16 ? 10 : type == DType::kBF16 ? 7 : 23;
  return llvm::ConstantInt::get(integers, (uint64_t{1} << mantissa) - 1);
}

DType integers_of(DType type, bool with_sign) {
  if (type == DType::kF64) return with_sign ? DType::kS64 : DType::kU64;
  if (is_half(type)) return with_sign ? DType::kS16 : DType::kU16;
  return with_sign ? DType::kS32 : DType::kU32;
}

llvm::Value* bits_of(llvm::IRBuilderBase& b, const Value& x) {
  llvm::Value* stored = is_half(x.type) ? to_storage(b, x) : x.v;
  return b.CreateBitCast(stored, stored->getType()->getWithNewBitWidth(stored->getType()->getScalarSizeInBits()));
}

Value float_of(llvm::IRBuilderBase& b, DType type, llvm::Value* bits) {
  if (is_half(type))
    return from_storage(b, type, b.CreateBitCast(bits, bits->getType()->getWithNewType(storage_type(b, type, 1))));
  const bool wide = bits->getType()->getScalarSizeInBits() == 64;
  return {type, b.CreateBitCast(bits, bits->getType()->getWithNewType(wide ? b.getDoubleTy() : b.getFloatTy()))};
}

}  // namespace

DType key_type(DType type) { return integers_of(type, true); }

Value key_of_float(llvm::IRBuilderBase& b, const Value& x, bool largest) {
  llvm::Value* turned = with_magnitude_turned(b, bits_of(b, x));
  llvm::Constant* nans = nans_of_a_sign(x.type, turned->getType());
  return {key_type(x.type), largest ? b.CreateSub(turned, nans) : b.CreateAdd(turned, nans)};
}

Value float_of_key(llvm::IRBuilderBase& b, DType type, const Value& key, bool largest) {
  llvm::Constant* nans = nans_of_a_sign(type, key.v->getType());
  return float_of(b, type, with_magnitude_turned(b, largest ? b.CreateAdd(key.v, nans) : b.CreateSub(key.v, nans)));
}

std::vector<Value> extrema_of_none(llvm::IRBuilderBase& b, DType type) {
  const DType with_sign = integers_of(type, true), without = integers_of(type, false);
  return {extreme(b, with_sign, false), extreme(b, without, false), extreme(b, without, true)};
}

// The infinity that extrema run to, where it is known, is the least of the unsigned ones alone: the others are looked
// at for what is beyond it.
std::vector<Value> bits_of_float(llvm::IRBuilderBase& b, const Value& x, bool largest) {
  llvm::Value* bits = bits_of(b, x);
  const DType with_sign = integers_of(x.type, true), without = integers_of(x.type, false);
  if (x.v != extreme(b, x.type, !largest).v) return {{with_sign, bits}, {without, bits}, {without, bits}};
  std::vector<Value> extrema = extrema_of_none(b, x.type);
  extrema[2].v = bits;
  return extrema;
}

std::vector<Value> extrema_of_bits(llvm::IRBuilderBase& b, const NumberOptions& options, std::span<const Value> left,
                                   std::span<const Value> right) {
  return {binary(b, options, Opcode::kMaximum, left[0], right[0]),
          binary(b, options, Opcode::kMaximum, left[1], right[1]),
          binary(b, options, Opcode::kMinimum, left[2], right[2])};
}

// Without a sign the greater are greater, and the greatest of all as signed numbers; with one the less are greater, all
// of them greater as unsigned numbers.
Value float_of_extrema(llvm::IRBuilderBase& b, DType type, std::span<const Value> extrema, bool largest) {
  llvm::Value *as_signed = extrema[0].v, *as_unsigned = extrema[1].v, *least = extrema[2].v;
  llvm::Type* integers = least->getType();
  llvm::Constant* zero = llvm::Constant::getNullValue(integers);
  llvm::Value* sign = b.CreateXor(nans_of_a_sign(type, integers), llvm::Constant::getAllOnesValue(integers));
  llvm::Value* infinity =
      b.CreateXor(sign, llvm::ConstantInt::get(integers, llvm::APInt::getSignMask(integers->getScalarSizeInBits())));
  llvm::Value* found = nullptr;
  if (largest) {
    found = b.CreateSelect(b.CreateICmpSLT(as_signed, zero), least, as_signed);
    found = b.CreateSelect(b.CreateICmpUGT(as_unsigned, sign), as_unsigned, found);
  } else {
    found = b.CreateSelect(b.CreateICmpSLT(as_unsigned, zero), as_unsigned, least);
    found = b.CreateSelect(b.CreateICmpSGT(as_signed, infinity), as_signed, found);
  }
  return float_of(b, type, found);
}

}  // namespace hlojit::codegen

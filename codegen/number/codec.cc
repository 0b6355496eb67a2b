// See codec.h.
#include "codegen/number/codec.h"

#include <llvm/IR/PatternMatch.h>

#include "codegen/number/ir_number.h"
#include "codegen/number/parts.h"
#include "compiler/math/convert.h"

namespace hlojit::codegen {
namespace {

using B = llvm::IRBuilderBase;

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
llvm::Value* extended(B& b, DType type, llvm::Value* v) {
  uint64_t bits = static_cast<uint64_t>(dtype_bits(type));
  if (is_signed(type)) return b.CreateAShr(b.CreateShl(v, 8 - bits), 8 - bits);
  return b.CreateAnd(v, (uint64_t{1} << bits) - 1);
}

// Nearest even on the bits. The add carries only out of a NaN whose low half is set: then it is quieted and
// kept instead.
llvm::Value* round_bf16(B& b, llvm::Value* x, bool any_nan) {
  llvm::Type* type = with_scalar(x, b.getInt32Ty());
  auto c = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
  llvm::Value* bits = b.CreateBitCast(x, type);
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), c(1));
  llvm::Value* r = b.CreateAdd(bits, b.CreateAdd(odd, c(0x7fff)));
  if (any_nan) r = b.CreateSelect(b.CreateFCmpUNO(x, x), b.CreateOr(bits, c(0x00400000)), r);
  return b.CreateBitCast(b.CreateAnd(r, c(0xffff0000)), x->getType());
}

}  // namespace

llvm::Type* storage_type(B& b, DType type, int lanes) { return vector_of(storage_scalar(b, type), lanes); }

Value from_storage(B& b, DType type, llvm::Value* raw) {
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
  if (is_narrow_float(type)) {
    ir::Recording recording(recording_builder(b), false);
    ir::F32 like = {llvm::Constant::getNullValue(with_scalar(raw, b.getFloatTy()))};
    ir::Int<32> code = {b.CreateZExt(raw, with_scalar(raw, b.getInt32Ty()))};
    return {type, math::decode_narrow(like, code, math::narrow_format(type)).v};
  }
  return round_to_type(b, {type, raw});
}

llvm::Value* to_storage(B& b, const Value& x) {
  switch (x.type) {
    case DType::kPred: return b.CreateZExt(x.v, with_scalar(x.v, b.getInt8Ty()));
    case DType::kF16: return float_to_half(b, x.v);
    case DType::kBF16: {
      llvm::Value* bits = b.CreateBitCast(x.v, with_scalar(x.v, b.getInt32Ty()));
      return b.CreateTrunc(b.CreateLShr(bits, 16), with_scalar(x.v, b.getInt16Ty()));
    }
    case DType::kC64:
    case DType::kC128: return b.CreateBitCast(interleaved(b, x), storage_type(b, x.type, lanes_of(x)));
    default: break;
  }
  if (!is_narrow_float(x.type)) return x.v;
  ir::Recording recording(recording_builder(b), false);
  llvm::Value* code = math::code_of(ir::F32{x.v}, math::narrow_format(x.type)).v;
  return b.CreateTrunc(code, with_scalar(x.v, b.getInt8Ty()));
}

Value round_to_type(B& b, const Value& x, bool any_nan) {
  if (is_integral(x.type)) return dtype_bits(x.type) < 8 ? Value{x.type, extended(b, x.type, x.v)} : x;
  if (!is_narrow_float(x.type)) return x;
  if (x.type == DType::kF16) return {x.type, half_to_float(b, float_to_half(b, x.v))};
  if (x.type == DType::kBF16) return {x.type, round_bf16(b, x.v, any_nan)};
  ir::Recording recording(recording_builder(b), false);
  return {x.type, math::round_narrow(ir::F32{x.v}, math::narrow_format(x.type)).v};
}

}  // namespace hlojit::codegen

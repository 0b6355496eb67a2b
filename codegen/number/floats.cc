// Floats: one instruction, or a template of compiler/math. Narrow ones arrive and leave as f32.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>

#include "codegen/number/families.h"
#include "codegen/number/ir_number.h"
#include "compiler/math/functions.h"

namespace hlojit::codegen {
namespace {

using B = llvm::IRBuilderBase;

// Runs a template of compiler/math on values of one float type.
template <class F, class... X>
Value real(B& b, const NumberOptions& o, F f, const Value& x, const X&... more) {
  ir::Recording recording(static_cast<llvm::IRBuilder<>&>(b), o.avx512);
  if (x.type == DType::kF64) return {x.type, f(ir::F64{x.v}, ir::F64{more.v}...).v};
  return {x.type, f(ir::F32{x.v}, ir::F32{more.v}...).v};
}

// Of scalars LLVM asks for a sign and jumps, which no processor foresees. Of two numbers each way round the instruction
// gives the greater or less, but of two zeros the latter: what these differ in is their sign. (29,280 doubles scattered
// to where they are a maximum, AVX2: 212 us, 64 so.)
llvm::Value* extreme_scalar(B& b, llvm::Value* x, llvm::Value* y, bool greatest) {
  llvm::Type* bits = b.getIntNTy(x->getType()->getPrimitiveSizeInBits());
  auto chosen = [&](llvm::Value* l, llvm::Value* r) {
    llvm::Value* first = greatest ? b.CreateFCmpOGT(l, r) : b.CreateFCmpOLT(l, r);
    return b.CreateBitCast(b.CreateSelect(first, l, r), bits);
  };
  llvm::Value *one = chosen(x, y), *other = chosen(y, x);
  llvm::Value* number = b.CreateBitCast(greatest ? b.CreateAnd(one, other) : b.CreateOr(one, other), x->getType());
  return b.CreateSelect(b.CreateFCmpUNO(x, y), b.CreateFAdd(x, y), number);
}

// Beside other constants LLVM knows what cannot be.
llvm::Value* extreme(B& b, const NumberOptions& o, llvm::Value* x, llvm::Value* y, bool greatest) {
  if (llvm::isa<llvm::Constant>(x)) std::swap(x, y);
  if (greatest && llvm::PatternMatch::match(y, llvm::PatternMatch::m_PosZeroFP()))
    return b.CreateSelect(b.CreateFCmpUGT(x, y), x, y);
  if (o.avx512 && !llvm::isa<llvm::Constant>(y)) return ir::extreme_avx512(b, x, y, greatest);
  if (!x->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(y)) return extreme_scalar(b, x, y, greatest);
  return b.CreateBinaryIntrinsic(greatest ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, x, y);
}

}  // namespace

Value float_binary(B& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y) {
  auto made = [&](llvm::Value* v) { return Value{x.type, v}; };
  using enum Opcode;
  switch (op) {
    case kAdd: return made(b.CreateFAdd(x.v, y.v));
    case kSubtract: return made(b.CreateFSub(x.v, y.v));
    case kMultiply: return made(b.CreateFMul(x.v, y.v));
    case kDivide: return made(b.CreateFDiv(x.v, y.v));
    case kMaximum:
    case kMinimum: return made(extreme(b, o, x.v, y.v, op == kMaximum));
    case kRemainder: return real(b, o, [](auto p, auto q) { return math::remainder(p, q); }, x, y);
    case kPower: return real(b, o, [](auto p, auto q) { return math::pow(p, q); }, x, y);
    case kAtan2: return real(b, o, [](auto p, auto q) { return math::atan2(p, q); }, x, y);
    default: return {};
  }
}

Value exp_of_nonpositive(B& b, const NumberOptions& o, const Value& x) {
  return real(b, o, [](auto t) { return math::exp_of_nonpositive(t); }, x);
}

Value float_unary(B& b, const NumberOptions& o, Opcode op, const Value& x) {
  auto exact = [&](llvm::Intrinsic::ID id) { return Value{x.type, b.CreateUnaryIntrinsic(id, x.v)}; };
#define HLOJIT_FN(name) real(b, o, [](auto t) { return math::name(t); }, x)
  using enum Opcode;
  switch (op) {
    case kAbs: return exact(llvm::Intrinsic::fabs);
    case kNegate: return {x.type, b.CreateFNeg(x.v)};
    case kCopy:
    case kReal: return x;
    case kImag: return constant(b, x.type, 0, lanes_of(x));
    case kFloor: return exact(llvm::Intrinsic::floor);
    case kCeil: return exact(llvm::Intrinsic::ceil);
    case kRoundEven: return exact(llvm::Intrinsic::roundeven);
    case kRoundAfz: return exact(llvm::Intrinsic::round);
    case kSqrt: return exact(llvm::Intrinsic::sqrt);
    case kIsFinite: {
      llvm::Value* a = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.v);
      return {DType::kPred, b.CreateFCmpOLT(a, llvm::ConstantFP::getInfinity(a->getType()))};
    }
    case kSign: {
      llvm::Value* one = llvm::ConstantFP::get(x.v->getType(), 1.0);
      llvm::Value* s = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, one, x.v);
      llvm::Value* keep = b.CreateFCmpUEQ(x.v, llvm::ConstantFP::get(x.v->getType(), 0.0));
      return {x.type, b.CreateSelect(keep, x.v, s)};
    }
    case kExponential: return HLOJIT_FN(exp);
    case kExponentialMinusOne: return HLOJIT_FN(expm1);
    case kLog: return HLOJIT_FN(log);
    case kLogPlusOne: return HLOJIT_FN(log1p);
    case kLogistic: return HLOJIT_FN(logistic);
    case kTanh: return HLOJIT_FN(tanh);
    case kErf: return HLOJIT_FN(erf);
    case kSine: return HLOJIT_FN(sin);
    case kCosine: return HLOJIT_FN(cos);
    case kTan: return HLOJIT_FN(tan);
    case kSinh: return HLOJIT_FN(sinh);
    case kCosh: return HLOJIT_FN(cosh);
    case kAsin: return HLOJIT_FN(asin);
    case kAcos: return HLOJIT_FN(acos);
    case kAsinh: return HLOJIT_FN(asinh);
    case kAcosh: return HLOJIT_FN(acosh);
    case kAtanh: return HLOJIT_FN(atanh);
    case kCbrt: return HLOJIT_FN(cbrt);
    case kRsqrt: return HLOJIT_FN(rsqrt);
    default: return {};
  }
#undef HLOJIT_FN
}

}  // namespace hlojit::codegen

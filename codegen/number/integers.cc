// Integers and pred: everything wraps modulo 2^n and nothing traps.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/Support/DivisionByConstantInfo.h>

#include "codegen/number/families.h"

namespace hlojit::codegen {
namespace {

using B = llvm::IRBuilderBase;

llvm::Value* integer(const Value& like, int64_t c) {
  return llvm::ConstantInt::get(like.v->getType(), static_cast<uint64_t>(c), true);
}

// The bits of the type without the extension above them.
llvm::Value* own_bits(B& b, const Value& x) {
  int bits = dtype_bits(x.type);
  return bits < 8 && is_signed(x.type) ? b.CreateAnd(x.v, integer(x, (1 << bits) - 1)) : x.v;
}

// The upper half of the product of 64-bit lanes, of which a vector has products of halves alone.
llvm::Value* high_of_halves(B& b, llvm::Value* x, llvm::Value* y, bool is_signed) {
  auto low = [&](llvm::Value* v) { return b.CreateAnd(v, llvm::ConstantInt::get(v->getType(), 0xffffffff)); };
  auto high = [&](llvm::Value* v) { return b.CreateLShr(v, 32); };
  llvm::Value *x0 = low(x), *x1 = high(x), *y0 = low(y), *y1 = high(y);
  llvm::Value* middle = b.CreateAdd(b.CreateMul(x1, y0), high(b.CreateMul(x0, y0)));
  llvm::Value* other = b.CreateAdd(b.CreateMul(x0, y1), low(middle));
  llvm::Value* r = b.CreateAdd(b.CreateAdd(b.CreateMul(x1, y1), high(middle)), high(other));
  if (!is_signed) return r;
  // A negative factor was taken for one that is 2^64 more.
  r = b.CreateSub(r, b.CreateAnd(b.CreateAShr(x, 63), y));
  return b.CreateSub(r, b.CreateAnd(b.CreateAShr(y, 63), x));
}

// A divisor of vectors of 64 bits that is a product with a known number and shifts: neither 0, 1 nor -1, which need
// none of it, nor a power of two, which the compiler shifts by.
const llvm::APInt* multiplier_of(const Value& x, const llvm::Value* y) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(y);
  if (!constant || !x.v->getType()->isVectorTy() || x.v->getType()->getScalarSizeInBits() != 64) return nullptr;
  const auto* one = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getSplatValue());
  if (!one) return nullptr;
  const llvm::APInt& d = one->getValue();
  return d.isZero() || d.isPowerOf2() || d.isNegatedPowerOf2() ? nullptr : &d;
}

// Hacker's Delight, 10: the compiler knows this for what the processor multiplies whole; of 64-bit lanes it would take
// each out of its vector.
llvm::Value* quotient_by(B& b, const Value& x, const llvm::APInt& d) {
  llvm::Type* type = x.v->getType();
  auto constant = [&](const llvm::APInt& c) { return llvm::ConstantInt::get(type, c); };
  if (!is_signed(x.type)) {
    const auto m = llvm::UnsignedDivisionByConstantInfo::get(d);
    llvm::Value* q = high_of_halves(b, b.CreateLShr(x.v, m.PreShift), constant(m.Magic), false);
    if (m.IsAdd) q = b.CreateAdd(b.CreateLShr(b.CreateSub(x.v, q), 1), q);
    return b.CreateLShr(q, m.PostShift);
  }
  const auto m = llvm::SignedDivisionByConstantInfo::get(d);
  llvm::Value* q = high_of_halves(b, x.v, constant(m.Magic), true);
  if (!d.isNegative() && m.Magic.isNegative()) q = b.CreateAdd(q, x.v);
  if (d.isNegative() && !m.Magic.isNegative()) q = b.CreateSub(q, x.v);
  q = b.CreateAShr(q, m.ShiftAmount);
  return b.CreateAdd(q, b.CreateLShr(q, 63));
}

// By a constant the compiler multiplies; without conversions of 64 bits these have the processor's own division, an
// element at a time.
bool divides_itself(const NumberOptions& o, const Value& x, const llvm::Value* y) {
  llvm::Type* type = x.v->getType();
  if (multiplier_of(x, y)) return false;
  return !type->isVectorTy() || (type->getScalarSizeInBits() > 32 && !o.avx512) || llvm::isa<llvm::Constant>(y);
}

// Magnitudes of 64 bits through a reciprocal that, rounded and all, is a little less. The first quotient lacks at most
// 2^-49 of itself, what that leaves is divided likewise, and then one may be missing at most. (18,473 of s64, a Zen 4:
// 35.9 us an element at a time, 13.0 so.)
llvm::Value* quotient_of_magnitudes(B& b, llvm::Value* x, llvm::Value* y) {
  llvm::Type* type = x->getType();
  llvm::Type* real = type->getWithNewType(b.getDoubleTy());
  llvm::Value* inverse = b.CreateFDiv(llvm::ConstantFP::get(real, 1 - 0x1p-50), b.CreateUIToFP(y, real));
  auto at_most = [&](llvm::Value* of) { return b.CreateFPToUI(b.CreateFMul(b.CreateUIToFP(of, real), inverse), type); };
  auto rest = [&](llvm::Value* of, llvm::Value* q) { return b.CreateSub(of, b.CreateMul(q, y)); };
  llvm::Value* first = at_most(x);
  llvm::Value* left = rest(x, first);
  llvm::Value* second = at_most(left);
  llvm::Value* missing = b.CreateZExt(b.CreateICmpUGE(rest(left, second), y), type);
  return b.CreateAdd(b.CreateAdd(first, second), missing);
}

llvm::Value* quotient_of_64(B& b, const Value& x, llvm::Value* y) {
  if (!is_signed(x.type)) return quotient_of_magnitudes(b, x.v, y);
  auto size = [&](llvm::Value* v) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, v, b.getFalse()); };
  llvm::Value* q = quotient_of_magnitudes(b, size(x.v), size(y));
  llvm::Value* sign = b.CreateAShr(b.CreateXor(x.v, y), 63);
  return b.CreateSub(b.CreateXor(q, sign), sign);
}

// Vectors have no integer division but a float one, which is exact here: with quotients below 2^n and a
// mantissa of at least n + 8 bits, rounding moves a quotient by less than its distance to the next integer.
llvm::Value* quotient(B& b, const NumberOptions& o, const Value& x, llvm::Value* y) {
  llvm::Type* type = x.v->getType();
  bool s = is_signed(x.type);
  unsigned bits = type->getScalarSizeInBits();
  if (divides_itself(o, x, y)) return s ? b.CreateSDiv(x.v, y) : b.CreateUDiv(x.v, y);
  if (const llvm::APInt* d = multiplier_of(x, y)) return quotient_by(b, x, *d);
  if (bits == 64) return quotient_of_64(b, x, y);
  llvm::Type* wide = type->getWithNewType(bits == 32 ? b.getDoubleTy() : b.getFloatTy());
  // Through 32-bit integers, which convert in one instruction.
  llvm::Type* middle = type->getWithNewType(b.getInt32Ty());
  auto real = [&](llvm::Value* v) {
    v = b.CreateIntCast(v, middle, s);
    return s || bits < 32 ? b.CreateSIToFP(v, wide) : b.CreateUIToFP(v, wide);
  };
  llvm::Value* q = b.CreateFDiv(real(x.v), real(y));
  q = s || bits < 32 ? b.CreateFPToSI(q, middle) : b.CreateFPToUI(q, middle);
  return b.CreateTrunc(q, type);
}

// Divisor and result are patched so that nothing traps: x/0 = all ones, MIN/-1 = MIN; x%0 = x, MIN%-1 = 0.
Value divide(B& b, const NumberOptions& o, const Value& x, const Value& y, bool remainder) {
  llvm::Value* zero = b.CreateICmpEQ(y.v, integer(y, 0));
  llvm::Value* patched = zero;
  llvm::Constant* known = llvm::dyn_cast<llvm::Constant>(y.v);
  if (known && y.v->getType()->isVectorTy()) known = known->getSplatValue();
  bool overflows = is_signed(x.type) && !(known && !known->isAllOnesValue());
  if (overflows) {
    // With the divisor 1 the overflow already gives MIN and 0.
    auto min = llvm::APInt::getSignedMinValue(x.v->getType()->getScalarSizeInBits());
    llvm::Value* smallest = b.CreateICmpEQ(x.v, llvm::ConstantInt::get(x.v->getType(), min));
    patched = b.CreateOr(zero, b.CreateAnd(smallest, b.CreateICmpEQ(y.v, integer(y, -1))));
  }
  llvm::Value* safe = b.CreateSelect(patched, integer(y, 1), y.v);
  llvm::Value* r;
  const bool itself = divides_itself(o, x, safe);
  if (remainder && itself)
    r = is_signed(x.type) ? b.CreateSRem(x.v, safe) : b.CreateURem(x.v, safe);
  else
    r = quotient(b, o, x, safe);
  if (remainder && !itself) r = b.CreateSub(x.v, b.CreateMul(r, safe));
  return {x.type, b.CreateSelect(zero, remainder ? x.v : integer(x, -1), r)};
}

// x^y modulo 2^n by squaring, a turn for each bit of the exponent. A known exponent is unrolled and folds; else a loop
// ends with the last bit set of any lane: 64 turns of 64-bit products in a row took LLVM 300 ms.
llvm::Value* squared(B& b, const Value& x, const Value& y) {
  llvm::Value *one = integer(x, 1), *zero = integer(x, 0);
  auto times = [&](llvm::Value* result, llvm::Value* base, llvm::Value* left) {
    llvm::Value* set = b.CreateICmpNE(b.CreateAnd(left, one), zero);
    return b.CreateSelect(set, b.CreateMul(result, base), result);
  };
  if (auto* known = llvm::dyn_cast<llvm::Constant>(y.v)) {
    llvm::Value *result = one, *base = x.v, *left = known;
    for (; !llvm::cast<llvm::Constant>(left)->isZeroValue(); left = b.CreateLShr(left, one)) {
      result = times(result, base, left);
      base = b.CreateMul(base, base);
    }
    return result;
  }
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, before->getParent()); };
  llvm::BasicBlock *turn = block("power"), *done = block("power.done");
  b.CreateBr(turn);
  b.SetInsertPoint(turn);
  auto state = [&](llvm::Value* start) {
    auto* phi = b.CreatePHI(start->getType(), 2);
    phi->addIncoming(start, before);
    return phi;
  };
  auto *result = state(one), *base = state(x.v), *left = state(y.v);
  llvm::Value* next = times(result, base, left);
  result->addIncoming(next, turn);
  base->addIncoming(b.CreateMul(base, base), turn);
  llvm::Value* shifted = b.CreateLShr(left, one);
  left->addIncoming(shifted, turn);
  llvm::Value* any = b.CreateICmpNE(shifted, zero);
  if (any->getType()->isVectorTy()) any = b.CreateOrReduce(any);
  b.CreateCondBr(any, turn, done);
  b.SetInsertPoint(done);
  return next;
}

// Wraps; a negative exponent gives 1 for base 1, +-1 by parity for base -1, else 0.
Value power(B& b, const Value& x, const Value& y) {
  llvm::Value* result = squared(b, x, y);
  if (!is_signed(x.type)) return {x.type, result};
  llvm::Value* negative = b.CreateICmpSLT(y.v, integer(y, 0));
  llvm::Value* odd = b.CreateICmpNE(b.CreateAnd(y.v, integer(y, 1)), integer(y, 0));
  llvm::Value* one = b.CreateICmpEQ(x.v, integer(x, 1));
  llvm::Value* minus = b.CreateICmpEQ(x.v, integer(x, -1));
  llvm::Value* unit = b.CreateSelect(b.CreateAnd(minus, odd), integer(x, -1), integer(x, 1));
  llvm::Value* inverse = b.CreateSelect(b.CreateOr(one, minus), unit, integer(x, 0));
  return {x.type, b.CreateSelect(negative, inverse, result)};
}

// The upper half of the product, which has twice as many bits.
Value high_product(B& b, const Value& x, const Value& y) {
  bool s = is_signed(x.type);
  unsigned bits = x.v->getType()->getScalarSizeInBits();
  if (bits == 64 && x.v->getType()->isVectorTy()) return {x.type, high_of_halves(b, x.v, y.v, s)};
  llvm::Type* wide = x.v->getType()->getWithNewType(b.getIntNTy(2 * bits));
  llvm::Value* product = b.CreateMul(b.CreateIntCast(x.v, wide, s), b.CreateIntCast(y.v, wide, s));
  return {x.type, b.CreateTrunc(b.CreateLShr(product, static_cast<uint64_t>(dtype_bits(x.type))), x.v->getType())};
}

// The amount is unsigned; amounts >= width give 0, or the top bit everywhere.
Value shift(B& b, Opcode op, const Value& x, const Value& y) {
  int bits = dtype_bits(x.type);
  llvm::Value* fits = b.CreateICmpULT(y.v, integer(y, bits));
  llvm::Value* amount = b.CreateSelect(fits, y.v, integer(y, bits - 1));
  if (op == Opcode::kShiftRightArithmetic) {
    llvm::Value* v = x.v;
    if (bits < 8) v = b.CreateAShr(b.CreateShl(v, integer(x, 8 - bits)), integer(x, 8 - bits));
    return {x.type, b.CreateAShr(v, amount)};
  }
  llvm::Value* r = op == Opcode::kShiftLeft ? b.CreateShl(x.v, amount) : b.CreateLShr(own_bits(b, x), amount);
  return {x.type, b.CreateSelect(fits, r, integer(x, 0))};
}

}  // namespace

Value integer_binary(B& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y) {
  bool s = is_signed(x.type);
  auto made = [&](llvm::Value* v) { return Value{x.type, v}; };
  auto chosen = [&](llvm::Intrinsic::ID id) { return made(b.CreateBinaryIntrinsic(id, x.v, y.v)); };
  using enum Opcode;
  switch (op) {
    case kAdd: return made(b.CreateAdd(x.v, y.v));
    case kSubtract: return made(b.CreateSub(x.v, y.v));
    case kMultiply: return made(b.CreateMul(x.v, y.v));
    case kDivide: return divide(b, o, x, y, false);
    case kRemainder: return divide(b, o, x, y, true);
    case kPower: return power(b, x, y);
    case kMulHi: return high_product(b, x, y);
    case kMaximum: return chosen(s ? llvm::Intrinsic::smax : llvm::Intrinsic::umax);
    case kMinimum: return chosen(s ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
    case kAnd: return made(b.CreateAnd(x.v, y.v));
    case kOr: return made(b.CreateOr(x.v, y.v));
    case kXor: return made(b.CreateXor(x.v, y.v));
    case kShiftLeft:
    case kShiftRightLogical:
    case kShiftRightArithmetic: return shift(b, op, x, y);
    default: return {};
  }
}

Value integer_unary(B& b, Opcode op, const Value& x) {
  auto made = [&](llvm::Value* v) { return Value{x.type, v}; };
  using enum Opcode;
  switch (op) {
    case kAbs: return made(b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x.v, b.getFalse()));
    case kNegate: return made(b.CreateNeg(x.v));
    case kNot: return made(b.CreateNot(x.v));
    case kPopcnt: return made(b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, own_bits(b, x)));
    case kClz: {
      llvm::Value* zeros = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, own_bits(b, x), b.getFalse());
      int above = 8 * dtype_bytes(x.type) - dtype_bits(x.type);
      return made(b.CreateSub(zeros, integer(x, above)));
    }
    case kSign: {
      llvm::Value* negative = b.CreateAShr(x.v, x.v->getType()->getScalarSizeInBits() - 1);
      llvm::Value* positive = b.CreateZExt(b.CreateICmpSGT(x.v, integer(x, 0)), x.v->getType());
      return made(b.CreateOr(negative, positive));
    }
    case kCopy: return x;
    default: return {};
  }
}

Value pred_binary(B& b, Opcode op, const Value& x, const Value& y) {
  using enum Opcode;
  switch (op) {
    case kAdd:
    case kMaximum:
    case kOr: return {x.type, b.CreateOr(x.v, y.v)};
    case kMultiply:
    case kMinimum:
    case kAnd: return {x.type, b.CreateAnd(x.v, y.v)};
    case kXor: return {x.type, b.CreateXor(x.v, y.v)};
    default: return {};
  }
}

Value pred_unary(B& b, Opcode op, const Value& x) {
  if (op == Opcode::kNot) return {x.type, b.CreateNot(x.v)};
  if (op == Opcode::kCopy) return x;
  return {};
}

}  // namespace hlojit::codegen

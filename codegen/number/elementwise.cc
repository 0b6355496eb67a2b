#include "codegen/number/elementwise.h"

#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "codegen/number/ir_number.h"
#include "compiler/math/complex.h"
#include "compiler/math/functions.h"

namespace hlojit::codegen {
namespace {

using llvm::Intrinsic::ID;
using B = llvm::IRBuilderBase;

[[noreturn]] void unsupported(const Instruction& i) {
  throw Error(ErrorKind::kUnsupported, i.location,
              fmt::format("{} of {} is not compiled yet", op_name(i.opcode), dtype_name(i.shape.type)));
}

llvm::Type* widened(llvm::Type* scalar, int lanes) {
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

llvm::Type* register_scalar(B& b, DType type) {
  if (type == DType::kPred) return b.getInt1Ty();
  if (is_complex(type)) type = component_type(type);
  if (type == DType::kF64) return b.getDoubleTy();
  if (is_float(type)) return b.getFloatTy();
  return b.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(type)));
}

llvm::Type* storage_scalar(B& b, DType type) {
  switch (type) {
    case DType::kPred: return b.getInt8Ty();
    case DType::kF16: return b.getHalfTy();
    case DType::kBF16: return b.getInt16Ty();
    case DType::kC64: return b.getInt64Ty();
    case DType::kC128: return b.getInt128Ty();
    default: return register_scalar(b, type);
  }
}

bool signed_type(DType t) { return is_signed(t); }

// Runs a template of compiler/math on a float value.
template <class Function>
Value real(B& b, const NumberOptions& o, const Value& x, Function f) {
  ir::Recording recording(static_cast<llvm::IRBuilder<>&>(b), o.avx512);
  if (x.type == DType::kF64) return {x.type, f(ir::F64{x.v}).v};
  return round_to_type(b, {x.type, f(ir::F32{x.v}).v});
}
template <class Function>
Value real(B& b, const NumberOptions& o, const Value& x, const Value& y, Function f) {
  ir::Recording recording(static_cast<llvm::IRBuilder<>&>(b), o.avx512);
  if (x.type == DType::kF64) return {x.type, f(ir::F64{x.v}, ir::F64{y.v}).v};
  return round_to_type(b, {x.type, f(ir::F32{x.v}, ir::F32{y.v}).v});
}

llvm::Value* integer(const Value& like, int64_t c) {
  return llvm::ConstantInt::get(like.v->getType(), static_cast<uint64_t>(c), true);
}

unsigned bits_of(const Value& v) { return v.v->getType()->getScalarSizeInBits(); }

llvm::Value* smallest(const Value& like) {
  auto bits = bits_of(like);
  return llvm::ConstantInt::get(like.v->getType(), llvm::APInt::getSignedMinValue(bits));
}

// Divisor and result are patched so that nothing traps: x/0 = all ones, MIN/-1 = MIN; x%0 = x, MIN%-1 = 0.
Value integer_divide(B& b, const Value& x, const Value& y, bool remainder) {
  llvm::Value* zero = b.CreateICmpEQ(y.v, integer(y, 0));
  if (!signed_type(x.type)) {
    llvm::Value* safe = b.CreateSelect(zero, integer(y, 1), y.v);
    llvm::Value* r = remainder ? b.CreateURem(x.v, safe) : b.CreateUDiv(x.v, safe);
    return {x.type, b.CreateSelect(zero, remainder ? x.v : integer(x, -1), r)};
  }
  llvm::Value* overflow = b.CreateAnd(b.CreateICmpEQ(x.v, smallest(x)), b.CreateICmpEQ(y.v, integer(y, -1)));
  llvm::Value* safe = b.CreateSelect(b.CreateOr(zero, overflow), integer(y, 1), y.v);
  llvm::Value* r = remainder ? b.CreateSRem(x.v, safe) : b.CreateSDiv(x.v, safe);
  // With the divisor 1 the overflow case already gives MIN and 0.
  return {x.type, b.CreateSelect(zero, remainder ? x.v : integer(x, -1), r)};
}

// Wraps; a negative exponent gives 1 for base 1, +-1 by parity for base -1, else 0.
Value integer_power(B& b, const Value& x, const Value& y) {
  llvm::Value* result = integer(x, 1);
  llvm::Value* base = x.v;
  unsigned bits = bits_of(x);
  for (unsigned k = 0; k < bits; ++k) {
    llvm::Value* set = b.CreateICmpNE(b.CreateAnd(y.v, integer(y, int64_t(uint64_t{1} << k))), integer(y, 0));
    result = b.CreateSelect(set, b.CreateMul(result, base), result);
    if (k + 1 < bits) base = b.CreateMul(base, base);
  }
  if (!signed_type(x.type)) return {x.type, result};
  llvm::Value* negative = b.CreateICmpSLT(y.v, integer(y, 0));
  llvm::Value* odd = b.CreateICmpNE(b.CreateAnd(y.v, integer(y, 1)), integer(y, 0));
  llvm::Value* one = b.CreateICmpEQ(x.v, integer(x, 1));
  llvm::Value* minus = b.CreateICmpEQ(x.v, integer(x, -1));
  llvm::Value* unit = b.CreateSelect(b.CreateAnd(minus, odd), integer(x, -1), integer(x, 1));
  llvm::Value* inverse = b.CreateSelect(b.CreateOr(one, minus), unit, integer(x, 0));
  return {x.type, b.CreateSelect(negative, inverse, result)};
}

// The amount is unsigned; amounts >= width give 0, or the sign.
Value shift(B& b, Opcode op, const Value& x, const Value& y) {
  unsigned bits = bits_of(x);
  llvm::Value* fits = b.CreateICmpULT(y.v, integer(y, bits));
  llvm::Value* amount = b.CreateSelect(fits, y.v, integer(y, bits - 1));
  if (op == Opcode::kShiftRightArithmetic) return {x.type, b.CreateAShr(x.v, amount)};
  llvm::Value* r = op == Opcode::kShiftLeft ? b.CreateShl(x.v, amount) : b.CreateLShr(x.v, amount);
  return {x.type, b.CreateSelect(fits, r, integer(x, 0))};
}

Value integer_binary(B& b, Opcode op, const Value& x, const Value& y) {
  bool s = signed_type(x.type);
  auto made = [&](llvm::Value* v) { return Value{x.type, v}; };
  auto extreme = [&](ID id) { return made(b.CreateBinaryIntrinsic(id, x.v, y.v)); };
  using enum Opcode;
  switch (op) {
    case kAdd: return made(b.CreateAdd(x.v, y.v));
    case kSubtract: return made(b.CreateSub(x.v, y.v));
    case kMultiply: return made(b.CreateMul(x.v, y.v));
    case kDivide: return integer_divide(b, x, y, false);
    case kRemainder: return integer_divide(b, x, y, true);
    case kPower: return integer_power(b, x, y);
    case kMaximum: return extreme(s ? llvm::Intrinsic::smax : llvm::Intrinsic::umax);
    case kMinimum: return extreme(s ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
    case kAnd: return made(b.CreateAnd(x.v, y.v));
    case kOr: return made(b.CreateOr(x.v, y.v));
    case kXor: return made(b.CreateXor(x.v, y.v));
    case kShiftLeft:
    case kShiftRightLogical:
    case kShiftRightArithmetic: return shift(b, op, x, y);
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

// Unrounded: narrow floats come back as plain f32.
Value float_binary(B& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y) {
  auto made = [&](llvm::Value* v) { return Value{x.type, v}; };
  using enum Opcode;
  switch (op) {
    case kAdd: return made(b.CreateFAdd(x.v, y.v));
    case kSubtract: return made(b.CreateFSub(x.v, y.v));
    case kMultiply: return made(b.CreateFMul(x.v, y.v));
    case kDivide: return made(b.CreateFDiv(x.v, y.v));
    case kMaximum: return made(b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x.v, y.v));
    case kMinimum: return made(b.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, x.v, y.v));
    case kRemainder: return real(b, o, x, y, [](auto p, auto q) { return math::remainder(p, q); });
    case kPower: return real(b, o, x, y, [](auto p, auto q) { return math::pow(p, q); });
    case kAtan2: return real(b, o, x, y, [](auto p, auto q) { return math::atan2(p, q); });
    default: return {};
  }
}

// IEEE order as integers: a negative float's magnitude bits are flipped.
llvm::Value* total_order_key(B& b, const Value& x) {
  llvm::Value* bits;
  if (x.type == DType::kF16 || x.type == DType::kBF16) {
    llvm::Value* raw = to_storage(b, x);
    bits = b.CreateBitCast(raw, raw->getType()->getWithNewType(b.getInt16Ty()));
  } else {
    unsigned n = bits_of(x);
    bits = b.CreateBitCast(x.v, x.v->getType()->getWithNewType(b.getIntNTy(n)));
  }
  unsigned n = bits->getType()->getScalarSizeInBits();
  auto* mask = llvm::ConstantInt::get(bits->getType(), llvm::APInt::getSignedMaxValue(n));
  llvm::Value* negative = b.CreateICmpSLT(bits, llvm::Constant::getNullValue(bits->getType()));
  return b.CreateSelect(negative, b.CreateXor(bits, mask), bits);
}

Value compare(B& b, const Instruction& i, const Value& x, const Value& y) {
  CompareType type = effective_compare_type(i);
  using P = llvm::CmpInst::Predicate;
  int d = static_cast<int>(i.attrs.direction);
  static constexpr P kFloat[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OGE, P::FCMP_OGT, P::FCMP_OLE, P::FCMP_OLT};
  static constexpr P kSigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SGE, P::ICMP_SGT, P::ICMP_SLE, P::ICMP_SLT};
  static constexpr P kUnsigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_UGE, P::ICMP_UGT, P::ICMP_ULE, P::ICMP_ULT};
  if (is_float(x.type) && type == CompareType::kTotalOrder) {
    return {DType::kPred, b.CreateICmp(kSigned[d], total_order_key(b, x), total_order_key(b, y))};
  }
  if (is_float(x.type)) return {DType::kPred, b.CreateFCmp(kFloat[d], x.v, y.v)};
  if (is_complex(x.type)) {
    auto part = [&](P p, bool imag) { return imag ? b.CreateFCmp(p, x.imag, y.imag) : b.CreateFCmp(p, x.v, y.v); };
    if (i.attrs.direction == Direction::kEq) return {DType::kPred, b.CreateAnd(part(P::FCMP_OEQ, false), part(P::FCMP_OEQ, true))};
    llvm::Value* differ = part(P::FCMP_UNE, false);
    if (i.attrs.direction == Direction::kNe) return {DType::kPred, b.CreateOr(differ, part(P::FCMP_UNE, true))};
    return {DType::kPred, b.CreateSelect(differ, part(kFloat[d], false), part(kFloat[d], true))};  // lexicographic
  }
  bool s = is_signed(x.type);
  return {DType::kPred, b.CreateICmp(s ? kSigned[d] : kUnsigned[d], x.v, y.v)};
}

Value integer_unary(B& b, Opcode op, const Value& x) {
  auto made = [&](llvm::Value* v) { return Value{x.type, v}; };
  using enum Opcode;
  switch (op) {
    case kAbs: return made(b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x.v, b.getFalse()));
    case kNegate: return made(b.CreateNeg(x.v));
    case kNot: return made(b.CreateNot(x.v));
    case kPopcnt: return made(b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, x.v));
    case kClz: return made(b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x.v, b.getFalse()));
    case kSign: {
      llvm::Value* negative = b.CreateAShr(x.v, bits_of(x) - 1);
      llvm::Value* positive = b.CreateZExt(b.CreateICmpSGT(x.v, integer(x, 0)), x.v->getType());
      return made(b.CreateOr(negative, positive));
    }
    case kCopy: return x;
    default: return {};
  }
}

Value float_unary(B& b, const NumberOptions& o, Opcode op, const Value& x) {
  auto exact = [&](ID id) { return Value{x.type, b.CreateUnaryIntrinsic(id, x.v)}; };
#define HLOJIT_FN(name) real(b, o, x, [](auto t) { return math::name(t); })
  using enum Opcode;
  switch (op) {
    case kAbs: return exact(llvm::Intrinsic::fabs);
    case kNegate: return {x.type, b.CreateFNeg(x.v)};
    case kCopy:
    case kReal: return x;
    case kImag: return constant(b, x.type, 0, lanes_of(x));
    case kFloor: return round_to_type(b, exact(llvm::Intrinsic::floor));
    case kCeil: return round_to_type(b, exact(llvm::Intrinsic::ceil));
    case kRoundEven: return round_to_type(b, exact(llvm::Intrinsic::roundeven));
    case kRoundAfz: return round_to_type(b, exact(llvm::Intrinsic::round));
    case kSqrt: return round_to_type(b, exact(llvm::Intrinsic::sqrt));
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

// Runs a template of compiler/math/complex.h on complex values: f(Cx<F>...) -> Cx<F>.
template <class F, class... More>
Value complex(B& b, const NumberOptions& o, F f, const Value& x, const More&... more) {
  ir::Recording recording(static_cast<llvm::IRBuilder<>&>(b), o.avx512);
  auto run = [&]<int N>(std::integral_constant<int, N>) -> Value {
    using Float = ir::Float<N>;
    auto z = f(math::Cx<Float>{{x.v}, {x.imag}}, math::Cx<Float>{{more.v}, {more.imag}}...);
    if constexpr (requires { z.re; }) return {x.type, z.re.v, z.im.v};
    else return {component_type(x.type), z.v};
  };
  return x.type == DType::kC128 ? run(std::integral_constant<int, 64>{}) : run(std::integral_constant<int, 32>{});
}

Value complex_binary(B& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y) {
  using enum Opcode;
  switch (op) {
    case kAdd: return complex(b, o, [](auto p, auto q) { return p + q; }, x, y);
    case kSubtract: return complex(b, o, [](auto p, auto q) { return p - q; }, x, y);
    case kMultiply: return complex(b, o, [](auto p, auto q) { return p * q; }, x, y);
    case kDivide: return complex(b, o, [](auto p, auto q) { return p / q; }, x, y);
    case kPower: return complex(b, o, [](auto p, auto q) { return math::pow(p, q); }, x, y);
    case kAtan2: return complex(b, o, [](auto p, auto q) { return math::atan2(p, q); }, x, y);
    default: return {};
  }
}

Value complex_unary(B& b, const NumberOptions& o, Opcode op, const Value& x) {
#define HLOJIT_FN(name) complex(b, o, [](auto z) { return math::name(z); }, x)
  using enum Opcode;
  switch (op) {
    case kCopy: return x;
    case kReal: return {component_type(x.type), x.v};
    case kImag: return {component_type(x.type), x.imag};
    case kNegate: return map_parts(x, [&](llvm::Value* v) { return b.CreateFNeg(v); });
    case kAbs: return HLOJIT_FN(abs);
    case kSign: return HLOJIT_FN(sign);
    case kSqrt: return HLOJIT_FN(sqrt);
    case kRsqrt: return HLOJIT_FN(rsqrt);
    case kExponential: return HLOJIT_FN(exp);
    case kExponentialMinusOne: return HLOJIT_FN(expm1);
    case kLog: return HLOJIT_FN(log);
    case kLogPlusOne: return HLOJIT_FN(log1p);
    case kLogistic: return HLOJIT_FN(logistic);
    case kSine: return HLOJIT_FN(sin);
    case kCosine: return HLOJIT_FN(cos);
    case kTan: return HLOJIT_FN(tan);
    case kTanh: return HLOJIT_FN(tanh);
    case kSinh: return HLOJIT_FN(sinh);
    case kCosh: return HLOJIT_FN(cosh);
    default: return {};
  }
#undef HLOJIT_FN
}

Value pred_unary(B& b, Opcode op, const Value& x) {
  if (op == Opcode::kNot) return {x.type, b.CreateNot(x.v)};
  if (op == Opcode::kCopy) return x;
  return {};
}

// Twice the lanes of the parts, re im re im ...
llvm::Value* interleaved(B& b, const Value& x) {
  if (lanes_of(x) == 1) {
    llvm::Value* pair = llvm::PoisonValue::get(widened(x.v->getType(), 2));
    return b.CreateInsertElement(b.CreateInsertElement(pair, x.v, uint64_t{0}), x.imag, uint64_t{1});
  }
  std::vector<int> mask;
  for (int l = 0, n = lanes_of(x); l < n; ++l) mask.push_back(l), mask.push_back(n + l);
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

// exponent and mantissa narrowed on the bits: round to nearest even, overflow to inf, underflow to 0.
Value reduce_precision(B& b, const Instruction& i, const Value& x) {
  bool wide = x.type == DType::kF64;
  int mantissa = wide ? 52 : 23;
  int exponent = wide ? 11 : 8;
  int64_t e = i.attrs.exponent_bits, m = i.attrs.mantissa_bits;
  // What the operand's own type has already is no reduction, although registers are wider.
  bool half = x.type == DType::kF16, brain = x.type == DType::kBF16;
  if (m >= (half ? 10 : brain ? 7 : mantissa)) m = mantissa;
  if (e >= (half ? 5 : exponent)) e = exponent;
  unsigned n = wide ? 64 : 32;
  llvm::Type* type = x.v->getType()->getWithNewType(b.getIntNTy(n));
  auto c = [&](uint64_t v) { return llvm::ConstantInt::get(type, v); };
  llvm::Value* bits = b.CreateBitCast(x.v, type);
  if (m < mantissa) {
    uint64_t shift = static_cast<uint64_t>(mantissa - m);
    llvm::Value* odd = b.CreateAnd(b.CreateLShr(bits, shift), 1);
    bits = b.CreateAdd(bits, b.CreateAdd(odd, c((uint64_t{1} << (shift - 1)) - 1)));
    bits = b.CreateAnd(bits, c(~((uint64_t{1} << shift) - 1)));
  }
  if (e < exponent) {
    uint64_t bias = (uint64_t{1} << (exponent - 1)) - 1;
    uint64_t narrow = (uint64_t{1} << (e - 1)) - 1;
    uint64_t exponent_mask = ((uint64_t{1} << exponent) - 1) << mantissa;
    llvm::Value* sign = b.CreateAnd(bits, c(uint64_t{1} << (n - 1)));
    llvm::Value* biased = b.CreateAnd(bits, c(exponent_mask));
    llvm::Value* over = b.CreateICmpUGT(biased, c((bias + narrow) << mantissa));
    llvm::Value* under = b.CreateICmpULE(biased, c((bias - narrow) << mantissa));
    bits = b.CreateSelect(over, b.CreateOr(sign, c(exponent_mask)), bits);
    bits = b.CreateSelect(under, sign, bits);
  }
  llvm::Value* r = b.CreateBitCast(bits, x.v->getType());
  llvm::Value* nan = b.CreateFCmpUNO(x.v, x.v);
  return round_to_type(b, {x.type, b.CreateSelect(nan, x.v, r)}, true);
}

Value bitcast_convert(B& b, const Instruction& i, const Value& x) {
  llvm::Value* raw = to_storage(b, x);
  DType to = i.shape.type;
  llvm::Type* type = storage_type(b, to, lanes_of(x));
  return from_storage(b, to, b.CreateBitCast(raw, type));
}

}  // namespace

bool is_compiled_type(DType t) {
  switch (t) {
    case DType::kPred:
    case DType::kS8: case DType::kS16: case DType::kS32: case DType::kS64:
    case DType::kU8: case DType::kU16: case DType::kU32: case DType::kU64:
    case DType::kF16: case DType::kBF16: case DType::kF32: case DType::kF64:
    case DType::kC64: case DType::kC128: return true;
    default: return false;
  }
}

llvm::Type* register_type(B& b, DType type, int lanes) { return widened(register_scalar(b, type), lanes); }
llvm::Type* storage_type(B& b, DType type, int lanes) { return widened(storage_scalar(b, type), lanes); }

Value from_storage(B& b, DType type, llvm::Value* raw) {
  llvm::Type* t = raw->getType();
  switch (type) {
    case DType::kPred: return {type, b.CreateICmpNE(raw, llvm::Constant::getNullValue(t))};
    case DType::kF16: return {type, b.CreateFPExt(raw, t->getWithNewType(b.getFloatTy()))};
    case DType::kBF16: {
      llvm::Value* wide = b.CreateShl(b.CreateZExt(raw, t->getWithNewType(b.getInt32Ty())), 16);
      return {type, b.CreateBitCast(wide, t->getWithNewType(b.getFloatTy()))};
    }
    case DType::kC64:
    case DType::kC128: {
      int lanes = lanes_of({type, raw});
      return deinterleaved(b, type, b.CreateBitCast(raw, register_type(b, type, 2 * lanes)), lanes);
    }
    default: return {type, raw};
  }
}

llvm::Value* to_storage(B& b, const Value& x) {
  llvm::Type* t = x.v->getType();
  switch (x.type) {
    case DType::kPred: return b.CreateZExt(x.v, t->getWithNewType(b.getInt8Ty()));
    case DType::kF16: return b.CreateFPTrunc(x.v, t->getWithNewType(b.getHalfTy()));
    case DType::kBF16: {
      llvm::Value* bits = b.CreateBitCast(x.v, t->getWithNewType(b.getInt32Ty()));
      return b.CreateTrunc(b.CreateLShr(bits, 16), t->getWithNewType(b.getInt16Ty()));
    }
    case DType::kC64:
    case DType::kC128: return b.CreateBitCast(interleaved(b, x), storage_type(b, x.type, lanes_of(x)));
    default: return x.v;
  }
}

int lanes_of(const Value& x) {
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(x.v->getType());
  return t ? static_cast<int>(t->getNumElements()) : 1;
}

Value splat(B& b, const Value& x, int lanes) {
  if (lanes == 1 || x.v->getType()->isVectorTy()) return x;
  return map_parts(x, [&](llvm::Value* v) { return b.CreateVectorSplat(static_cast<unsigned>(lanes), v); });
}

Value select(B& b, llvm::Value* condition, const Value& x, const Value& y) {
  return {x.type, b.CreateSelect(condition, x.v, y.v), x.imag ? b.CreateSelect(condition, x.imag, y.imag) : nullptr};
}

void append_parts(std::vector<llvm::Value*>& parts, const Value& x) {
  parts.push_back(x.v);
  if (x.imag) parts.push_back(x.imag);
}

Value take_parts(DType type, std::span<llvm::Value* const> parts, size_t& at) {
  Value x = {type, parts[at++]};
  if (is_complex(type)) x.imag = parts[at++];
  return x;
}

Value constant(B& b, const Literal& literal, int64_t index) {
  DType type = literal.shape().type;
  if (is_complex(type)) {
    std::complex<double> z = literal.as_complex(index);
    llvm::Type* t = register_scalar(b, type);
    return {type, llvm::ConstantFP::get(t, z.real()), llvm::ConstantFP::get(t, z.imag())};
  }
  if (is_float(type)) return constant(b, type, literal.as_double(index), 1);
  llvm::Type* t = register_scalar(b, type);
  return {type, llvm::ConstantInt::get(t, static_cast<uint64_t>(literal.as_int(index)), is_signed(type))};
}

Value constant(B& b, DType type, double value, int lanes) {
  llvm::Type* t = register_type(b, type, lanes);
  if (is_complex(type)) return {type, llvm::ConstantFP::get(t, value), llvm::ConstantFP::get(t, 0.0)};
  if (is_float(type)) return {type, llvm::ConstantFP::get(t, value)};
  return {type, llvm::ConstantInt::get(t, static_cast<uint64_t>(static_cast<int64_t>(value)), is_signed(type))};
}

Value round_to_type(B& b, const Value& x, bool any_nan) {
  llvm::Type* t = x.v->getType();
  if (x.type == DType::kF16) {
    return {x.type, b.CreateFPExt(b.CreateFPTrunc(x.v, t->getWithNewType(b.getHalfTy())), t)};
  }
  if (x.type != DType::kBF16) return x;
  // Nearest even on the bits. The add carries only out of a NaN whose low half is set: then it is quieted
  // and kept instead.
  llvm::Type* it = t->getWithNewType(b.getInt32Ty());
  llvm::Value* bits = b.CreateBitCast(x.v, it);
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), llvm::ConstantInt::get(it, 1));
  llvm::Value* rounded = b.CreateAdd(bits, b.CreateAdd(odd, llvm::ConstantInt::get(it, 0x7fff)));
  llvm::Value* r = rounded;
  if (any_nan) {
    llvm::Value* quiet = b.CreateOr(bits, llvm::ConstantInt::get(it, 0x00400000));
    r = b.CreateSelect(b.CreateFCmpUNO(x.v, x.v), quiet, rounded);
  }
  r = b.CreateAnd(r, llvm::ConstantInt::get(it, 0xffff0000));
  return {x.type, b.CreateBitCast(r, t)};
}

Value fma(B& b, const Value& x, const Value& y, const Value& z) {
  return {x.type, b.CreateIntrinsic(llvm::Intrinsic::fma, {x.v->getType()}, {x.v, y.v, z.v})};
}

Value binary(B& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y) {
  if (is_float(x.type)) return float_binary(b, o, op, x, y);
  if (is_complex(x.type)) return complex_binary(b, o, op, x, y);
  return is_pred(x.type) ? pred_binary(b, op, x, y) : integer_binary(b, op, x, y);
}

Value from_index(B& b, llvm::Value* index, DType type) {
  llvm::Type* t = index->getType();
  if (type == DType::kF64) return {type, b.CreateSIToFP(index, t->getWithNewType(b.getDoubleTy()))};
  if (is_float(type)) return round_to_type(b, {type, b.CreateSIToFP(index, t->getWithNewType(b.getFloatTy()))});
  return {type, b.CreateIntCast(index, t->getWithNewType(b.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(type)))), true)};
}

Value convert(B& b, const NumberOptions&, const Value& x, DType to) {
  if (x.type == to) return x;
  int lanes = lanes_of(x);
  if (is_complex(to)) {
    DType part = component_type(to);
    if (!is_complex(x.type)) return {to, convert(b, {}, x, part).v, constant(b, part, 0, lanes).v};
    DType from = component_type(x.type);
    return {to, convert(b, {}, {from, x.v}, part).v, convert(b, {}, {from, x.imag}, part).v};
  }
  if (is_complex(x.type)) {
    DType part = component_type(x.type);
    Value re = convert(b, {}, {part, x.v}, to);
    return is_pred(to) ? Value{to, b.CreateOr(re.v, convert(b, {}, {part, x.imag}, to).v)} : re;
  }
  llvm::Type* type = register_type(b, to, lanes);
  if (to == DType::kPred) {
    if (is_float(x.type)) return {to, b.CreateFCmpUNE(x.v, llvm::ConstantFP::get(x.v->getType(), 0.0))};
    return {to, b.CreateICmpNE(x.v, llvm::Constant::getNullValue(x.v->getType()))};
  }
  if (x.type == DType::kPred) {
    if (is_float(to)) return {to, b.CreateUIToFP(x.v, type)};
    return {to, b.CreateZExt(x.v, type)};
  }
  if (is_float(x.type) && is_float(to)) {
    if (to == DType::kF64) return {to, b.CreateFPExt(x.v, type)};
    if (x.type == DType::kF64 && is_narrow_float(to)) {
      // One correct rounding: to f32 towards odd, so that the second rounding cannot err.
      llvm::Value* f = b.CreateFPTrunc(x.v, type);
      llvm::Type* it = type->getWithNewType(b.getInt32Ty());
      llvm::Value* back = b.CreateFPExt(f, x.v->getType());
      llvm::Value* bits = b.CreateBitCast(f, it);
      llvm::Value* inexact = b.CreateFCmpONE(back, x.v);
      llvm::Value* magnitude_grew =
          b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                          b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.v));
      llvm::Value* down = b.CreateSelect(magnitude_grew, b.CreateSub(bits, llvm::ConstantInt::get(it, 1)), bits);
      llvm::Value* odd = b.CreateOr(down, llvm::ConstantInt::get(it, 1));
      bits = b.CreateSelect(inexact, odd, bits);
      return round_to_type(b, {to, b.CreateBitCast(bits, type)}, true);
    }
    if (x.type == DType::kF64) return {to, b.CreateFPTrunc(x.v, type)};
    return round_to_type(b, {to, x.v}, true);
  }
  if (is_float(x.type)) {
    auto id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return {to, b.CreateIntrinsic(id, {type, x.v->getType()}, {x.v})};
  }
  if (is_float(to)) {
    if (is_narrow_float(to) && dtype_bytes(x.type) >= 4) {
      // f32 would round once too often: through f64, which holds 32-bit integers exactly.
      llvm::Type* wide = register_type(b, DType::kF64, lanes);
      llvm::Value* d = is_signed(x.type) ? b.CreateSIToFP(x.v, wide) : b.CreateUIToFP(x.v, wide);
      return convert(b, {}, {DType::kF64, d}, to);
    }
    llvm::Value* f = is_signed(x.type) ? b.CreateSIToFP(x.v, type) : b.CreateUIToFP(x.v, type);
    return round_to_type(b, {to, f});
  }
  return {to, b.CreateIntCast(x.v, type, is_signed(x.type))};
}

Value elementwise(B& b, const NumberOptions& o, const Instruction& i, std::span<const Value> x) {
  using enum Opcode;
  Value r;
  switch (i.opcode) {
    case kCompare: return compare(b, i, x[0], x[1]);
    case kComplex: return {i.shape.type, x[0].v, x[1].v};
    case kSelect: return select(b, x[0].v, x[1], x[2]);
    case kClamp: {
      Value low = binary(b, o, kMaximum, x[0], x[1]);
      return binary(b, o, kMinimum, low, x[2]);
    }
    case kConvert: return convert(b, o, x[0], i.shape.type);
    case kBitcastConvert: return bitcast_convert(b, i, x[0]);
    case kReducePrecision: return reduce_precision(b, i, x[0]);
    default: break;
  }
  if (x.size() == 2) {
    r = binary(b, o, i.opcode, x[0], x[1]);
    if (r) r = round_to_type(b, r);
  } else if (x.size() == 1) {
    if (is_float(x[0].type)) r = float_unary(b, o, i.opcode, x[0]);
    else if (is_complex(x[0].type)) r = complex_unary(b, o, i.opcode, x[0]);
    else if (is_pred(x[0].type)) r = pred_unary(b, i.opcode, x[0]);
    else r = integer_unary(b, i.opcode, x[0]);
  }
  if (!r) unsupported(i);
  return r;
}

}  // namespace hlojit::codegen

namespace hlojit::codegen::ir {

llvm::Value* cold_lanes(std::span<llvm::Value* const> arguments, llvm::Value* ok, llvm::Value* fast,
                        const char* function) {
  llvm::IRBuilder<>& b = ir::b();
  auto& context = b.getContext();
  llvm::Function* f = b.GetInsertBlock()->getParent();
  llvm::Type* type = fast->getType();
  llvm::Type* scalar = type->getScalarType();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  std::vector<llvm::Type*> types(arguments.size(), scalar);
  llvm::FunctionCallee callee =
      f->getParent()->getOrInsertFunction(function, llvm::FunctionType::get(scalar, types, false));
  // Without these a call would pin every load around it.
  if (auto* declared = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    declared->setDoesNotAccessMemory();
    declared->setDoesNotThrow();
    declared->addFnAttr(llvm::Attribute::WillReturn);
  }
  llvm::Value* all = vector ? b.CreateAndReduce(ok) : ok;
  llvm::BasicBlock* head = b.GetInsertBlock();
  auto* cold = llvm::BasicBlock::Create(context, "cold", f);
  auto* join = llvm::BasicBlock::Create(context, "cold.join", f);
  auto weight = [&](uint32_t w) { return llvm::ConstantAsMetadata::get(b.getInt32(w)); };
  auto* weights = llvm::MDNode::get(context, {llvm::MDString::get(context, "branch_weights"), weight(1u << 20), weight(1)});
  b.CreateCondBr(all, join, cold, weights);
  b.SetInsertPoint(cold);
  llvm::Value* result = nullptr;
  llvm::BasicBlock* from = cold;
  if (!vector) {
    result = b.CreateCall(callee, std::vector<llvm::Value*>(arguments.begin(), arguments.end()));
  } else {
    // Lane by lane through memory: small code, and never hot.
    llvm::IRBuilder<> entry(&f->getEntryBlock(), f->getEntryBlock().getFirstInsertionPt());
    std::vector<llvm::Value*> slots;
    for (llvm::Value* a : arguments) {
      slots.push_back(entry.CreateAlloca(type, nullptr, "cold.slot"));
      b.CreateStore(a, slots.back());
    }
    auto* loop = llvm::BasicBlock::Create(context, "cold.lane", f);
    auto* done = llvm::BasicBlock::Create(context, "cold.done", f);
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    auto* lane = b.CreatePHI(b.getInt64Ty(), 2);
    lane->addIncoming(b.getInt64(0), cold);
    std::vector<llvm::Value*> scalars;
    for (llvm::Value* slot : slots) scalars.push_back(b.CreateLoad(scalar, b.CreateGEP(scalar, slot, lane)));
    b.CreateStore(b.CreateCall(callee, scalars), b.CreateGEP(scalar, slots[0], lane));
    llvm::Value* next = b.CreateAdd(lane, b.getInt64(1));
    lane->addIncoming(next, loop);
    b.CreateCondBr(b.CreateICmpEQ(next, b.getInt64(vector->getNumElements())), done, loop);
    b.SetInsertPoint(done);
    result = b.CreateSelect(ok, fast, b.CreateLoad(type, slots[0]));
    from = done;
  }
  b.CreateBr(join);
  b.SetInsertPoint(join);
  auto* phi = b.CreatePHI(type, 2);
  phi->addIncoming(fast, head);
  phi->addIncoming(result, from);
  return phi;
}

}  // namespace hlojit::codegen::ir

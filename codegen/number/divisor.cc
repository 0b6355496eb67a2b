// See divisor.h. `high` is the reciprocal rounded towards zero, so that `low`, what it lacks, has the same sign: an
// infinite x gives no infinity less another. Divisors whose reciprocals are subnormal or infinite are scaled before, by
// powers of two, and what is divided by them likewise: where that overflows or loses bits the quotient does.
#include "codegen/number/divisor.h"

#include <algorithm>

#include "codegen/number/elementwise.h"

namespace hlojit::codegen {
namespace {

struct Scales {
  double huge, for_huge;   // above: times
  double least, for_less;  // below: times; all of these are subnormal
  double nothing;          // of a power of two, which changes no quotient, but is no zero
};
constexpr Scales kSingle = {0x1p64, 0x1p-60, 0x1p-126, 0x1p24, 0x1p-26};
constexpr Scales kDouble = {0x1p500, 0x1p-490, 0x1p-1022, 0x1p53, 0x1p-55};

const Scales& scales_of(DType type) { return type == DType::kF64 ? kDouble : kSingle; }

llvm::Type* bits_of(llvm::IRBuilderBase& b, const Value& x) {
  return x.v->getType()->getWithNewType(b.getIntNTy(x.v->getType()->getScalarSizeInBits()));
}

}  // namespace

Divisor divisor(llvm::IRBuilderBase& b, const Value& d) {
  const Scales& scales = scales_of(d.type);
  llvm::Type* type = d.v->getType();
  auto number = [&](double x) { return llvm::ConstantFP::get(type, x); };
  auto remainder = [&](llvm::Value* y, llvm::Value* s) {  // 1 - y * s, exactly
    return fma(b, {d.type, b.CreateFNeg(y)}, {d.type, s}, {d.type, number(1)}).v;
  };
  llvm::Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, d.v);
  llvm::Value* scale =
      b.CreateSelect(b.CreateFCmpOGT(size, number(scales.huge)), number(scales.for_huge),
                     b.CreateSelect(b.CreateFCmpOLT(size, number(scales.least)), number(scales.for_less), number(1)));
  llvm::Value* s = b.CreateFMul(d.v, scale);
  llvm::Value* nearest = b.CreateFDiv(number(1), s);
  if (d.type == DType::kBF16) return {{d.type, nearest}, {}, {d.type, scale}};
  llvm::Value* above = b.CreateFCmpOLT(remainder(nearest, s), number(0));
  llvm::Type* bits = bits_of(b, d);
  llvm::Value* lower = b.CreateSub(b.CreateBitCast(nearest, bits), b.CreateZExt(above, bits));
  llvm::Value* high = b.CreateBitCast(lower, type);
  llvm::Value* rest = remainder(high, s);
  llvm::Value* low = b.CreateSelect(b.CreateFCmpOEQ(rest, number(0)), b.CreateFMul(high, number(scales.nothing)),
                                    b.CreateFMul(rest, high));
  // By zero, an infinity or NaN, of which there is no remainder.
  low = b.CreateSelect(b.CreateFCmpUNO(rest, rest), high, low);
  return {{d.type, high}, {d.type, low}, {d.type, scale}};
}

Value quotient(llvm::IRBuilderBase& b, const Value& x, const Divisor& by) {
  const int lanes = std::max(lanes_of(x), lanes_of(by.high));
  auto wide = [&](const Value& v) { return splat(b, v, lanes); };
  const Value of{x.type, b.CreateFMul(wide(x).v, wide(by.scale).v)};
  if (!by.low) return {x.type, b.CreateFMul(of.v, wide(by.high).v)};
  const Value little{x.type, b.CreateFMul(of.v, wide(by.low).v)};
  return fma(b, of, wide(by.high), little);
}

}  // namespace hlojit::codegen

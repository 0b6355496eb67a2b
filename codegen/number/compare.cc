// compare: IEEE order (NaN is unordered), total order on the bits, integers, complex numbers.
#include <llvm/IR/IRBuilder.h>

#include "codegen/number/families.h"

namespace hlojit::codegen {
namespace {

using B = llvm::IRBuilderBase;

// IEEE order as integers: a negative float's magnitude bits are flipped. f16 and bf16 are ordered by their
// own bits, the formats below by the f32 they decode to, of which all NaNs of a sign are one.
llvm::Value* total_order_key(B& b, const Value& x) {
  llvm::Value* raw = is_half(x.type) ? to_storage(b, x) : x.v;
  unsigned n = raw->getType()->getScalarSizeInBits();
  llvm::Value* bits = b.CreateBitCast(raw, raw->getType()->getWithNewType(b.getIntNTy(n)));
  auto* mask = llvm::ConstantInt::get(bits->getType(), llvm::APInt::getSignedMaxValue(n));
  if (is_narrow_float(x.type) && !is_half(x.type)) {
    auto* nan = llvm::ConstantInt::get(bits->getType(), 0x7fc00000);
    llvm::Value* size = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b.CreateAnd(bits, mask), nan);
    bits = b.CreateOr(size, b.CreateAnd(bits, b.CreateNot(mask)));
  }
  llvm::Value* negative = b.CreateICmpSLT(bits, llvm::Constant::getNullValue(bits->getType()));
  return b.CreateSelect(negative, b.CreateXor(bits, mask), bits);
}

}  // namespace

Value compare(B& b, const Instruction& i, const Value& x, const Value& y) {
  using P = llvm::CmpInst::Predicate;
  int d = static_cast<int>(i.attrs.direction);
  static constexpr P kFloat[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OGE, P::FCMP_OGT, P::FCMP_OLE, P::FCMP_OLT};
  static constexpr P kSigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SGE, P::ICMP_SGT, P::ICMP_SLE, P::ICMP_SLT};
  static constexpr P kUnsigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_UGE, P::ICMP_UGT, P::ICMP_ULE, P::ICMP_ULT};
  auto made = [](llvm::Value* v) { return Value{DType::kPred, v}; };
  if (is_complex(x.type)) {
    switch (i.attrs.direction) {
      case Direction::kEq: return made(b.CreateAnd(b.CreateFCmpOEQ(x.v, y.v), b.CreateFCmpOEQ(x.imag, y.imag)));
      case Direction::kNe: return made(b.CreateOr(b.CreateFCmpUNE(x.v, y.v), b.CreateFCmpUNE(x.imag, y.imag)));
      default: return made(complex_order(b, kFloat[d], x, y));
    }
  }
  if (is_float(x.type)) {
    if (effective_compare_type(i) != CompareType::kTotalOrder) return made(b.CreateFCmp(kFloat[d], x.v, y.v));
    return made(b.CreateICmp(kSigned[d], total_order_key(b, x), total_order_key(b, y)));
  }
  return made(b.CreateICmp(is_signed(x.type) ? kSigned[d] : kUnsigned[d], x.v, y.v));
}

}  // namespace hlojit::codegen

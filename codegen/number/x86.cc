// Instructions of x86 that LLVM's IR cannot say otherwise. Each has a portable twin of the same bits in
// ir_number.h.
#include <algorithm>
#include <bit>

#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/number/ir_number.h"
#include "codegen/number/parts.h"

namespace hlojit::codegen::ir {
namespace {

llvm::Value* scale_register(llvm::Value* x, llvm::Value* n) {
  using namespace llvm::Intrinsic;
  auto* type = llvm::cast<llvm::FixedVectorType>(x->getType());
  bool wide = type->getElementType()->isDoubleTy();
  auto lanes = type->getNumElements();
  auto bits = type->getPrimitiveSizeInBits().getFixedValue();
  ID id = bits == 512   ? (wide ? x86_avx512_mask_scalef_pd_512 : x86_avx512_mask_scalef_ps_512)
          : bits == 256 ? (wide ? x86_avx512_mask_scalef_pd_256 : x86_avx512_mask_scalef_ps_256)
                        : (wide ? x86_avx512_mask_scalef_pd_128 : x86_avx512_mask_scalef_ps_128);
  constexpr int kCurrentRounding = 4;
  llvm::Value* all = llvm::ConstantInt::get(b().getIntNTy(std::max(8u, lanes)), -1, true);
  std::vector<llvm::Value*> arguments = {x, n, llvm::Constant::getNullValue(type), all};
  if (bits == 512) arguments.push_back(b().getInt32(kCurrentRounding));
  return b().CreateIntrinsic(id, {}, arguments);
}

}  // namespace

llvm::Value* scale_avx512(llvm::Value* x, llvm::Value* n) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  unsigned lanes = vector ? vector->getNumElements() : 1;
  unsigned bits = x->getType()->getScalarSizeInBits();
  unsigned step = std::clamp(std::bit_ceil(lanes), 128 / bits, 512 / bits);
  llvm::Value* const operands[] = {x, n};
  return in_parts(b(), operands, step,
                  [](std::span<llvm::Value* const> part) { return scale_register(part[0], part[1]); });
}

}  // namespace hlojit::codegen::ir

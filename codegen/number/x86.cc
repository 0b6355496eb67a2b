// Instructions of x86 that LLVM's IR cannot say otherwise. Each has a portable twin of the same bits in
// ir_number.h.
#include <algorithm>
#include <bit>

#include <llvm/Analysis/VectorUtils.h>

#include "codegen/number/ir_number.h"

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

// Lanes [from, from + count) of a vector or scalar; those it does not have are poison.
llvm::Value* part(llvm::Value* v, unsigned from, unsigned count) {
  if (!v->getType()->isVectorTy()) {
    auto* type = llvm::FixedVectorType::get(v->getType(), count);
    return b().CreateInsertElement(llvm::PoisonValue::get(type), v, uint64_t{0});
  }
  auto lanes = llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
  std::vector<int> mask;
  for (unsigned k = from; k < from + count; ++k) mask.push_back(k < lanes ? static_cast<int>(k) : -1);
  return b().CreateShuffleVector(v, mask);
}

}  // namespace

llvm::Value* scale_avx512(llvm::Value* x, llvm::Value* n) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  unsigned lanes = vector ? vector->getNumElements() : 1;
  unsigned bits = x->getType()->getScalarSizeInBits();
  unsigned step = std::clamp(std::bit_ceil(lanes), 128 / bits, 512 / bits);
  std::vector<llvm::Value*> parts;
  for (unsigned at = 0; at < lanes; at += step) {
    parts.push_back(scale_register(part(x, at, step), part(n, at, step)));
  }
  llvm::Value* whole = parts.size() == 1 ? parts[0] : llvm::concatenateVectors(b(), parts);
  if (!vector) return b().CreateExtractElement(whole, uint64_t{0});
  return whole->getType() == x->getType() ? whole : part(whole, 0, lanes);
}

}  // namespace hlojit::codegen::ir

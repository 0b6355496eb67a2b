// See memory.h.
#include "codegen/number/memory.h"

#include <llvm/IR/IRBuilder.h>

#include "codegen/number/parts.h"

namespace hlojit::codegen {
namespace {

// Which lanes are meant where not all are; else null.
llvm::Constant* mask_of(llvm::IRBuilderBase& b, llvm::Type* type, int lanes) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const int all = vector ? static_cast<int>(vector->getNumElements()) : 1;
  return lanes > 0 && lanes < all ? first_lanes(b, all, lanes) : nullptr;
}

}  // namespace

llvm::Instruction* load_first(llvm::IRBuilderBase& b, llvm::Type* type, llvm::Value* from, uint64_t align, int lanes) {
  if (llvm::Constant* mask = mask_of(b, type, lanes))
    return b.CreateMaskedLoad(type, from, llvm::Align(align), mask, llvm::Constant::getNullValue(type));
  return b.CreateAlignedLoad(type, from, llvm::Align(align));
}

llvm::Instruction* store_first(llvm::IRBuilderBase& b, llvm::Value* value, llvm::Value* to, uint64_t align, int lanes) {
  if (llvm::Constant* mask = mask_of(b, value->getType(), lanes))
    return b.CreateMaskedStore(value, to, llvm::Align(align), mask);
  return b.CreateAlignedStore(value, to, llvm::Align(align));
}

void prefetch(llvm::IRBuilderBase& b, llvm::Value* line, Cache cache, bool to_write) {
  constexpr uint32_t kData = 1;
  const uint32_t locality = cache == Cache::kFirst ? 3 : 2;
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                    {line, b.getInt32(to_write), b.getInt32(locality), b.getInt32(kData)});
}

}  // namespace hlojit::codegen

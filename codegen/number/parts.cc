// See parts.h.
#include "codegen/number/parts.h"

#include <vector>

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>

namespace hlojit::codegen {
namespace {

unsigned lane_count(const llvm::Value* x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector ? vector->getNumElements() : 1;
}

}  // namespace

llvm::Value* lanes_from(llvm::IRBuilderBase& b, llvm::Value* x, unsigned first, unsigned count) {
  const unsigned lanes = lane_count(x);
  if (first == 0 && count == lanes) return x;
  if (count == 1) return b.CreateExtractElement(x, uint64_t{first});
  if (!x->getType()->isVectorTy()) {
    auto* type = llvm::FixedVectorType::get(x->getType(), count);
    return b.CreateInsertElement(llvm::PoisonValue::get(type), x, uint64_t{0});
  }
  std::vector<int> mask;
  for (unsigned k = first; k < first + count; ++k) mask.push_back(k < lanes ? static_cast<int>(k) : -1);
  return b.CreateShuffleVector(x, mask);
}

llvm::Value* joined(llvm::IRBuilderBase& b, std::span<llvm::Value* const> parts) {
  return parts.size() == 1 ? parts[0] : llvm::concatenateVectors(b, {parts.data(), parts.size()});
}

llvm::Value* in_parts(llvm::IRBuilderBase& b, std::span<llvm::Value* const> operands, unsigned count,
                      const std::function<llvm::Value*(std::span<llvm::Value* const>)>& f) {
  const unsigned lanes = lane_count(operands[0]);
  std::vector<llvm::Value*> results;
  for (unsigned first = 0; first < lanes; first += count) {
    std::vector<llvm::Value*> part;
    for (llvm::Value* x : operands) part.push_back(lanes_from(b, x, first, count));
    results.push_back(f(part));
  }
  return lanes_from(b, joined(b, results), 0, lanes);
}

}  // namespace hlojit::codegen

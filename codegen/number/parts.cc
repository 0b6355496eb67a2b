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

llvm::Type* vector_of(llvm::Type* element, int64_t lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Value* lanes_from(llvm::IRBuilderBase& b, llvm::Value* x, unsigned first, unsigned count) {
  const unsigned lanes = lane_count(x);
  if (first == 0 && count == lanes) return x;
  if (count == 1) return b.CreateExtractElement(x, uint64_t{first});
  if (!x->getType()->isVectorTy()) {
    return b.CreateInsertElement(llvm::PoisonValue::get(vector_of(x->getType(), count)), x, uint64_t{0});
  }
  std::vector<int> mask;
  for (unsigned k = first; k < first + count; ++k) mask.push_back(k < lanes ? static_cast<int>(k) : -1);
  return b.CreateShuffleVector(x, mask);
}

llvm::Value* joined(llvm::IRBuilderBase& b, std::span<llvm::Value* const> parts) {
  return parts.size() == 1 ? parts[0] : llvm::concatenateVectors(b, {parts.data(), parts.size()});
}

llvm::Value* reversed(llvm::IRBuilderBase& b, llvm::Value* x) {
  std::vector<int> mask;
  for (int k = static_cast<int>(lane_count(x)) - 1; k >= 0; --k) mask.push_back(k);
  return b.CreateShuffleVector(x, mask);
}

// Eklundh: rows that are `per` apart stand side by side in a vector, the squares in it are transposed at once, by
// swapping halves of pairs: log2(per) rounds, two-input shuffles only.
std::vector<llvm::Value*> transposed(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows) {
  const size_t per = lane_count(rows[0]);
  std::vector<llvm::Value*> columns;
  for (size_t l = 0; l < per; ++l) {
    std::vector<llvm::Value*> beside;
    for (size_t r = l; r < rows.size(); r += per) beside.push_back(rows[r]);
    columns.push_back(joined(b, beside));
  }
  const auto n = static_cast<int>(rows.size());
  for (size_t half = per / 2; half >= 1; half /= 2) {
    std::vector<int> first, second;
    const int h = static_cast<int>(half);
    for (int j = 0; j < n; ++j) {
      first.push_back(j & h ? n + j - h : j);
      second.push_back(j & h ? n + j : j + h);
    }
    for (size_t i = 0; i < per; ++i) {
      if (i & half) continue;
      llvm::Value *&low = columns[i], *&high = columns[i + half];
      llvm::Value* x = b.CreateShuffleVector(low, high, first);
      high = b.CreateShuffleVector(low, high, second);
      low = x;
    }
  }
  return columns;
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

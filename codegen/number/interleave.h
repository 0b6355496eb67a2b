// Elements that alternate in memory, as the parts of points and the channels of pixels do: every few of them picked out
// of vectors, and vectors of each kind put in turn again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// Memory in vectors of n elements; `starts`: which element each begins with.
struct MemoryVectors {
  std::vector<llvm::Value*> vectors;
  std::vector<int64_t> starts;
  int64_t n;

  int64_t vector_of(int64_t element) const { return element / n; }
  int64_t place_of(int64_t element) const { return element - starts[static_cast<size_t>(vector_of(element))]; }
};

/// The elements `wanted`, which lie `step` apart, no more than a vector has. `permutes_two`: the machine has
/// permutations that take two vectors.
llvm::Value* every_few(llvm::IRBuilderBase& b, const MemoryVectors& run, const std::vector<int64_t>& wanted,
                       int64_t step, bool permutes_two);

/// Any elements, no more than a vector has: those of each vector put beside those of the vectors before it.
llvm::Value* from_each(llvm::IRBuilderBase& b, const MemoryVectors& run, const std::vector<int64_t>& wanted);

/// The elements of rows in turn, from the first vector of the result on; as many vectors as there are rows, which may
/// be joined to wider ones.
std::vector<llvm::Value*> interleaved(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows, bool permutes_two);

}  // namespace hlojit::codegen

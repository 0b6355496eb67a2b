// See long_blocks.h. LLVM selects and schedules the instructions of a block together, and some of what it does to one
// looks at all others: a block of 66,000, twelve levels of products of f4e2m1fn and paddings, took minutes with AVX2, 6
// s in pieces.
#include "codegen/long_blocks.h"

#include <algorithm>
#include <iterator>

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Pass.h>

namespace hlojit::codegen {
namespace {

// Instructions. The longest block of the benchmarks' kernels has 650; pieces of 500 to 4,000 took the same time.
constexpr size_t kMost = 1000;

class LongBlocks final : public llvm::FunctionPass {
 public:
  LongBlocks() : FunctionPass(kId) {}
  llvm::StringRef getPassName() const override { return "Cut long blocks"; }

  bool runOnFunction(llvm::Function& function) override {
    bool changed = false;
    for (llvm::BasicBlock& block : llvm::make_early_inc_range(function)) changed |= cut(block);
    return changed;
  }

 private:
  static inline char kId = 0;

  // Phis and stack slots stay in the block that they are of.
  static bool stays(const llvm::Instruction& i) { return llvm::isa<llvm::PHINode, llvm::AllocaInst>(i); }

  static bool cut(llvm::BasicBlock& block) {
    const size_t size = block.size();
    if (size <= kMost) return false;
    const auto middle = std::next(block.begin(), static_cast<std::ptrdiff_t>(size / 2));
    auto at = block.end();
    while (at != middle && !stays(*std::prev(at))) --at;
    if (at == block.end() || at->isTerminator()) return false;
    llvm::BasicBlock& rest = *block.splitBasicBlock(at);
    cut(block);
    cut(rest);
    return true;
  }
};

}  // namespace

llvm::FunctionPass* cut_long_blocks() { return new LongBlocks; }

}  // namespace hlojit::codegen

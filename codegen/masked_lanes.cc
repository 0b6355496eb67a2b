// See masked_lanes.h. While instructions are selected, lanes of x that x & mask does not need are taken out of x; then,
// all that some reader takes of the masked value being such lanes, x is said to be the masked value, undefined as it is
// there now, and a store of it is left out: the zeros of s64[78,3] & (n / 13 % 3), which three rows are interleaved
// into. A frozen value keeps its lanes.
#include "codegen/masked_lanes.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Pass.h>

namespace hlojit::codegen {
namespace {

bool masks_some_lanes(const llvm::Value* mask) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(mask->getType());
  const auto* lanes = llvm::dyn_cast<llvm::Constant>(mask);
  if (!type || !lanes || lanes->isNullValue()) return false;
  return llvm::any_of(llvm::seq(type->getNumElements()), [&](unsigned k) {
    const llvm::Constant* lane = lanes->getAggregateElement(k);
    return lane && lane->isNullValue();
  });
}

class MaskedLanes final : public llvm::FunctionPass {
 public:
  MaskedLanes() : FunctionPass(kId) {}
  llvm::StringRef getPassName() const override { return "Freeze masked lanes"; }

  bool runOnFunction(llvm::Function& function) override {
    bool changed = false;
    for (llvm::Instruction& i : llvm::instructions(function)) {
      if (i.getOpcode() != llvm::Instruction::And) continue;
      for (unsigned mask : {0U, 1U}) {
        if (!masks_some_lanes(i.getOperand(mask))) continue;
        llvm::Use& masked = i.getOperandUse(1 - mask);
        masked.set(new llvm::FreezeInst(masked.get(), "", i.getIterator()));
        changed = true;
      }
    }
    return changed;
  }

 private:
  static inline char kId = 0;
};

}  // namespace

llvm::FunctionPass* freeze_masked_lanes() { return new MaskedLanes; }

}  // namespace hlojit::codegen

// See branch.h.
#include "codegen/nest/branch.h"

namespace hlojit::codegen {

std::vector<llvm::Value*> branch(Scope& scope, llvm::Value* condition,
                                 const std::function<std::vector<llvm::Value*>()>& yes,
                                 const std::function<std::vector<llvm::Value*>()>& no) {
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Function* f = b.GetInsertBlock()->getParent();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, f); };
  llvm::BasicBlock *first = block("yes"), *second = block("no"), *join = block("join");
  b.CreateCondBr(condition, first, second);
  const Known before = scope;
  auto way = [&](llvm::BasicBlock*& from, const std::function<std::vector<llvm::Value*>()>& emit) {
    b.SetInsertPoint(from);
    std::vector<llvm::Value*> values = emit();
    static_cast<Known&>(scope) = before;
    from = b.GetInsertBlock();
    b.CreateBr(join);
    return values;
  };
  std::vector<llvm::Value*> left = way(first, yes), right = way(second, no), joined;
  b.SetInsertPoint(join);
  for (size_t k = 0; k < left.size(); ++k) {
    llvm::PHINode* phi = b.CreatePHI(left[k]->getType(), 2);
    phi->addIncoming(left[k], first);
    phi->addIncoming(right[k], second);
    joined.push_back(phi);
  }
  return joined;
}

}  // namespace hlojit::codegen

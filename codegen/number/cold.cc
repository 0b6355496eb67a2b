// Rare lanes: a branch, rarely taken, around scalar calls for the lanes that the fast path cannot do.
#include "codegen/number/ir_number.h"

namespace hlojit::codegen::ir {

llvm::Value* cold_lanes(std::span<llvm::Value* const> arguments, llvm::Value* ok, llvm::Value* fast,
                        const char* function) {
  llvm::IRBuilder<>& b = ir::b();
  auto& context = b.getContext();
  llvm::Function* f = b.GetInsertBlock()->getParent();
  llvm::Type* type = fast->getType();
  llvm::Type* scalar = type->getScalarType();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  std::vector<llvm::Type*> types(arguments.size(), scalar);
  llvm::FunctionCallee callee =
      f->getParent()->getOrInsertFunction(function, llvm::FunctionType::get(scalar, types, false));
  // Without these a call would pin every load around it.
  if (auto* declared = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    declared->setDoesNotAccessMemory();
    declared->setDoesNotThrow();
    declared->addFnAttr(llvm::Attribute::WillReturn);
  }
  llvm::Value* all = vector ? b.CreateAndReduce(ok) : ok;
  llvm::BasicBlock* head = b.GetInsertBlock();
  auto* cold = llvm::BasicBlock::Create(context, "cold", f);
  auto* join = llvm::BasicBlock::Create(context, "cold.join", f);
  auto weight = [&](uint32_t w) { return llvm::ConstantAsMetadata::get(b.getInt32(w)); };
  auto* weights =
      llvm::MDNode::get(context, {llvm::MDString::get(context, "branch_weights"), weight(1u << 20), weight(1)});
  b.CreateCondBr(all, join, cold, weights);
  b.SetInsertPoint(cold);
  llvm::Value* result = nullptr;
  llvm::BasicBlock* from = cold;
  if (!vector) {
    result = b.CreateCall(callee, std::vector<llvm::Value*>(arguments.begin(), arguments.end()));
  } else {
    // Lane by lane through memory: small code, and never hot.
    llvm::IRBuilder<> entry(&f->getEntryBlock(), f->getEntryBlock().getFirstInsertionPt());
    std::vector<llvm::Value*> slots;
    for (llvm::Value* a : arguments) {
      slots.push_back(entry.CreateAlloca(type, nullptr, "cold.slot"));
      b.CreateStore(a, slots.back());
    }
    auto* loop = llvm::BasicBlock::Create(context, "cold.lane", f);
    auto* done = llvm::BasicBlock::Create(context, "cold.done", f);
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    auto* lane = b.CreatePHI(b.getInt64Ty(), 2);
    lane->addIncoming(b.getInt64(0), cold);
    std::vector<llvm::Value*> scalars;
    for (llvm::Value* slot : slots) scalars.push_back(b.CreateLoad(scalar, b.CreateGEP(scalar, slot, lane)));
    b.CreateStore(b.CreateCall(callee, scalars), b.CreateGEP(scalar, slots[0], lane));
    llvm::Value* next = b.CreateAdd(lane, b.getInt64(1));
    lane->addIncoming(next, loop);
    b.CreateCondBr(b.CreateICmpEQ(next, b.getInt64(vector->getNumElements())), done, loop);
    b.SetInsertPoint(done);
    result = b.CreateSelect(ok, fast, b.CreateLoad(type, slots[0]));
    from = done;
  }
  b.CreateBr(join);
  b.SetInsertPoint(join);
  auto* phi = b.CreatePHI(type, 2);
  phi->addIncoming(fast, head);
  phi->addIncoming(result, from);
  return phi;
}

}  // namespace hlojit::codegen::ir

// Rare lanes: a branch, rarely taken, around scalar calls for the lanes that the fast path cannot do.
#include "codegen/number/ir_number.h"

namespace hlojit::codegen::ir {

namespace {

using Values = std::span<llvm::Value* const>;

// Without these attributes a call would pin every load around it.
llvm::FunctionCallee pure_function(const char* name, llvm::Type* scalar, size_t arguments) {
  std::vector<llvm::Type*> types(arguments, scalar);
  llvm::Module* module = ir::b().GetInsertBlock()->getModule();
  llvm::FunctionCallee callee = module->getOrInsertFunction(name, llvm::FunctionType::get(scalar, types, false));
  if (auto* declared = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    declared->setDoesNotAccessMemory();
    declared->setDoesNotThrow();
    declared->addFnAttr(llvm::Attribute::WillReturn);
  }
  return callee;
}

llvm::MDNode* rarely_second(llvm::IRBuilder<>& b) {
  auto weight = [&](uint32_t w) { return llvm::ConstantAsMetadata::get(b.getInt32(w)); };
  auto* name = llvm::MDString::get(b.getContext(), "branch_weights");
  return llvm::MDNode::get(b.getContext(), {name, weight(1u << 20), weight(1)});
}

// Lane by lane through memory: small code, and never hot. Ends in another block than it begins in.
llvm::Value* by_lanes(llvm::FunctionCallee callee, Values arguments, llvm::FixedVectorType* vector) {
  llvm::IRBuilder<>& b = ir::b();
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* f = before->getParent();
  llvm::Type* scalar = vector->getElementType();
  llvm::IRBuilder<> entry(&f->getEntryBlock(), f->getEntryBlock().getFirstInsertionPt());
  std::vector<llvm::Value*> slots;
  for (llvm::Value* a : arguments) {
    slots.push_back(entry.CreateAlloca(vector, nullptr, "cold.slot"));
    b.CreateStore(a, slots.back());
  }
  auto* loop = llvm::BasicBlock::Create(b.getContext(), "cold.lane", f);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "cold.done", f);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  auto* lane = b.CreatePHI(b.getInt64Ty(), 2);
  lane->addIncoming(b.getInt64(0), before);
  std::vector<llvm::Value*> scalars;
  for (llvm::Value* slot : slots) scalars.push_back(b.CreateLoad(scalar, b.CreateGEP(scalar, slot, lane)));
  b.CreateStore(b.CreateCall(callee, scalars), b.CreateGEP(scalar, slots[0], lane));
  llvm::Value* next = b.CreateAdd(lane, b.getInt64(1));
  lane->addIncoming(next, loop);
  b.CreateCondBr(b.CreateICmpEQ(next, b.getInt64(vector->getNumElements())), done, loop);
  b.SetInsertPoint(done);
  return b.CreateLoad(vector, slots[0]);
}

}  // namespace

llvm::Value* cold_lanes(Values arguments, llvm::Value* ok, llvm::Value* fast, const char* function) {
  llvm::IRBuilder<>& b = ir::b();
  llvm::Type* type = fast->getType();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  llvm::FunctionCallee callee = pure_function(function, type->getScalarType(), arguments.size());
  llvm::Value* all = vector ? b.CreateAndReduce(ok) : ok;
  llvm::BasicBlock* head = b.GetInsertBlock();
  auto* cold = llvm::BasicBlock::Create(b.getContext(), "cold", head->getParent());
  auto* join = llvm::BasicBlock::Create(b.getContext(), "cold.join", head->getParent());
  b.CreateCondBr(all, join, cold, rarely_second(b));
  b.SetInsertPoint(cold);
  llvm::Value* result = vector ? b.CreateSelect(ok, fast, by_lanes(callee, arguments, vector))
                               : b.CreateCall(callee, std::vector<llvm::Value*>(arguments.begin(), arguments.end()));
  llvm::BasicBlock* from = b.GetInsertBlock();
  b.CreateBr(join);
  b.SetInsertPoint(join);
  auto* phi = b.CreatePHI(type, 2);
  phi->addIncoming(fast, head);
  phi->addIncoming(result, from);
  return phi;
}

}  // namespace hlojit::codegen::ir

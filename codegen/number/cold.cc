// Rare lanes: a branch, rarely taken, around a call for the lanes that the fast path cannot do.
#include "codegen/number/ir_number.h"

namespace hlojit::codegen::ir {

namespace {

using Values = std::span<llvm::Value* const>;

// Without these attributes a call would pin every load around it.
llvm::FunctionCallee function(const std::string& name, llvm::FunctionType* type, llvm::MemoryEffects effects) {
  llvm::Module* module = ir::b().GetInsertBlock()->getModule();
  llvm::FunctionCallee callee = module->getOrInsertFunction(name, type);
  if (auto* declared = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    declared->setMemoryEffects(effects);
    declared->setDoesNotThrow();
    declared->addFnAttr(llvm::Attribute::WillReturn);
    for (llvm::Argument& a : declared->args()) {
      if (a.getType()->isPointerTy()) a.addAttr(llvm::Attribute::NoCapture);
    }
  }
  return callee;
}

llvm::MDNode* rarely_second(llvm::IRBuilder<>& b) {
  auto weight = [&](uint32_t w) { return llvm::ConstantAsMetadata::get(b.getInt32(w)); };
  auto* name = llvm::MDString::get(b.getContext(), "branch_weights");
  return llvm::MDNode::get(b.getContext(), {name, weight(1u << 20), weight(1)});
}

llvm::Value* scalar_call(const char* name, Values arguments) {
  const std::vector<llvm::Value*> values(arguments.begin(), arguments.end());
  llvm::Type* type = values[0]->getType();
  const std::vector<llvm::Type*> types(values.size(), type);
  return ir::b().CreateCall(function(name, llvm::FunctionType::get(type, types, false), llvm::MemoryEffects::none()),
                            values);
}

// All lanes through memory, in one call.
llvm::Value* lanes_call(const char* name, Values arguments, llvm::FixedVectorType* vector) {
  llvm::IRBuilder<>& b = ir::b();
  llvm::BasicBlock& first = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> entry(&first, first.getFirstInsertionPt());
  std::vector<llvm::Value*> values;
  std::vector<llvm::Type*> types;
  for (llvm::Value* a : arguments) {
    values.push_back(entry.CreateAlloca(vector, nullptr, "cold.slot"));
    types.push_back(values.back()->getType());
    b.CreateStore(a, values.back());
  }
  values.push_back(b.getInt64(vector->getNumElements()));
  types.push_back(b.getInt64Ty());
  auto* type = llvm::FunctionType::get(b.getVoidTy(), types, false);
  b.CreateCall(function(std::string(name) + "_lanes", type, llvm::MemoryEffects::argMemOnly()), values);
  return b.CreateLoad(vector, values[0]);
}

}  // namespace

llvm::Value* cold_lanes(Values arguments, llvm::Value* ok, llvm::Value* fast, const char* name) {
  llvm::IRBuilder<>& b = ir::b();
  llvm::Type* type = fast->getType();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  llvm::Value* all = vector ? b.CreateAndReduce(ok) : ok;
  llvm::BasicBlock* head = b.GetInsertBlock();
  auto* cold = llvm::BasicBlock::Create(b.getContext(), "cold", head->getParent());
  auto* join = llvm::BasicBlock::Create(b.getContext(), "cold.join", head->getParent());
  b.CreateCondBr(all, join, cold, rarely_second(b));
  b.SetInsertPoint(cold);
  llvm::Value* result =
      vector ? b.CreateSelect(ok, fast, lanes_call(name, arguments, vector)) : scalar_call(name, arguments);
  b.CreateBr(join);
  b.SetInsertPoint(join);
  auto* phi = b.CreatePHI(type, 2);
  phi->addIncoming(fast, head);
  phi->addIncoming(result, cold);
  return phi;
}

}  // namespace hlojit::codegen::ir

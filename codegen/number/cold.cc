// Rare lanes: a branch, rarely taken, around a call for the lanes that the fast path cannot do.
#include "codegen/number/ir_number.h"

namespace hlojit::codegen::ir {

namespace {

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

// All lanes through memory, in one call, which leaves its results in place of the first of `arguments`.
std::vector<llvm::Value*> lanes_call(const std::string& name, Values arguments, size_t results) {
  llvm::IRBuilder<>& b = ir::b();
  llvm::BasicBlock& first = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> entry(&first, first.getFirstInsertionPt());
  llvm::Type* lanes = arguments[0]->getType();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(lanes);
  std::vector<llvm::Value*> values;
  std::vector<llvm::Type*> types;
  for (llvm::Value* a : arguments) {
    values.push_back(entry.CreateAlloca(lanes, nullptr, "cold.slot"));
    types.push_back(values.back()->getType());
    b.CreateStore(a, values.back());
  }
  values.push_back(b.getInt64(vector ? vector->getNumElements() : 1));
  types.push_back(b.getInt64Ty());
  auto* type = llvm::FunctionType::get(b.getVoidTy(), types, false);
  b.CreateCall(function(name, type, llvm::MemoryEffects::argMemOnly()), values);
  values.resize(results);
  for (llvm::Value*& v : values) v = b.CreateLoad(lanes, v);
  return values;
}

// Where a lane is not ok, `made` gives what each of `fast` becomes in those lanes.
template <class Made>
void in_cold_block(llvm::Value* ok, std::span<llvm::Value*> fast, Made made) {
  llvm::IRBuilder<>& b = ir::b();
  const bool vector = ok->getType()->isVectorTy();
  llvm::Value* all = vector ? b.CreateAndReduce(ok) : ok;
  llvm::BasicBlock* head = b.GetInsertBlock();
  auto* cold = llvm::BasicBlock::Create(b.getContext(), "cold", head->getParent());
  auto* join = llvm::BasicBlock::Create(b.getContext(), "cold.join", head->getParent());
  b.CreateCondBr(all, join, cold, rarely_second(b));
  b.SetInsertPoint(cold);
  std::vector<llvm::Value*> results = made();
  for (size_t k = 0; vector && k < fast.size(); ++k) results[k] = b.CreateSelect(ok, fast[k], results[k]);
  b.CreateBr(join);
  b.SetInsertPoint(join);
  for (size_t k = 0; k < fast.size(); ++k) {
    auto* phi = b.CreatePHI(fast[k]->getType(), 2);
    phi->addIncoming(fast[k], head);
    phi->addIncoming(results[k], cold);
    fast[k] = phi;
  }
}

}  // namespace

llvm::Value* cold_lanes(Values arguments, llvm::Value* ok, llvm::Value* fast, const char* name) {
  using Results = std::vector<llvm::Value*>;
  in_cold_block(ok, {&fast, 1}, [&] {
    return fast->getType()->isVectorTy() ? lanes_call(std::string(name) + "_lanes", arguments, 1)
                                         : Results{scalar_call(name, arguments)};
  });
  return fast;
}

void cold_parts(Values arguments, llvm::Value* ok, std::span<llvm::Value*> fast, const char* name) {
  in_cold_block(ok, fast, [&] { return lanes_call(name, arguments, fast.size()); });
}

}  // namespace hlojit::codegen::ir

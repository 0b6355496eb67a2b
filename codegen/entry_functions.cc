// See entry_functions.h.
#include "codegen/entry_functions.h"

#include <utility>

#include <llvm/IR/Module.h>

#include "codegen/kernel_abi.h"

namespace hlojit::codegen {

EntryFunctions::EntryFunctions(llvm::Module& ir) : ir_(ir), context_(ir.getContext()), b_(context_) {}

llvm::Function* EntryFunctions::function(const std::string& name, const std::function<void()>& write) {
  auto* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), std::vector<llvm::Type*>(6, pointer), false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, ir_);
  Frame frame;
  frame.function = f;
  std::swap(frame_, frame);
  auto caller = b_.saveIP();
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "start", f));
  write();
  b_.CreateRet(b_.getInt32(abi::kOk));
  b_.restoreIP(caller);
  frame_ = frame;
  return f;
}

void EntryFunctions::call(llvm::Function* function) {
  check(b_.CreateCall(
      function, {frame_.call(), frame_.params(), frame_.results(), frame_.arena(), frame_.tables(), frame_.scratch()}));
}

llvm::StructType* EntryFunctions::part_type() {
  return llvm::StructType::get(context_, {b_.getPtrTy(), b_.getInt64Ty()});
}

llvm::Function* EntryFunctions::run_part() {
  constexpr const char* kName = "run_part";
  if (llvm::Function* known = ir_.getFunction(kName)) return known;
  llvm::Type *pointer = b_.getPtrTy(), *i64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, i64, pointer}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, kName, ir_);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context_, "start", f));
  llvm::StructType* part = part_type();
  llvm::Value* own = b.CreateInBoundsGEP(part, f->getArg(1), f->getArg(2));
  llvm::Value* kernel = b.CreateLoad(pointer, b.CreateStructGEP(part, own, 0));
  llvm::Value* chunk = b.CreateLoad(i64, b.CreateStructGEP(part, own, 1));
  auto* null = llvm::ConstantPointerNull::get(b_.getPtrTy());
  b.CreateRet(b.CreateCall(type, kernel, {f->getArg(0), null, chunk, f->getArg(3)}));
  return f;
}

void EntryFunctions::check(llvm::Value* status) {
  if (!frame_.failed) {
    frame_.failed = llvm::BasicBlock::Create(context_, "failed", frame_.function);
    llvm::IRBuilder<> cold(frame_.failed);
    frame_.status = cold.CreatePHI(cold.getInt32Ty(), 4, "status");
    cold.CreateRet(frame_.status);
  }
  auto* next = llvm::BasicBlock::Create(context_, "next", frame_.function);
  frame_.status->addIncoming(status, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpEQ(status, b_.getInt32(abi::kOk)), next, frame_.failed);
  b_.SetInsertPoint(next);
}

llvm::Value* EntryFunctions::bytes_at(llvm::Value* base, int64_t offset) {
  return offset == 0 ? base : b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, static_cast<uint64_t>(offset));
}

llvm::Value* EntryFunctions::pointer(const BufferSlice& slice) {
  if (!frame_.loop) return in_memory(slice);
  for (size_t k = 0; k < frame_.slots.size(); ++k) {
    const BufferSlice& s = frame_.loop->slots[k];
    bool inside =
        s.kind == slice.kind && s.index == slice.index && s.offset <= slice.offset && slice.offset < s.offset + s.size;
    if (inside) return bytes_at(frame_.slots[k], slice.offset - s.offset);
  }
  // Where arrays lie is known before the loop.
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(frame_.function->getEntryBlock().getTerminator());
  return in_memory(slice);
}

llvm::Value* EntryFunctions::in_memory(const BufferSlice& slice) {
  auto* type = b_.getPtrTy();
  switch (slice.kind) {
    case BufferSlice::Kind::kParameter:
    case BufferSlice::Kind::kResult: {
      llvm::Value* all = slice.kind == BufferSlice::Kind::kParameter ? frame_.params() : frame_.results();
      return b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(type, all, static_cast<uint64_t>(slice.index)));
    }
    case BufferSlice::Kind::kArena: return bytes_at(frame_.arena(), slice.offset);
    case BufferSlice::Kind::kConstant: return bytes_at(b_.CreateLoad(type, frame_.call(), "constants"), slice.offset);
  }
  return nullptr;
}

void EntryFunctions::copy_bytes(llvm::Value* from, llvm::Value* to, int64_t size) {
  b_.CreateMemCpy(to, llvm::MaybeAlign(1), from, llvm::MaybeAlign(1), static_cast<uint64_t>(size));
}

void EntryFunctions::load_slots() {
  for (const BufferSlice& s : frame_.loop->slots) {
    auto* slot = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(s.size)));
    slot->setAlignment(llvm::Align(32));  // none lies across cache lines
    copy_bytes(in_memory(s), slot, s.size);
    frame_.slots.push_back(slot);
  }
}

void EntryFunctions::store_slots() {
  for (size_t k = 0; k < frame_.slots.size(); ++k) {
    const BufferSlice& s = frame_.loop->slots[k];
    bool written = s.kind == BufferSlice::Kind::kArena || s.kind == BufferSlice::Kind::kResult;
    if (written) copy_bytes(frame_.slots[k], in_memory(s), s.size);
  }
}

}  // namespace hlojit::codegen

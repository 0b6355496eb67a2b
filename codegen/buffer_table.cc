// Arena and constants are the third array of pointers, so that all slots are of one kind and the loop has no
// branch: two loads, an addition and a store a slot.
#include "codegen/buffer_table.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Module.h>

namespace hlojit::codegen {

BufferTable::Slot BufferTable::slot_of(const BufferSlice& slice) {
  switch (slice.kind) {
    case BufferSlice::Kind::kParameter: return {0, slice.index, 0};
    case BufferSlice::Kind::kResult: return {1, slice.index, 0};
    case BufferSlice::Kind::kArena: return {2, 0, slice.offset};
    case BufferSlice::Kind::kConstant: return {2, 1, slice.offset};
  }
  return {};
}

int64_t BufferTable::list(std::span<const BufferSlice> slices) {
  std::vector<Slot> slots;
  for (const BufferSlice& s : slices) slots.push_back(slot_of(s));
  auto [known, fresh] = lists_.try_emplace(slots, bytes());
  if (fresh) slots_.insert(slots_.end(), slots.begin(), slots.end());
  return known->second;
}

void BufferTable::fill(llvm::IRBuilder<>& b, llvm::Value* table, llvm::Value* parameters, llvm::Value* results,
                       llvm::Value* arena, llvm::Value* constants) const {
  if (slots_.empty()) return;
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto& context = b.getContext();
  auto* pointer = b.getPtrTy();
  auto* i64 = b.getInt64Ty();
  auto array = [&](uint64_t size, std::initializer_list<llvm::Value*> values) {
    llvm::Value* all = b.CreateAlloca(pointer, b.getInt64(size));
    uint64_t k = 0;
    for (llvm::Value* v : values) b.CreateStore(v, b.CreateConstInBoundsGEP1_64(pointer, all, k++));
    return all;
  };
  llvm::Value* blocks = array(2, {arena, constants});
  llvm::Value* bases = array(3, {parameters, results, blocks});

  std::vector<uint64_t> numbers;
  for (const Slot& s : slots_) {
    for (int64_t n : {s.base, s.index, s.offset}) numbers.push_back(static_cast<uint64_t>(n));
  }
  auto* data = llvm::ConstantDataArray::get(context, numbers);
  auto* list = new llvm::GlobalVariable(*function->getParent(), data->getType(), true,
                                        llvm::GlobalValue::PrivateLinkage, data, "buffer_slots");
  auto* from = b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(context, "fill", function);
  auto* filled = llvm::BasicBlock::Create(context, "filled", function);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  auto* n = b.CreatePHI(i64, 2, "slot");
  n->addIncoming(b.getInt64(0), from);
  llvm::Value* slot = b.CreateInBoundsGEP(i64, list, b.CreateMul(n, b.getInt64(3)));
  auto number = [&](uint64_t k) { return b.CreateLoad(i64, b.CreateConstInBoundsGEP1_64(i64, slot, k)); };
  llvm::Value* base = b.CreateLoad(pointer, b.CreateInBoundsGEP(pointer, bases, number(0)));
  llvm::Value* block = b.CreateLoad(pointer, b.CreateInBoundsGEP(pointer, base, number(1)));
  b.CreateStore(b.CreateInBoundsGEP(b.getInt8Ty(), block, number(2)), b.CreateInBoundsGEP(pointer, table, n));
  auto* next = b.CreateAdd(n, b.getInt64(1));
  n->addIncoming(next, loop);
  b.CreateCondBr(b.CreateICmpEQ(next, b.getInt64(slots_.size())), filled, loop);
  b.SetInsertPoint(filled);
}

}  // namespace hlojit::codegen

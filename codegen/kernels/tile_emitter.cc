// See tile_emitter.h.
#include "codegen/kernels/tile_emitter.h"

#include "codegen/number/elementwise.h"
#include "codegen/number/parts.h"

namespace hlojit::codegen {

TileEmitter::TileEmitter(llvm::Function* f, const MicroKernelShape& shape)
    : b(f->getContext()),
      scalar(storage_type(b, shape.type, 1)),
      vector(storage_type(b, shape.type, shape.lanes)),
      last_vector(storage_type(b, shape.type, shape.last_halved() ? shape.lanes / 2 : shape.lanes)),
      align(static_cast<uint64_t>(
          dtype_bytes(form_of(shape.multiply_add).terms > 1 ? form_of(shape.multiply_add).packed : shape.type))),
      f_(f),
      shape_(shape) {
  b.SetInsertPoint(block("entry"));
}

TileEmitter::Values TileEmitter::loop(const char* name, int64_t step, llvm::Value* end, const Values& values,
                                      const std::function<Values(llvm::Value*, const Values&)>& body) {
  llvm::BasicBlock *before = b.GetInsertBlock(), *head = block(name);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* count = b.CreatePHI(b.getInt64Ty(), 2);
  count->addIncoming(number(0), before);
  Values carried;
  for (llvm::Value* v : values) {
    llvm::PHINode* phi = b.CreatePHI(v->getType(), 2);
    phi->addIncoming(v, before);
    carried.push_back(phi);
  }
  const Values made = body(count, carried);
  llvm::BasicBlock *last = b.GetInsertBlock(), *after = block("after");
  llvm::Value* next = b.CreateAdd(count, number(step));
  count->addIncoming(next, last);
  for (size_t k = 0; k < made.size(); ++k) llvm::cast<llvm::PHINode>(carried[k])->addIncoming(made[k], last);
  b.CreateCondBr(b.CreateICmpULT(next, end), head, after);
  b.SetInsertPoint(after);
  return made;
}

TileEmitter::Values TileEmitter::under(llvm::Value* condition, const char* name, const Values& values,
                                       const std::function<Values(const Values&)>& body) {
  llvm::BasicBlock *before = b.GetInsertBlock(), *then = block(name), *after = block("after");
  b.CreateCondBr(condition, then, after);
  b.SetInsertPoint(then);
  const Values made = body(values);
  llvm::BasicBlock* last = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  Values joined;
  for (size_t k = 0; k < values.size(); ++k) {
    llvm::PHINode* phi = b.CreatePHI(values[k]->getType(), 2);
    phi->addIncoming(values[k], before);
    phi->addIncoming(made[k], last);
    joined.push_back(phi);
  }
  return joined;
}

llvm::Value* TileEmitter::load(llvm::Value* from, bool part) {
  return part ? load(last_vector, from, shape_.moves_back ? 0 : shape_.last_lanes) : load(vector, from, 0);
}

}  // namespace hlojit::codegen

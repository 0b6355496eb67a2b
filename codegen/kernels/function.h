// A kernel function under construction: its LLVM function, outermost scope, buffers and emitter.
#pragma once

#include <memory>
#include <string>

#include "codegen/kernels/kernel.h"

namespace hlojit::codegen {

class KernelBuilder {
 public:
  KernelBuilder(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan, const Surroundings& around,
                const EmitOptions& options, VarSource& vars, std::string_view suffix);

  /// Some result is written past the cache: nobody reads it before it would have left the last level.
  static bool streams(const Instruction& fusion, const KernelPlan& plan, const Surroundings& around,
                      const EmitOptions& options);

  llvm::Module& module() { return *function_->getParent(); }
  Scope& root() { return *root_; }
  ElementEmitter& emitter() { return *emitter_; }
  /// Buffer of result number k.
  const BufferRef& result(size_t k) const { return buffers_[operands_ + k]; }
  const BufferRef& operand(size_t k) const { return buffers_[k]; }
  /// Some result lies in the memory of something that is read.
  bool in_place() const { return in_place_; }
  llvm::Value* chunk() const;
  llvm::Value* scratch() const;
  /// Binds the first `count` loops of the piece to parts of the chunk number; a part beyond a clipped
  /// loop's trip count returns at once. Returns the number of chunks.
  int64_t bind_chunks(const LoopPiece& piece, size_t count);
  /// Ends the function: `return 0`.
  llvm::Function* finish();

 private:
  llvm::Function* function_;
  llvm::BasicBlock* done_;
  std::unique_ptr<Scope> root_;
  std::unique_ptr<ElementEmitter> emitter_;
  std::vector<BufferRef> buffers_;
  size_t operands_ = 0;
  bool streams_ = false, in_place_ = false;
};

}  // namespace hlojit::codegen

// The functions that entry is made of: one signature, one way out, and where each array lies for them.
//
//   status NAME(Context*, params, results, arena, tables, scratch)
//
// `tables` are the lists of buffers that kernels are called with (buffer_table.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "codegen/loop_state.h"
#include "compiler/plan/buffers.h"

namespace hlojit::codegen {

class EntryFunctions {
 protected:
  explicit EntryFunctions(llvm::Module& ir);

  /// The function being written.
  struct Frame {
    llvm::Function* function = nullptr;
    llvm::BasicBlock* failed = nullptr;
    llvm::PHINode* status = nullptr;
    const LoopState* loop = nullptr;    ///< of a loop function
    std::vector<llvm::Value*> slots{};  ///< its slots
    llvm::Value* call() const { return function->getArg(0); }
    llvm::Value* params() const { return function->getArg(1); }
    llvm::Value* results() const { return function->getArg(2); }
    llvm::Value* arena() const { return function->getArg(3); }
    llvm::Value* tables() const { return function->getArg(4); }
    llvm::Value* scratch() const { return function->getArg(5); }
  };

  /// A function of what `write` emits; the one being written goes on afterwards.
  llvm::Function* function(const std::string& name, const std::function<void()>& write);
  /// Calls one with what this one was given.
  void call(llvm::Function* function);
  /// A chunk of a kernel as an element of a table: the function, its chunk.
  llvm::StructType* part_type();
  /// A kernel whose scalars are such a table: the chunk of another that stands at its number there.
  llvm::Function* run_part();
  /// Leaves the function through its one cold block unless `status` is kOk.
  void check(llvm::Value* status);

  llvm::Value* bytes_at(llvm::Value* base, int64_t offset);
  /// Where an array lies: in a slot of the loop's, or in memory.
  llvm::Value* pointer(const BufferSlice& slice);
  void copy_bytes(llvm::Value* from, llvm::Value* to, int64_t size);
  /// What stands in the loop's slots goes there, and back into memory.
  void load_slots();
  void store_slots();

  llvm::Module& ir_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  Frame frame_;

 private:
  llvm::Value* in_memory(const BufferSlice& slice);
};

}  // namespace hlojit::codegen

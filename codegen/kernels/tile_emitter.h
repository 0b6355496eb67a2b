// What the bodies of micro-kernels are written with: loops and branches whose values stay in registers, loads of whole
// vectors and of parts, prefetches.
#pragma once

#include <functional>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "codegen/kernels/micro_kernel.h"
#include "codegen/number/memory.h"

namespace hlojit::codegen {

class TileEmitter {
 public:
  using Values = std::vector<llvm::Value*>;

  /// `f`: empty; code is appended to its new entry block.
  TileEmitter(llvm::Function* f, const MicroKernelShape& shape);

  llvm::ConstantInt* number(int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }
  llvm::Value* argument(unsigned k) const { return f_->getArg(k); }
  /// Address of an element behind `base`: by number, or by a count made at run time.
  llvm::Value* at(llvm::Value* base, llvm::Value* element) { return b.CreateInBoundsGEP(scalar, base, element); }
  llvm::Value* at(llvm::Value* base, int64_t element) { return at(base, number(element)); }

  /// Counts from 0 to `end` by `step`, at least once. `body` gets the count and the values, and returns what they
  /// become; so does the loop.
  Values loop(const char* name, int64_t step, llvm::Value* end, const Values& values,
              const std::function<Values(llvm::Value*, const Values&)>& body);
  /// What `body` makes of the values where the condition holds, else the values.
  Values under(llvm::Value* condition, const char* name, const Values& values,
               const std::function<Values(const Values&)>& body);

  /// A vector; `part`: of its first shape.last_lanes elements, and zeros, and nothing behind them is read.
  llvm::Value* load(llvm::Value* from, bool part = false);
  /// Of a vector's first so many elements, and zeros; 0: of all.
  llvm::Value* load(llvm::Type* type, llvm::Value* from, int lanes) {
    return load_first(b, type, from, align.value(), lanes);
  }
  void store(llvm::Value* value, llvm::Value* to, int lanes = 0) { store_first(b, value, to, align.value(), lanes); }

  void prefetch(llvm::Value* line, Cache cache, bool to_write = false) { codegen::prefetch(b, line, cache, to_write); }

  llvm::IRBuilder<> b;
  llvm::Type *const scalar, *const vector, *const last_vector;  ///< the last of a row may be narrower
  const llvm::Align align;                                      ///< of all loads and stores: a term's

 private:
  llvm::BasicBlock* block(const char* label) { return llvm::BasicBlock::Create(f_->getContext(), label, f_); }

  llvm::Function* f_;
  const MicroKernelShape& shape_;
};

}  // namespace hlojit::codegen

// The scratch of a kernel: memory of a task of its own, handed out front to back while code is emitted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "codegen/kernels/function.h"
#include "compiler/plan/target_info.h"
#include "layout/divide.h"

namespace hlojit::codegen {

/// The values of a block of rows, one row after the other.
struct RowTile {
  llvm::Value* pointer = nullptr;
  int64_t stride = 0;  ///< elements from one row to the next
};

class Scratch {
 public:
  explicit Scratch(KernelBuilder& kernel) : kernel_(kernel) {}

  /// The next `bytes`, aligned to a cache line.
  llvm::Value* take(int64_t bytes) {
    llvm::IRBuilder<>& b = kernel_.root().builder;
    llvm::Value* at = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), kernel_.scratch(), static_cast<uint64_t>(used_));
    used_ += round_up(bytes, kCacheLine);
    most_ = std::max(most_, used_);
    return at;
  }
  /// What was taken since `mark` was asked for is free again.
  int64_t mark() const { return used_; }
  void release(int64_t mark) { used_ = mark; }
  /// Bytes a task needs.
  int64_t bytes() const { return most_; }

 private:
  KernelBuilder& kernel_;
  int64_t used_ = 0, most_ = 0;
};

}  // namespace hlojit::codegen

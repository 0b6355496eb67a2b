// The lists of buffers that kernels are called with, in one stretch of the arena.
//
// A kernel takes an array of pointers. Which pointer stands where is known when compiling, so it is data: a
// constant list of (base, index, offset), turned into pointers by one loop when entry begins. Code that stores
// them one by one would be most of a long entry, and lists on the stack need 4 MB for 100,000 kernels.
// Calls with equal lists share one.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "compiler/plan/buffers.h"

namespace hlojit::codegen {

class BufferTable {
 public:
  /// Byte offset, in the table, of the list of these buffers.
  int64_t list(std::span<const BufferSlice> slices);
  int64_t bytes() const { return static_cast<int64_t>(slots_.size()) * 8; }
  /// Appends the loop that fills the table at `table`. The bases: arrays of pointers, and two blocks of bytes.
  void fill(llvm::IRBuilder<>& b, llvm::Value* table, llvm::Value* parameters, llvm::Value* results, llvm::Value* arena,
            llvm::Value* constants) const;

 private:
  // The pointer is bases[base][index] + offset.
  struct Slot {
    int64_t base, index, offset;
    auto operator<=>(const Slot&) const = default;
  };
  static Slot slot_of(const BufferSlice& slice);

  std::vector<Slot> slots_;
  std::map<std::vector<Slot>, int64_t> lists_;
};

}  // namespace hlojit::codegen

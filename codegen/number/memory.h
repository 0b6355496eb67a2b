// Loads, stores and prefetches for which the builder has no one call.
#pragma once

#include <cstdint>

namespace llvm {
class IRBuilderBase;
class Instruction;
class Type;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// A vector's first so many lanes (0: all), others zero; nothing behind these is read. `align`: bytes.
llvm::Instruction* load_first(llvm::IRBuilderBase& b, llvm::Type* type, llvm::Value* from, uint64_t align, int lanes);
/// Stores no others.
llvm::Instruction* store_first(llvm::IRBuilderBase& b, llvm::Value* value, llvm::Value* to, uint64_t align, int lanes);

/// Brings a line, which may lie behind all there is, into the cache of this level.
enum class Cache { kFirst, kSecond };
void prefetch(llvm::IRBuilderBase& b, llvm::Value* line, Cache cache, bool to_write = false);

}  // namespace hlojit::codegen

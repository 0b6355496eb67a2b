// The instructions of compiler/plan/multiply_add.h. Each has a portable twin of the same bits, which stands in for it
// where a plan for a machine that has it is run on another.
#pragma once

#include "codegen/target.h"
#include "compiler/plan/multiply_add.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// The machine has an instruction for it.
bool has_instruction(MultiplyAdd kind, const Target& target);

/// `sums` plus the products of x and y, vectors of as many lanes of the sums' width, which hold packed terms. By the
/// machine's instruction if it has one, unless only the twin is wanted.
llvm::Value* multiply_add(llvm::IRBuilderBase& b, MultiplyAdd kind, llvm::Value* x, llvm::Value* y, llvm::Value* sums,
                          const Target& target, bool twin = false);

}  // namespace hlojit::codegen

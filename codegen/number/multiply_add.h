// The instructions of compiler/plan/multiply_add.h. Each has a portable twin of the same bits, which stands in for it
// where a plan for a machine that has it is run on another.
#pragma once

#include <span>

#include "codegen/target.h"
#include "compiler/plan/multiply_add.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// The machine has an instruction for it.
bool has_instruction(MultiplyAdd kind, const Target& target);

/// The machine's instruction is also faster than products one by one.
bool has_fast_instruction(MultiplyAdd kind, const Target& target);

/// It multiplies words and adds their products up in one instruction (VNNI), on vectors of as many lanes.
bool adds_words_at_once(const Target& target, unsigned lanes);

/// `sums` plus the products of x and y, vectors of as many lanes of the sums' width, which hold packed terms. By the
/// machine's instruction if it has one, unless only the twin is wanted. Not of tiles.
llvm::Value* multiply_add(llvm::IRBuilderBase& b, MultiplyAdd kind, llvm::Value* x, llvm::Value* y, llvm::Value* sums,
                          const Target& target, bool twin = false);

/// What an instruction on tiles makes of one of its rows: `sums` plus the products of a step's groups of terms, of
/// which `x` are the row's, in all lanes, and `y` the columns'.
llvm::Value* tile_row_twin(llvm::IRBuilderBase& b, MultiplyAdd kind, std::span<llvm::Value* const> x,
                           std::span<llvm::Value* const> y, llvm::Value* sums);

}  // namespace hlojit::codegen

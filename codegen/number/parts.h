// Vectors wider than a machine's registers, which an instruction takes part by part.
#pragma once

#include <functional>
#include <span>

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// Lanes [first, first + count) of a vector or scalar; those that it does not have are poison. One lane is a scalar.
llvm::Value* lanes_from(llvm::IRBuilderBase& b, llvm::Value* x, unsigned first, unsigned count);

/// The lanes of vectors of one type, one vector after the other.
llvm::Value* joined(llvm::IRBuilderBase& b, std::span<llvm::Value* const> parts);

/// What `f` makes of `count` lanes of each operand at a time; as many lanes as the operands have.
llvm::Value* in_parts(llvm::IRBuilderBase& b, std::span<llvm::Value* const> operands, unsigned count,
                      const std::function<llvm::Value*(std::span<llvm::Value* const>)>& f);

}  // namespace hlojit::codegen

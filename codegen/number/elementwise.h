// What an elementwise op means, in vector IR: one function from operand values to the result value.
#pragma once

#include <span>

#include "codegen/number/codec.h"
#include "codegen/number/value.h"
#include "compiler/ir/module.h"

namespace hlojit::codegen {

/// Result of an elementwise instruction (opcode, attributes and result type are read from it).
/// Operands all have the same lane count. bitcast-convert between equal widths included.
Value elementwise(llvm::IRBuilderBase& b, const NumberOptions& options, const Instruction& instruction,
                  std::span<const Value> operands);
Value convert(llvm::IRBuilderBase& b, const NumberOptions& options, const Value& value, DType to);
/// x * y + z with one rounding; f32 and f64 only.
Value fma(llvm::IRBuilderBase& b, const Value& x, const Value& y, const Value& z);
/// x + y, x * y and the like without an instruction at hand; narrow floats come back unrounded.
Value binary(llvm::IRBuilderBase& b, const NumberOptions& options, Opcode opcode, const Value& x, const Value& y);
/// Bits of an element as bitcast-convert counts them: a pred has the 8 it is stored in.
unsigned bitcast_bits(DType type);
/// An integer index (i64 scalar or vector) as an element of `type`, as iota defines it.
Value from_index(llvm::IRBuilderBase& b, llvm::Value* index, DType type);

}  // namespace hlojit::codegen

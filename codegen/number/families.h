// The ops of each family of types, for elementwise.cc's dispatch alone. A null value says that the op has no
// meaning for the type. Results are not yet rounded to narrow types.
#pragma once

#include "codegen/number/elementwise.h"

namespace hlojit::codegen {

Value pred_unary(llvm::IRBuilderBase& b, Opcode op, const Value& x);
Value pred_binary(llvm::IRBuilderBase& b, Opcode op, const Value& x, const Value& y);
Value integer_unary(llvm::IRBuilderBase& b, Opcode op, const Value& x);
Value integer_binary(llvm::IRBuilderBase& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y);
Value float_unary(llvm::IRBuilderBase& b, const NumberOptions& o, Opcode op, const Value& x);
/// The same bits as float_unary has of kExponential, of an x that is not above zero.
Value exp_of_nonpositive(llvm::IRBuilderBase& b, const NumberOptions& o, const Value& x);
Value float_binary(llvm::IRBuilderBase& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y);
Value complex_unary(llvm::IRBuilderBase& b, const NumberOptions& o, Opcode op, const Value& x);
Value complex_binary(llvm::IRBuilderBase& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y);

Value compare(llvm::IRBuilderBase& b, const Instruction& i, const Value& x, const Value& y);
/// i1: x before y in lexicographic order of (real, imaginary), for f a predicate such as OLT or OGE.
llvm::Value* complex_order(llvm::IRBuilderBase& b, unsigned predicate, const Value& x, const Value& y);

Value bitcast_convert(llvm::IRBuilderBase& b, DType to, const Value& x);
Value reduce_precision(llvm::IRBuilderBase& b, const NumberOptions& o, const Instruction& i, const Value& x);
Value stochastic_convert(llvm::IRBuilderBase& b, const NumberOptions& o, const Value& x, const Value& random, DType to);

}  // namespace hlojit::codegen

// Elements in memory and in registers: what a type's codec is.
//
// A loaded or to be stored vector holds one integer or float an element, whatever its type, so that moves,
// shuffles and gathers need to know nothing: complex elements are integers of their width (the real part in
// the low half), f8 and f4 are the i8 of their code, integers below 8 bits an i8.
#pragma once

#include "codegen/number/value.h"

namespace hlojit::codegen {

/// Type that `lanes` elements have in memory.
llvm::Type* storage_type(llvm::IRBuilderBase& b, DType type, int lanes);
/// Memory to register. Bits above those of an element narrower than its byte are ignored.
Value from_storage(llvm::IRBuilderBase& b, DType type, llvm::Value* raw);
/// Register to memory; integers narrower than a byte are extended in it.
llvm::Value* to_storage(llvm::IRBuilderBase& b, const Value& value);

/// What an op computed in its register, rounded to its type: narrow floats to their precision, integers
/// below 8 bits to their width; all others are as they are. `any_nan`: a NaN may have any payload; results
/// of arithmetic on narrow values cannot (theirs, or the default one).
Value round_to_type(llvm::IRBuilderBase& b, const NumberOptions& options, const Value& value, bool any_nan = false);

}  // namespace hlojit::codegen

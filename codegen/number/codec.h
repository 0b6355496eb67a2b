// Elements in memory and in registers: what a type's codec is.
//
// A loaded or to be stored vector holds one integer or float an element, whatever its type, so that moves,
// shuffles and gathers need to know nothing: complex elements are integers of their width (the real part in
// the low half), f8 and f4 are the i8 of their code, integers below 8 bits an i8.
//
// Lanes may be in pairs: of each `pairs` elements that lie side by side, two registers' full, first those of even
// numbers, then the odd ones. Two of bf16 are a word, of which one float is shifted out and the other masked, instead
// of four instructions; storing them takes two instead of seven.
#pragma once

#include "codegen/number/value.h"

namespace hlojit::codegen {

/// Type that `lanes` elements have in memory.
llvm::Type* storage_type(llvm::IRBuilderBase& b, DType type, int lanes);
/// Memory to register. Bits above those of an element narrower than its byte are ignored. `pairs`: of how many lanes
/// each pairs of groups is; 0: lanes are as in memory.
Value from_storage(llvm::IRBuilderBase& b, DType type, llvm::Value* raw, int pairs = 0);
struct StorageWay {
  int pairs = 0;                ///< as above
  bool permutes_words = false;  ///< the machine does so across two vectors in one instruction
};
/// Register to memory; integers narrower than a byte are extended in it.
llvm::Value* to_storage(llvm::IRBuilderBase& b, const Value& value, const StorageWay& way = {});
/// The number of the element that a lane in pairs holds.
int element_of_lane(int lane, int pairs);

/// What an op computed in its register, rounded to its type: narrow floats to their precision, integers
/// below 8 bits to their width; all others are as they are. `any_nan`: a NaN may have any payload; results
/// of arithmetic on narrow values cannot (theirs, or the default one).
Value round_to_type(llvm::IRBuilderBase& b, const NumberOptions& options, const Value& value, bool any_nan = false);

/// bf16 or f16 rounded to the upper half of a half. A half has all of bf16 but below 2^-17, where it rounds to what
/// nothing is nearer to than zero.
Value half_to_f8e5m2(llvm::IRBuilderBase& b, const Value& x);

}  // namespace hlojit::codegen

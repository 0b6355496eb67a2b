// Floats as integers whose extrema are theirs: what a machine has for floats neither keeps NaNs nor tells zeros apart.
#pragma once

#include <span>
#include <vector>

#include "codegen/number/value.h"

namespace hlojit::codegen {

/// An integer in the order of floats, of a largest or a least one to be found: NaNs of either sign are beyond the
/// infinity that these run to. Of f16 and bf16 as they lie in memory, in half the width of the f32 that registers hold.
DType key_type(DType type);
Value key_of_float(llvm::IRBuilderBase& b, const Value& x, bool largest);
Value float_of_key(llvm::IRBuilderBase& b, DType type, const Value& key, bool largest);

/// A float's bits, three times: of these the greatest as signed numbers, the greatest as unsigned ones and the least as
/// such tell the largest and the least float, and whether there was a NaN of either sign. Three instructions an
/// element, and a few at the end, where a key is made by three and compared by one.
std::vector<Value> bits_of_float(llvm::IRBuilderBase& b, const Value& x, bool largest);
/// Of no elements.
std::vector<Value> extrema_of_none(llvm::IRBuilderBase& b, DType type);
std::vector<Value> extrema_of_bits(llvm::IRBuilderBase& b, const NumberOptions& options, std::span<const Value> left,
                                   std::span<const Value> right);
Value float_of_extrema(llvm::IRBuilderBase& b, DType type, std::span<const Value> extrema, bool largest);

}  // namespace hlojit::codegen

// A square of memory turned into another, by a function that is machine code already.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// Rows and columns of words of 32 bits that the function turns.
inline constexpr int64_t kSquare = 16;

/// Calls it: `to` becomes the columns of `from`, whose rows are so many bytes apart. All is read before any of it is
/// written. For AVX-512.
void copy_square_transposed(llvm::IRBuilderBase& b, llvm::Value* from, int64_t from_stride, llvm::Value* to,
                            int64_t to_stride);

/// What it is called by, of all linked code, and its code. Half of a row and of that four further down are loaded as
/// one vector, so that 48 of the 64 shuffles of whole rows do. (LLVM takes 2 ms for these, wherever they stand: full
/// attention compiled in 14.7 ms, in 13.2 so; they run as fast.)
inline constexpr std::string_view kSquareName = "hlojit_square_transposed";
std::string square_code();

}  // namespace hlojit::codegen

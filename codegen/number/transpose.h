// Squares of memory turned into others, by a function that is machine code already.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/target.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// Rows and columns of words of 32 bits that the function turns: a vector has so many.
inline constexpr int64_t square_side(Isa isa) { return isa == Isa::kAvx512 ? 16 : 8; }

/// Of so many below each other a call takes no longer than the shuffles that LLVM puts in their place. (300x280 floats
/// transposed, a Zen 4 limited to AVX2: 10.1 us, 13.8 by calls for a square of 8; 512 rows packed by 16 as fast.)
inline constexpr int64_t fewest_squares(Isa isa) { return isa == Isa::kAvx512 ? 1 : 2; }

/// Calls it for so many squares below each other: `to` becomes the columns of `from`, whose rows are so many bytes
/// apart, the columns of each square next to those of the one above. All of a square is read before any of it is
/// written.
void copy_squares_transposed(llvm::IRBuilderBase& b, Isa isa, int64_t squares, llvm::Value* from, int64_t from_stride,
                             llvm::Value* to, int64_t to_stride);

/// What it is called by, of all linked code, and its code. (LLVM takes 2 ms for the 64 shuffles of a square of 16, and
/// 6 for the 48 of two of 8, wherever they stand: full attention compiled in 14.7 ms, in 13.2 so; they run as fast.)
std::string_view square_name(Isa isa);
std::string square_code(Isa isa);

}  // namespace hlojit::codegen

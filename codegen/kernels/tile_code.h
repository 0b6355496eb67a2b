// Plain register tiles as machine code, written down without LLVM: what each register holds is known, and a tile is the
// dearest part of compiling a product. (LLVM takes 0.9 to 2.4 ms for one of 100 to 280 instructions, this some
// microseconds: a product of two matrices compiled in 4.7 ms, in 2.7 so; a small transformer's train step in 138 and
// 108.) What --emit shows of a tile is LLVM's code, which does the same.
#pragma once

#include <optional>
#include <string>

#include "codegen/kernels/micro_kernel.h"

namespace hlojit::codegen {

/// The code of a micro-kernel (see micro_kernel) of such a shape, which does the same in the same order. None where it
/// is left to LLVM: tiles of the machine's, a stretch that ends within, terms and vectors for which the target has no
/// instruction, more registers than there are; with AVX2 also vectors under a mask, terms packed into lanes and lanes
/// along the depth.
std::optional<std::string> tile_code(const MicroKernelShape& shape, const Target& target);

}  // namespace hlojit::codegen

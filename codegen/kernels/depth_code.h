// A tile whose lanes go along the depth (depth_tile.h) as machine code. (By LLVM one of 653 instructions took 10 ms, of
// the 14 in which a product with seven columns compiled.)
#pragma once

#include <optional>
#include <string>

#include "codegen/kernels/tile_ops.h"

namespace hlojit::codegen {

/// As tile_code, which has seen to it that offsets are small. None without AVX-512, for narrow vectors, for integers.
std::optional<std::string> depth_code(const MicroKernelShape& shape, const TileOps& ops, const Target& target);

}  // namespace hlojit::codegen

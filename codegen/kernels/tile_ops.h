// The processor's instructions that tiles written as machine code are made of.
#pragma once

#include <optional>

#include "codegen/kernels/micro_kernel.h"
#include "codegen/number/machine_code.h"

namespace hlojit::codegen {

/// On a type of sums.
struct TileOps {
  VectorOp load, store, broadcast, add, subtract;
  VectorOp multiply_add = {};
  bool commutes = true;  ///< the product
};

/// None where the target has no one instruction for the shape's products.
std::optional<TileOps> tile_ops(const MicroKernelShape& shape, const Target& target);

}  // namespace hlojit::codegen

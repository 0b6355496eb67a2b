// A register tile whose lanes go along the depth: both operands lie so that the terms of a sum are neighbours, as in x
// times a transposed W. Nothing is transposed: each sum is a vector, whose lanes are added up when all is in it.
#pragma once

#include "codegen/kernels/micro_kernel.h"

namespace hlojit::codegen {

/// How many columns of such a tile are summed at a time, a power of two.
int columns_at_once(const MicroKernelShape& shape, int vector_registers);

/// The body of a micro-kernel (see micro_kernel) of such a shape. `f` is empty.
void emit_depth_tile(llvm::Function* f, const MicroKernelShape& shape, const Target& target);

}  // namespace hlojit::codegen

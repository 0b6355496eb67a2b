// A tile of sums by instructions that multiply whole matrices (AMX): C[rows x columns] += A[rows x k] * B[k x columns],
// where C, a step of A and a step of B are each up to three registers of 16 rows of 64 bytes.
//
// The registers have to be given their sizes before, which takes as long as ten products: once for all tiles of a
// product, not for each. Where the machine has no such instructions, loops over their portable twin give the same bits.
#pragma once

#include "codegen/kernels/micro_kernel.h"

namespace hlojit::codegen {

/// Before the first and after the last call of micro-kernels of this shape, in the same task.
void begin_tiles(llvm::IRBuilderBase& b, llvm::Module& module, const MicroKernelShape& shape, const Target& target);
void end_tiles(llvm::IRBuilderBase& b, MultiplyAdd kind, const Target& target);

/// The body of a micro-kernel (see micro_kernel) of such a shape, of whole steps of k. `f` is empty. `twin`: whatever
/// the machine has.
void emit_matrix_tile(llvm::Function* f, const MicroKernelShape& shape, const Target& target, bool twin = false);

}  // namespace hlojit::codegen

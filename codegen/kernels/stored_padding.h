// Products of arrays whose memory is filled up to whole tiles. What is computed of padding and stored in padding is
// nobody's: where memory has it, the last panel of columns is whole, the last rows are as many as lie together, and the
// last slice of the depth is packed like the others. (Packing and epilogue would be emitted a second time for these:
// gemm_odd_tiled compiles in 6.4 ms instead of 9.9, gemm_bf16_odd_tiled in 30 instead of 49.)
#pragma once

#include "compiler/plan/kernel.h"
#include "compiler/plan/matrix_product.h"

namespace hlojit::codegen {

/// The product of a stage, its columns filled up to whole panels, its rows to as many as alternate in the result's
/// memory, if memory has so many: of their operand, of what the epilogue reads, and of the results.
MatrixProduct with_stored_rest(MatrixProduct product, const KernelPlan& plan, const Stage& stage);

/// The same product as it is packed: its depth filled up to whole slices if memory has so much of both operands.
/// What is packed behind its end nobody reads.
MatrixProduct with_stored_depth(MatrixProduct product, const Stage& stage);

}  // namespace hlojit::codegen

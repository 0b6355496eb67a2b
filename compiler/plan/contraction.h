// Plans of kernels that hold dots, and what a product stage is cut along.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/plan/graph.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/target_info.h"

namespace hlojit {

/// `dots`: the contractions, convolutions among them. One with elementwise consumers; or blocks of rows, in which dots
/// make values of the domain, reductions go along their rows, and further dots take what comes of it. `config` as in
/// plan_kernel.
KernelPlan plan_contraction(const KernelGraph& graph, const std::vector<const Instruction*>& dots, Products& products,
                            std::string_view config);

/// Packing a dot's operand applies this op on the way.
bool folds_into_packing(const Instruction* i);

/// How a product stage is cut: rows are those of the kernel's block where it goes by blocks, else what the
/// result's layout suggests.
MatrixProduct matrix_product(const KernelPlan& plan, const Stage& stage, int64_t vector_bytes);
/// The same among those that are known.
Products::Product& product_of(const KernelPlan& plan, const Stage& stage, Products& products);

/// A block of rows between products has at most so many, so that what its stages leave for each other stays near.
inline constexpr int64_t kMostBlockRows = 96;

/// Rows that fall to the busier of two cores where each batch has `rows` and a block `block` of them. (Eight blocks of
/// 18 for 128 rows leave one core 72: a transformer's layers took 1.1 times as long by them as product by product.)
int64_t busier_core_rows(int64_t batches, int64_t rows, int64_t block);

/// The layout in which a micro-kernel reads the operand of the columns in place: panels as wide as its tile, one k
/// after the other. nullopt where no layout says so (several free or contracting dims of a dot).
std::optional<Layout> panel_layout(const Instruction& contraction, const MatrixProduct& product, const Blocks& blocks);

/// Of a plan by blocks: the operand of a product that is a value of the domain (made by earlier stages), or -1
/// if the product itself makes such a value.
int taken_operand(const KernelPlan& plan, const Instruction* dot);

/// The domain's dims that are batch dims of its products, ascending; the other outer ones are the block's rows.
std::vector<int64_t> batch_dims(const KernelPlan& plan);

}  // namespace hlojit

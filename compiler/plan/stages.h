// Which stage of a kernel makes which value: the second half of planning, once plan_kernel has found the
// domain. See kernel.h for what a stage is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/graph.h"
#include "compiler/plan/kernel.h"

namespace hlojit {

/// Fills plan.stages of a nest, rows or columns kernel.
void make_stages(const KernelGraph& graph, const TargetInfo& target, KernelPlan& plan);

/// Of a contraction by blocks: what the stages between its products have to do with them.
struct BlockParts {
  std::vector<const Instruction*> making;    ///< dots whose sums lie in scratch before the first of these stages
  std::vector<const Instruction*> operands;  ///< values of the domain to be kept for later products
  std::vector<size_t> later;                 ///< roots that later products store
};
/// Fills plan.stages with the stages that go along the block's rows.
void make_row_stages(const KernelGraph& graph, const TargetInfo& target, const BlockParts& parts, KernelPlan& plan);
/// What a value that stages of a block leave for each other is kept as: a product in the type of its sums.
DType kept_type(const ScratchTile& tile);
/// Gives the values that stages of a block leave for each other their places: plan.tiles.
void place_tiles(const KernelGraph& graph, const TargetInfo& target, KernelPlan& plan);

/// How many rows go through a stage before any goes through the next, if a row's stages touch so many bytes: as many
/// as half the first cache holds. What a stage makes of a row (a maximum, a sum, what is divided by it) is a chain that
/// a row of few vectors waits for, and other rows' do not. (Softmax of 171x203 floats, one core of a Zen 5: 9.6 us row
/// by row, 6.7 by eight.)
int64_t rows_together(const TargetInfo& target, int64_t bytes_of_row);

/// Vectors of columns that a columns kernel with values kept in scratch takes at a time; a row of its scratch
/// holds as many. Fewer than `wanted`, though no less than two, where long columns would fill more than half of L2.
int64_t column_vectors(const KernelPlan& plan, const TargetInfo& target, int64_t wanted);

/// The texts of the stages in a backend_config, or nullopt if there are none.
std::optional<std::vector<std::string>> stages_in(std::string_view config);
/// Takes the stages as written. Refuses what would read a value before the stage that makes it, make one
/// twice, or leave one out. Returns false, with no stages, if they were made for a target of other registers or
/// less scratch.
bool read_stages(const KernelGraph& graph, const std::vector<std::string>& texts, const TargetInfo& target,
                 KernelPlan& plan);

}  // namespace hlojit

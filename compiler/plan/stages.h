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

/// Lanes of the tile that a columns kernel with values kept in scratch runs at; its row of scratch holds as
/// many values an inner element.
int64_t column_tile(const TargetInfo& target);

/// The texts of the stages in a backend_config, or nullopt if there are none.
std::optional<std::vector<std::string>> stages_in(std::string_view config);
/// Takes the stages as written. Refuses what would read a value before the stage that makes it, make one
/// twice, or leave one out.
void read_stages(const KernelGraph& graph, const std::vector<std::string>& texts, KernelPlan& plan);

}  // namespace hlojit

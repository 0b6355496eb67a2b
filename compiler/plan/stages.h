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

/// Vectors of columns that a columns kernel with values kept in scratch takes at a time; a row of its scratch
/// holds as many. Four read whole pairs of cache lines, two are for long columns: scratch fills half of L2.
int64_t column_vectors(const KernelPlan& plan, const TargetInfo& target);

/// The texts of the stages in a backend_config, or nullopt if there are none.
std::optional<std::vector<std::string>> stages_in(std::string_view config);
/// The blocks in a backend_config, or nullopt.
std::optional<Blocks> blocks_in(std::string_view config);
/// Takes the stages as written. Refuses what would read a value before the stage that makes it, make one
/// twice, or leave one out.
void read_stages(const KernelGraph& graph, const std::vector<std::string>& texts, KernelPlan& plan);

}  // namespace hlojit

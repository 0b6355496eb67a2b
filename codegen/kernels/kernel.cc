// See kernel.h. Which kind of kernel a fusion is, by its plan.
#include "codegen/kernels/kernel.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/kernels/block_kernel.h"
#include "codegen/kernels/merge.h"
#include "codegen/kernels/nest_kernel.h"
#include "codegen/kernels/scatter.h"
#include "codegen/kernels/tile_edges.h"
#include "compiler/plan/cost.h"

namespace hlojit::codegen {

std::vector<KernelFunction> emit_kernel(const NextModule& module, const Instruction& fusion, const Surroundings& around,
                                        const EmitOptions& options) {
  if (has_step_kernel(fusion)) return {{.function = emit_step_kernel(module(), fusion, options)}};
  const TargetInfo target = options.target_info();
  std::string why;
  const auto plan = plan_kernel(*fusion.to_apply(), target, fusion.attrs.backend_config, &why);
  if (!plan) {
    throw Error(ErrorKind::kUnsupported, fusion.location,
                fmt::format("fusion {} fits no kernel kind: {}", fusion.name, why));
  }
  const double ns = kernel_cost(*fusion.to_apply(), *plan, target).work_ns() * static_cast<double>(target.smaller);
  const auto cost_ns = static_cast<int64_t>(std::min(ns, 1e15));
  if (plan->has_products()) return {emit_block_kernel(module(), fusion, *plan, around, options, cost_ns)};
  VarSource vars;
  if (plan->kind == KernelKind::kScatter) return {emit_scatter(module(), fusion, *plan, around, options, vars)};
  std::vector<KernelFunction> functions = emit_nest(module, fusion, *plan, around, options, vars, cost_ns);
  for (KernelFunction& f : clear_rest_of_panels(module, fusion, *plan, around, options, vars)) functions.push_back(f);
  return functions;
}

}  // namespace hlojit::codegen

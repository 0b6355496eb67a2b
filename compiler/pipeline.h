// The compiler's front door: HLO in, planned HLO out. The passes and their order are in pipeline.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/plan/buffers.h"
#include "compiler/plan/target_info.h"

namespace hlojit {

struct PipelineOptions {
  TargetInfo target;
  bool strict = false;              ///< no contraction, no reassociation
  bool scatter_oob_window = false;  ///< XLA's whole-window rule
  int effort = 1;
  std::vector<std::string> disabled;  ///< pass names
  std::vector<std::string> only;      ///< non-empty: run just these passes, in this order
  std::string until;                  ///< stop after this pass
  bool verify = false;                ///< check the module after every pass that changed it (tests)
  std::string (*step_refused)(const Instruction&) = nullptr;  ///< why the runtime has no such step, or ""
  std::function<void(const std::string&)> explain;            ///< each decision with its costs, a line each
  /// Called after every pass that changed something (dumps, `opt`).
  std::function<void(const std::string& pass, const Module&)> after_pass;
};

struct PassTime {
  std::string name;
  double ms = 0;
  bool changed = false;
};

/// Stands among the passes' times where rounds of them were stopped that still changed something: passes that undo
/// each other's work cost time only, so that nobody else sees it.
inline constexpr std::string_view kUnsettled = "unsettled";

/// Runs the passes on `module` in place. Throws Error. Returns the time each pass took.
std::vector<PassTime> run_pipeline(Module& module, const PipelineOptions& options);
/// Names of all passes, in order.
std::vector<std::string> pass_names();
/// Those without which nothing, or not every program, is compiled.
std::vector<std::string> needed_pass_names();

}  // namespace hlojit

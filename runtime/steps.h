// What native code asks of the runtime: a table of steps (compiler/analysis/steps.h), prepared when
// a module is compiled, called by number while it runs. A step of a new kind is a maker in
// steps.cc's table and a file in kernels/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_abi.h"
#include "compiler/ir/module.h"
#include "runtime/parallel.h"
#include "runtime/run_state.h"

namespace hlojit {

/// One call of a step. Valid while it runs.
struct StepCall {
  abi::Context* context;
  ThreadPool& pool;
  /// Leaves of the operands, then of the result, in the layouts of step_layouts(). Operands are
  /// aligned to the element only and must not be written.
  void* const* buffers;
  abi::Kernel kernel;  ///< code emitted for the step, or null
  RunState& run;       ///< which device, its peers and queues
};

/// Does the work; may throw (what() becomes the error text of the run). Called from many threads at
/// once if the executable is.
using StepFunction = std::function<void(const StepCall&)>;

/// The steps of one executable, in order. Owns what they keep.
class StepTable {
 public:
  StepTable() = default;
  /// Prepares the steps of a planned module. Throws Error(kUnsupported) for one nobody serves.
  explicit StepTable(const Module& planned);
  const abi::Step* data() const { return rows_.data(); }

 private:
  std::vector<std::unique_ptr<StepFunction>> functions_;
  std::vector<abi::Step> rows_;
};

/// Why there is no such step; empty if there is.
std::string step_refused(const Instruction& step);

}  // namespace hlojit

// What a compiled module keeps: code, constants, shapes of its leaves.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hlojit/hlojit.h"
#include "runtime/dynamic_leaves.h"
#include "runtime/lower.h"
#include "runtime/parallel.h"
#include "runtime/steps.h"
#include "runtime/workers.h"

namespace hlojit {

struct Executable::Impl {
  codegen::NativeCode code;
  std::shared_ptr<void> constants;
  StepTable steps;
  std::shared_ptr<ThreadPool> pool;
  std::vector<Shape> parameters, results;
  std::vector<std::shared_ptr<const Shape>> result_shapes;  ///< the results', as their buffers hold them
  /// Their dynamic dimensions, in the order in which native code takes and gives the sizes.
  std::vector<DynamicLeafDim> dynamic_parameters, dynamic_results;
  std::vector<int64_t> result_bytes;
  /// Result leaf -> parameter leaf whose memory it may take over, or -1.
  std::vector<int64_t> donor;
  int64_t arena_bytes = 0;
  int64_t replicas = 1, partitions = 1;
  std::vector<PhaseTime> times;
  std::vector<KernelInfo> kernels;
  std::string isa, memory_report;
  double flops = 0, bytes_read = 0, bytes_written = 0;
  ModulePtr source;         ///< as given, and how it was compiled: for serialize()
  Options options;          ///< without callbacks
  mutable Workers workers;  ///< of run_async

  // The steps of a call.
  /// Holds inputs to the parameters (Error(kInput)), and puts those with dynamic dimensions into memory of their
  /// bounds: these dimensions' sizes.
  std::vector<int32_t> take(std::vector<Buffer>& inputs) const;
  /// With memory of their own, or with a donor's that nobody else holds.
  std::vector<Buffer> make_outputs(std::span<const Buffer> inputs) const;
  /// Dynamic dimensions get the sizes that they turned out to have.
  void cut(std::vector<Buffer>& outputs, std::span<const int32_t> sizes) const;
};

/// Leaves of all parameters in number order, with the layouts of the entry computation layout.
std::vector<Shape> entry_parameter_leaves(const Module& module);
std::vector<Shape> entry_result_leaves(const Module& module);

}  // namespace hlojit

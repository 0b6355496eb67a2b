// A scalar computation (the to_apply of reduce, map, scatter, sort, ...) made ready to run on many
// elements: calls inlined, constants laid out, each remaining instruction a loop of elementwise.h
// over a block of lanes. Computations that are not straight-line scalar code run instruction by
// instruction through the evaluator, one lane at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/eval/elementwise.h"
#include "compiler/ir/module.h"

namespace hlojit::eval {

/// Runs a computation on scalar literals; the slow way out.
using RunComputation = std::function<Literal(const Computation&, std::span<const Literal> arguments)>;

class ScalarFunction {
 public:
  /// `computation` and `run` must outlive this.
  ScalarFunction(const Computation& computation, const RunComputation& run);

  /// True if the body only adds, multiplies or takes extrema of its parameters, all of one float
  /// type: the order of accumulation is then free and sums may be kept in a wider type.
  bool is_plain_float() const { return plain_float_; }
  /// For plain bodies: works on f64 from here on; parameters and results are doubles.
  void widen_to_f64();

  size_t parameter_count() const { return parameter_types_.size(); }
  size_t result_count() const { return results_.size(); }
  /// Element types of parameters and results (leaves of the root).
  DType parameter_type(size_t i) const { return parameter_types_[i]; }
  DType result_type(size_t i) const { return result_types_[i]; }

  /// results[r][i] = f(parameters[..][i]) for i in [0, n). A result may be the same array as a
  /// parameter.
  void run(int64_t n, const void* const* parameters, void* const* results);

 private:
  struct Step {
    ElementOp op;
    int inputs[3];
    int output;
  };
  static constexpr int64_t kLanes = 256;
  static constexpr int64_t kSlotBytes = kLanes * 16;

  bool compile(const Computation& computation, const std::vector<std::vector<int>>& arguments,
               std::vector<int>& results, int depth);
  int new_slot();
  int constant_slot(const Literal& literal);
  void run_block(int64_t n, const void* const* parameters, void* const* results);
  void run_slowly(int64_t n, const void* const* parameters, void* const* results);

  const Computation& computation_;
  const RunComputation& run_;
  std::vector<DType> parameter_types_, result_types_;
  bool straight_line_ = false;
  bool plain_float_ = false;
  std::vector<Step> steps_;
  std::vector<int> results_;                   // slots; parameters are slots 0..parameter_count-1
  std::vector<std::vector<std::byte>> frame_;  // by slot; empty for parameters
  std::vector<const void*> pointers_;          // by slot, while running
};

}  // namespace hlojit::eval

// The stages of a plan as code, one at a time at given outer coordinates: what both kinds of kernel share
// that have any, those that go row by row through an outer nest (nest_kernel.cc) and those that go through a
// block of rows stage by stage (block_kernel.cc).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "codegen/kernels/function.h"
#include "codegen/kernels/look_ahead.h"
#include "compiler/plan/kernel.h"

namespace hlojit::codegen {

class Stages {
 public:
  Stages(const KernelPlan& plan, VarSource& vars) : plan_(plan), vars_(vars) {}

  /// Emits stage `number` at the outer coordinates `at` (of a block of them where `unroll` says so): its pass
  /// over the inner dims, or its stores. `overlap`: elements may be computed twice.
  void run(KernelBuilder& kernel, Scope& scope, size_t number, const Coords& at, const Unroll& unroll,
           bool overlap) const;

  /// From now on a stage of each row, or strip of columns, asks for the next one.
  void look_to(std::optional<LookAhead> ahead) { ahead_ = ahead; }

  /// Reads and writes of a stage at one element; of one element of some roots.
  void walk(AccessWalk& walk, const Stage& stage, const Coords& at) const;
  void walk_roots(AccessWalk& walk, const Coords& coords, const std::vector<size_t>& which) const;

  /// The domain's coordinates from outer and inner ones, and back: {outer, inner}.
  Coords joined(const Coords& outer, const Coords& inner) const;
  std::pair<Coords, Coords> apart(const Coords& coords) const;

 private:
  bool is_update(const Instruction* root) const;
  void store_roots(KernelBuilder& kernel, Scope& scope, const Coords& coords, const Unroll& unroll,
                   const std::vector<size_t>& which) const;
  bool is_inner(size_t d) const;
  Coords scanned(const Coords& outer, const Coords& inner) const;

  const KernelPlan& plan_;
  VarSource& vars_;
  std::optional<LookAhead> ahead_;
};

}  // namespace hlojit::codegen

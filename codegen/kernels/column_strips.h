// Which sums of columns are made by strips (codegen/nest/strip.h), and how many columns a strip has: those from beyond
// a core's caches whose rows are longer than registers hold sums for.
#pragma once

#include "codegen/kernels/stages.h"
#include "codegen/nest/strip.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

class ColumnStrips {
 public:
  /// Keeps references to all of its arguments.
  ColumnStrips(const KernelPlan& plan, const Stages& stages, const TargetInfo& target, VarSource& vars)
      : plan_(plan), stages_(stages), target_(target), vars_(vars) {}

  struct Cut {
    LoopPiece piece;  ///< its leading `tasks` loops are the strips
    size_t tasks = 0;
    StripRows rows;
    bool from_memory = false;
    bool end_to_end = false;  ///< the strip's rows follow each other
  };
  /// The piece, which has lanes on its columns, in strips, each a task; none where registers do as well.
  /// `vector_bytes`: of a native vector; `wide`: vectors that registers hold the sums of.
  std::optional<Cut> cut(const LoopPiece& piece, int vector_bytes, int wide) const;

  /// Emits a strip and what is done with its sums. `native`: lanes of a native vector. Returns the scratch used.
  int64_t emit(KernelBuilder& kernel, const Cut& cut, int native) const;

 private:
  bool only_sums() const;
  int64_t strips_of(const StripRows& rows, int64_t columns, int64_t outer) const;
  int vectors_of_step(const StripRows& rows) const;
  Pass pass(const Coords& at) const;

  const KernelPlan& plan_;
  const Stages& stages_;
  const TargetInfo& target_;
  VarSource& vars_;
};

}  // namespace hlojit::codegen

// Rows that come from memory and are gone through several times. The first pass waits for memory, those behind it find
// the row in the caches and leave memory idle: no prefetcher gets from one row to the next while a row is computed
// with. So the pass that computes most asks for what all of them will read of the next row.
#pragma once

#include <cstddef>
#include <optional>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/loop_plan.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

class Stages;

struct RowAhead {
  size_t stage = 0;  ///< that asks
  int loop = -1;     ///< variable of the loop over rows, or blocks of them: its next turn's are asked for
  int64_t step = 1;  ///< of this variable, a turn
  Cache cache = Cache::kSecond;
};

/// Whether rows are asked for ahead. `piece`: its loops go over the rows, in each of their turns over so many. `bytes`:
/// of all arrays read and written.
std::optional<RowAhead> row_ahead(const KernelPlan& plan, const Stages& stages, const LoopPiece& piece,
                                  int64_t rows_of_turn, int64_t bytes, const TargetInfo& target, VarSource& vars);

/// Asks for what the stages read at the element of the next row that this one at `coords` is of its own.
void ask_ahead(const RowAhead& ahead, const KernelPlan& plan, const Stages& stages, ElementEmitter& e, Scope& scope,
               const Coords& coords);

}  // namespace hlojit::codegen

// Rows, or strips of columns, that come from memory and are gone through several times. The first pass waits for
// memory, those behind it find the row in the caches and leave memory idle: no prefetcher gets from one row to the next
// while a row is computed with. So one of these passes asks for what is read of the next row.
#pragma once

#include <cstddef>
#include <optional>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/loop_plan.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

class Stages;

struct LookAhead {
  size_t stage = 0;  ///< that asks
  std::optional<int>
      loop;          ///< variable of the loop over rows, or blocks of them, whose next turn is meant; none: columns
  int64_t step = 1;  ///< of this variable, a turn
  Cache cache = Cache::kSecond;
};

/// Whether the next rows or columns are asked for. `piece`: its loops go over them, in each of their turns over so many
/// rows. `bytes`: of all arrays read and written.
std::optional<LookAhead> look_ahead(const KernelPlan& plan, const Stages& stages, const LoopPiece& piece,
                                    int64_t rows_of_turn, int64_t bytes, const TargetInfo& target, VarSource& vars);

/// Asks for what passes before this one will read of the next row where they have read the element at `coords`.
void bring_next(const LookAhead& ahead, const KernelPlan& plan, const Stages& stages, ElementEmitter& e, Scope& scope,
                const Coords& coords);

}  // namespace hlojit::codegen

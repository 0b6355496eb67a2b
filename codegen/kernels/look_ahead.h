// What comes from memory sooner than prefetchers bring it. Rows, or strips of columns, that are gone through several
// times: the first pass waits for memory, those behind it find the row in the caches and leave memory idle, and no
// prefetcher gets from one row to the next meanwhile. So one of these passes asks for what is read of the next row. And
// rows beside which others are read anew each time, such as what channels are scaled by: where these are more than the
// first cache holds, prefetchers fall behind, and what is a little further on is asked for.
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
  size_t stage = 0;         ///< that asks
  size_t reads = 0;         ///< for what this many stages read
  std::optional<int> loop;  ///< over rows, or blocks of them: its variable; none: over columns
  int64_t step = 1;         ///< of this variable, to what is asked for
  int64_t bytes = 0;        ///< > 0: that is so far on instead, along the row
  Cache cache = Cache::kSecond;
};

/// Whether, and what, is asked for. `piece`: its loops go over them, in each of their turns over so many
/// rows. `bytes`: of all arrays read and written.
std::optional<LookAhead> look_ahead(const KernelPlan& plan, const Stages& stages, const LoopPiece& piece,
                                    int64_t rows_of_turn, int64_t bytes, const TargetInfo& target, VarSource& vars);

/// Asks for what is read there as the element at `coords` is here.
void bring_next(const LookAhead& ahead, const KernelPlan& plan, const Stages& stages, ElementEmitter& e, Scope& scope,
                const Coords& coords);

}  // namespace hlojit::codegen

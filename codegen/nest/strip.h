// Sums down columns whose elements lie far apart, a strip of columns at a time. Registers hold the sums of a few
// vectors, and whoever goes down by so few reads a kilobyte here and a kilobyte there, each from another page: neither
// prefetchers nor the memory's own pages are made for that. Here a strip of some thousand columns has its sums in the
// first cache, and a few rows at a time are read through it from end to end. (Sums of the columns of 4096x4096 floats,
// 67 MB, one core of a Zen 4: 6.5 ms by 16 registers, 2.8 by strips; a read from end to end takes 2.4.)
#pragma once

#include <functional>
#include <optional>

#include "codegen/nest/pass.h"

namespace hlojit::codegen {

/// The rows that a pass goes down, as one loop.
struct StripRows {
  LoopPiece piece;
  int64_t step = 0;    ///< bytes from one row to the next of what has most of them, and lanes side by side in each
  int64_t bytes = 0;   ///< of an element of that
  int operations = 0;  ///< that an element takes
};
/// The rows of a pass over columns, `lane` being the variable of the columns; none if they are not one loop.
std::optional<StripRows> strip_rows(const Pass& pass, int lane, VarSource& vars);

struct Strip {
  LoopPiece columns;  ///< all loops but the lanes' are bound
  LaneWidths widths;  ///< none is moved back: no column may be counted twice
  StripRows rows;
  int64_t rows_together = 1;                ///< added up in registers before they are added to the sums
  bool looks_down = false;                  ///< rows are prefetched: they come from memory
  llvm::Value* memory = nullptr;            ///< for the sums, aligned to a cache line
  std::function<Pass(const Coords&)> pass;  ///< the reductions of a column
  std::function<void(Scope&, const Coords&)> with_the_sums;  ///< what is done once they are known
};

/// Emits the strip. Where one of the passes' reducers rounds, all must be reorderable. Returns the bytes of memory
/// used.
int64_t emit_strip(ElementEmitter& e, Scope& at, const Strip& strip);

}  // namespace hlojit::codegen

// Access relations: which operand elements one result element needs, for every op, as data.
//
//   slice      r[i] = x[2*i + 3]                         one read
//   pad        r[i] = x[i - 2] where 0 <= i - 2 < n      a guarded read, else the fill operand
//   gather     r[i] = x[s],  s = clamp(idx[i], 0, n - 1) a symbol: an index known only at run time
//   window     r[i] = sum over k of x[2*i + k - 1]       a reduction variable, a guarded read
//
// This is the only statement of an op's index map. Emitters obey it, loop planning walks it, cost and
// in-place tests ask it; none switches over opcodes to learn where elements come from. Coordinates are
// index expressions (layout/index_expr.h), so relations compose by passing a read's coordinates on.
//
// Two ways to combine the reads, by the op's class: data movement takes the first read whose guards hold
// and the fill operand if none does (zero if there are none at all); everything else (elementwise, reductions,
// contractions) takes all of them, and a reduction skips an element where some guard fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/module.h"
#include "layout/index_expr.h"

namespace hlojit {

/// One index expression a dimension.
using Coords = std::vector<IndexExpr>;

struct CoordsHash {
  size_t operator()(std::span<const IndexExpr> coords) const {
    size_t h = coords.size();
    for (const IndexExpr& c : coords) h = h * 31 + c.hash();
    return h;
  }
};

/// Hands out variable numbers for index expressions; one per function under construction.
class VarSource {
 public:
  explicit VarSource(int first = 0) : next_(first) {}
  int fresh() { return next_++; }

 private:
  int next_;
};

/// A variable whose value is an operand's element, read as the operand's integer type and clamped.
struct Symbol {
  int var = -1;
  size_t operand = 0;
  Coords coords;  ///< of that element
  Range clamp;    ///< inclusive
};

/// Holds where lo <= expr < hi.
struct Guard {
  IndexExpr expr;
  int64_t lo = 0, hi = 0;
  bool always() const { return expr.range().lo >= lo && expr.range().hi < hi; }
  bool never() const { return lo >= hi || expr.range().hi < lo || expr.range().lo >= hi; }
};

/// Where the guard holds for every value of these variables; nullopt if nowhere, or if that cannot be told.
std::optional<Guard> for_all(const Guard& guard, std::span<const int> variables);
/// Where it holds for some; exact where no coefficient leaves values out; nullopt if that cannot be told.
std::optional<Guard> for_some(const Guard& guard, std::span<const int> variables);

/// An element of an operand. Where a guard fails the coordinates may lie outside the operand.
struct Read {
  size_t operand = 0;
  Coords coords;
  std::vector<Guard> guards;
};

struct AccessRelation {
  std::vector<Symbol> symbols;
  std::vector<Read> reads;
  std::optional<size_t> fill;  ///< scalar operand that is the value where no read applies
};

/// Combines elements over reduction variables: reduce, dot, windows, convolution.
bool is_reduction(const Instruction& instruction);
/// Sizes of the reduction variables; in the order in which elements are combined, outermost first.
Ints reduction_sizes(const Instruction& instruction);

/// Scalar operands that a reduction's results start from; empty where that is zero.
std::span<Instruction* const> initial_values(const Instruction& instruction);

/// What the element at `result` needs. `reduced`: the reduction variables, as many as reduction_sizes.
/// Symbols take fresh variables. Of a tuple-shaped reduction, all results share one relation.
/// Initial values of reductions are no reads: they belong to the combination, not to the elements.
/// Throws Error(kUnsupported) for an op that has no relation (control, effects, library ops).
AccessRelation access_relation(const Instruction& instruction, std::span<const IndexExpr> result,
                               std::span<const IndexExpr> reduced, VarSource& vars);

/// Coordinates in operand k of the single unguarded read of it, for ops whose map is fixed: elementwise,
/// fixed data movement, reduce, dot. nullopt where the map has guards, symbols or several reads.
std::optional<Coords> operand_coords(const Instruction& instruction, size_t k, std::span<const IndexExpr> result,
                                     std::span<const IndexExpr> reduced = {});

/// Operand k is read only at the coordinates of the result element itself, and has its sizes.
bool reads_own_element(const Instruction& instruction, size_t k);

/// Where one element of an update goes: dynamic-update-slice and scatter. The element is combined with (or
/// replaces) the target's element at `target` where all guards hold, and is dropped elsewhere.
struct WriteRelation {
  std::vector<Symbol> symbols;
  Coords target;
  std::vector<Guard> guards;
};

/// Sizes of the space of updates that `write_relation` is over: those of the update operand.
const Ints& update_sizes(const Instruction& update);
WriteRelation write_relation(const Instruction& update, std::span<const IndexExpr> element, VarSource& vars);

}  // namespace hlojit

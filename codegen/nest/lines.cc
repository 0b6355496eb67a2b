// See lines.h.
#include "codegen/nest/lines.h"

#include <algorithm>
#include <set>

#include "layout/index.h"

namespace hlojit::codegen {
namespace {

// Of a row that begins anywhere one vector more is handled; and short rows are written out, what they have in common
// before them (a normalisation of 56 channels took 1.4 times as long by lines).
constexpr int64_t kFewVectors = 8;

// Bytes of the arrays, as far as they are read or written.
int64_t bytes_touched(const AccessWalk& walk) {
  int64_t bytes = 0;
  std::set<const Instruction*> met;
  for (const Access& a : walk.accesses()) {
    const Range at = a.address.range();
    if (!a.parameter || met.insert(a.parameter).second) bytes += a.bytes * (at.hi - at.lo + 1);
  }
  return bytes;
}

}  // namespace

bool waits_for_memory(const AccessWalk& walk) {
  constexpr int kHidden = 40;  // operations behind an element's memory
  return !walk.has_reduction() && walk.operations() <= kHidden &&
         std::ranges::none_of(walk.accesses(), &Access::random);
}

bool may_leave_out_lanes(const LoopPiece& piece, const AccessWalk& walk) {
  if (!piece.known_lanes() || piece.apart || piece.looked_up || piece.together > 1 || walk.has_reduction())
    return false;
  const LoopDigit& row = piece.loops.back();
  return std::ranges::all_of(walk.accesses(), [&](const Access& a) {
    const auto step = a.address.coefficient(row.var);
    const bool in_order = step && (a.write ? *step == 1 : a.bytes == 0 || (-1 <= *step && *step <= 1));
    const bool packed = a.parameter && element_bits(a.parameter->shape) < 8;
    return in_order && a.bytes <= 8 && !a.random && !packed;
  });
}

std::optional<IndexExpr> elements_into_line(const LoopPiece& piece,
                                            const std::function<void(AccessWalk&, const Coords&)>& walk,
                                            VarSource& vars, int lanes, const TargetInfo& target) {
  if (target.vector_bytes < kCacheLine || !piece.has_lanes || lanes == 1) return std::nullopt;
  const LoopDigit& row = piece.loops.back();
  if (row.extent <= kFewVectors * lanes || row.extent > INT32_MAX / 2) return std::nullopt;
  if (piece.together > 1) return std::nullopt;
  AccessWalk w(vars);
  walk(w, piece.coords);
  if (!may_leave_out_lanes(piece, w)) return std::nullopt;
  // (In the first cache it is vectors that count: Jacobi steps of 67x71 took 1.5 times as long. Beyond the second it is
  // memory, but where line ends are dear.)
  const int64_t bytes = bytes_touched(w);
  const int64_t most = target.dear_line_ends ? INT64_MAX : target.l2_bytes;
  if (!waits_for_memory(w) || bytes <= target.l1_bytes || bytes > most) return std::nullopt;
  const Access* written = nullptr;
  for (const Access& a : w.accesses()) {
    if (a.write && (!written || a.bytes > written->bytes)) written = &a;
  }
  if (!written || lanes * written->bytes < target.vector_bytes) return std::nullopt;
  IndexExpr into = mod(written->address.substitute(row.var, 0), lanes);
  const bool known = std::ranges::all_of(
      into.variables(), [&](int v) { return std::ranges::count(piece.loops, v, &LoopDigit::var) > 0; });
  return !known || into == IndexExpr(0) ? std::nullopt : std::optional(std::move(into));
}

}  // namespace hlojit::codegen

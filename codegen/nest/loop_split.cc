// See loop_split.h.
#include "codegen/nest/loop_split.h"

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/nest/lines.h"
#include "codegen/nest/loop_order.h"
#include "layout/divide.h"

namespace hlojit::codegen {
namespace {

struct Part {
  int64_t unit, size;  // the size is a multiple of the unit
};

// Parts of equal size, if there are some of about that: then none needs to know where the digit ends. (By how many
// there are: sizes may be any number of any size.) Not a few that two cores cannot share. (Jacobi steps of 512x511 in
// five tasks took two cores 28 us, in six 2.)
Part evened(Part part, int64_t extent) {
  constexpr int64_t kMany = 16;
  for (int64_t parts = ceil_div(extent, part.size); extent / parts > part.size / 2; ++parts) {
    const bool shared = parts == 1 || parts % 2 == 0 || parts > kMany;
    if (shared && extent % (parts * part.unit) == 0) return {part.unit, extent / parts};
  }
  return part;
}

// How much of a lane digit is a part: a multiple of the grain, or where four cores would have parts that are far from
// equal, of less of it, down to `finest`. All of it where even two would be. (A sum of 257 columns and what is done
// with it, by grains of 256: 101 us, by 16: 41. Parts of 32 columns add up hardly faster than one of 64.)
Part part_in_units(int64_t extent, int64_t want, int64_t grain, int64_t finest) {
  constexpr int64_t kLeast = 64, kCores = 4;
  Part part{2 * grain, 0};
  do {
    part.unit /= 2;
    part.size = std::max(round_up(ceil_div(extent, want), part.unit), round_up(kLeast, part.unit));
  } while (part.unit > finest && 4 * part.size * std::min(want, kCores) > 5 * extent);
  if (8 * part.size > 5 * extent) part.size = extent;
  return evened(part, extent);
}

// Parts that are not equal and do not overlap begin at whole vectors: nothing but the grain holds all of those. Where
// other loops have made `have` parts, that is enough for the cores, and less than the grain no gain. (Sums down tiles
// of 128 columns, 67 MB: 4.4 ms by half a tile, 3.3 by whole ones.)
Part part_of_lanes(int64_t extent, int64_t want, int64_t have, int64_t grain, bool overlap) {
  constexpr int64_t kFinest = 16, kEnough = 16;
  const Part part = part_in_units(extent, want, grain, have < kEnough ? kFinest : grain);
  return overlap || extent % part.size == 0 ? part : part_in_units(extent, want, grain, grain);
}

Part part_of_steps(int64_t extent, int64_t want) { return evened({1, std::max<int64_t>(1, extent / want)}, extent); }

void substitute_in(LoopPiece& piece, int var, const IndexExpr& value) {
  const IndexExpr::Substitution values[] = {{var, value}};
  piece.coords = substitute(piece.coords, values);
  substitute_in(piece.loops, values);
}

// Part of a digit, from `so_far` on, that ends with it. The variable keeps its range: what always holds of the digit
// (a pad's guard, a part of a concatenation) is known to hold of its parts.
LoopDigit part_of(const LoopDigit& loop, int64_t per, const IndexExpr& so_far) {
  return {loop.var, per, Clip{so_far, loop.extent, 1, 1}, Steps{so_far, 1, loop.extent - 1}};
}

bool can_be_in_blocks(const LoopPiece& piece) {
  if (!piece.has_lanes || piece.unroll.var >= 0 || piece.apart || piece.looked_up) return false;
  return !piece.loops.back().clip && !piece.loops.back().steps;
}

// `turns` blocks of `count` vectors each, the last one moved back to the digit's end.
void lanes_in_blocks(LoopPiece& piece, int lanes, int64_t count, int64_t turns, VarSource& vars) {
  const LoopDigit lane = piece.loops.back();
  LoopDigit along{vars.fresh(), lanes, {}, {}};
  piece.unroll = {vars.fresh(), count, count, lanes};
  IndexExpr at = IndexExpr::var(along.var, lanes);
  if (turns == 1) {
    piece.unroll.last = lane.extent - lanes;
  } else {
    const int64_t last = lane.extent - count * lanes;
    LoopDigit turn{vars.fresh(), turns, {}, Steps{IndexExpr(0), count * lanes, last}};
    at = at + IndexExpr::var(turn.var, Range{0, last});
    piece.loops.insert(piece.loops.end() - 1, turn);
  }
  at = at + IndexExpr::var(piece.unroll.var, Range{0, piece.unroll.value(count - 1)});
  substitute_in(piece, lane.var, at);
  piece.loops.back() = along;
  piece.operations *= static_cast<int>(count);
}

}  // namespace

LoopPiece at_step(const LoopPiece& piece, size_t k, int64_t step) {
  LoopPiece once = piece;
  substitute_in(once, piece.loops[k].var, IndexExpr(step));
  once.loops[k].extent = 1;
  return once;
}

bool end_early(LoopPiece& piece, size_t d, IndexExpr so_far, int64_t limit) {
  const IndexExpr& at = piece.coords[d];
  so_far = so_far + IndexExpr(at.constant());
  const IndexExpr left = IndexExpr(limit) - so_far;
  int64_t outer = INT64_MAX;
  size_t digits = 0;
  for (LoopDigit& loop : piece.loops) {
    const auto stride = at.coefficient(loop.var);
    if (stride == 0) continue;
    const bool lanes = piece.has_lanes && &loop == &piece.loops.back();
    if (!stride || *stride > outer || lanes || loop.clip || loop.steps) return false;
    // Digits inside of one that ends with a whole step do so, too.
    const bool whole = digits > 0 && mod(left, outer) == IndexExpr(0);
    if (!whole) loop.clip = Clip{so_far, limit, *stride, 1};
    so_far = so_far + IndexExpr::var(loop.var, loop.extent) * *stride;
    outer = *stride;
    ++digits;
  }
  return digits > 0 && digits == at.terms().size();
}

std::vector<LoopPiece> in_groups(LoopPiece piece, int64_t count, VarSource& vars) {
  if (piece.loops.empty()) return {std::move(piece)};
  const LoopDigit loop = piece.loops.back();
  if (loop.clip || loop.steps) return {std::move(piece)};
  std::vector<LoopPiece> pieces;
  const int64_t groups = loop.extent / count, left = loop.extent % count;
  if (groups > 0) {
    LoopPiece most = piece;
    LoopDigit outer{vars.fresh(), groups, {}, {}}, inner{vars.fresh(), count, {}, {}, Written::kOut};
    substitute_in(most, loop.var, IndexExpr::var(outer.var, groups) * count + IndexExpr::var(inner.var, count));
    most.loops.back() = outer;
    most.loops.push_back(inner);
    pieces.push_back(std::move(most));
  }
  if (left > 0) {
    LoopDigit rest{vars.fresh(), left, {}, {}, Written::kOut};
    substitute_in(piece, loop.var, IndexExpr(groups * count) + IndexExpr::var(rest.var, left));
    piece.loops.back() = rest;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// (Sums of the columns of 1000x63 floats, Zen 4: twice 32 of them 3.5 us, four vectors of 16 2.4; of 1000x33 3.4 and
// 1.6.)
void put_lanes_in_blocks(LoopPiece& piece, int native, int most, VarSource& vars) {
  if (!can_be_in_blocks(piece) || piece.loops.back().extent < 2) return;
  const LoopDigit lane = piece.loops.back();
  const int lanes = lanes_for(lane.extent, native), wide = overlapping_lanes(lane.extent, most * native, native);
  const int64_t vectors = ceil_div(lane.extent, int64_t{lanes}), turns = ceil_div(vectors, int64_t{most});
  const int64_t count = ceil_div(vectors, turns), before = ceil_div(lane.extent, int64_t{wide});
  const int64_t more = turns * count * lanes - before * wide;
  if (more > 0 || (more == 0 && turns >= before)) return;
  lanes_in_blocks(piece, lanes, count, turns, vars);
}

// Tasks of about 20 us balance well and cost less than a hundredth of their work to hand over. Where a region is too
// short for four of them, quarters of 5 us and halves of 1.5 still pay: helpers are awake at the time, and to hand over
// takes 0.3 us (runtime/team.h). Equal tasks in a count that two and four threads share evenly.
int64_t chunks_for(int64_t ns) {
  constexpr int64_t kMost = 256;
  if (ns >= 4 * 20'000) return std::min(ns / (4 * 20'000) * 4, kMost);
  if (ns >= 4 * 5'000) return 4;
  return ns >= 2 * 1'500 ? 2 : 1;
}

namespace {

// The loop to be cut next: the outermost whose steps are apart, as long as loops may change places: no end or beginning
// of one depends on another.
size_t next_to_cut(const LoopPiece& piece, size_t from, const std::function<bool(int)>& apart) {
  auto tied = [](const LoopDigit& l) { return l.clip || (l.steps && !l.steps->first.is_constant()); };
  for (size_t k = from; apart && k < piece.loops.size(); ++k) {
    if (apart(piece.loops[k].var)) return k;
    if (tied(piece.loops[k]) || (k + 1 < piece.loops.size() && tied(piece.loops[k + 1]))) break;
  }
  return from;
}

// The piece with its lanes in strips of at most `most` native vectors, each of which goes through `rows` steps of the
// loop around the lanes before the next: what is the same for all steps stays in registers. Neighbouring strips, and
// neighbouring blocks of steps, may compute some elements both. False where these loops are not of fixed lengths.
bool put_rows_in_strips(LoopPiece& piece, int native, int64_t most, int64_t rows, VarSource& vars) {
  if (!can_be_in_blocks(piece) || piece.loops.size() < 2) return false;
  const size_t at = piece.loops.size() - 2;
  const LoopDigit row = piece.loops[at];
  const int64_t vectors = ceil_div(piece.loops.back().extent, int64_t{native}), turns = ceil_div(vectors, most);
  if (row.clip || row.steps || row.extent < 2 || piece.loops.back().extent < native) return false;
  lanes_in_blocks(piece, native, ceil_div(vectors, turns), turns, vars);
  const int64_t blocks = ceil_div(row.extent, rows), height = ceil_div(row.extent, blocks);
  if (turns > 1) std::swap(piece.loops[at], piece.loops[at + 1]);
  if (turns == 1 || blocks == 1) return true;
  const int64_t last = row.extent - height;
  const LoopDigit block{vars.fresh(), blocks, {}, Steps{IndexExpr(0), height, last}},
      inside{vars.fresh(), height, {}, {}};
  substitute_in(piece, row.var, IndexExpr::var(block.var, Range{0, last}) + IndexExpr::var(inside.var, height));
  piece.loops[at + 1] = inside;
  piece.loops.insert(piece.loops.begin() + static_cast<std::ptrdiff_t>(at), block);
  return true;
}

}  // namespace

size_t split_for_chunks(LoopPiece& piece, int64_t chunks, int64_t grain, VarSource& vars, int64_t overlap,
                        const std::function<bool(int)>& apart) {
  size_t taken = 0;
  int64_t have = 1;
  while (have < chunks && taken < piece.loops.size()) {
    const size_t at = next_to_cut(piece, taken, apart);
    LoopDigit& loop = piece.loops[at];
    bool lane = piece.has_lanes && at + 1 == piece.loops.size();
    int64_t want = (chunks + have - 1) / have;
    if (loop.extent <= want && !lane) {
      have *= loop.extent;
      const auto first = piece.loops.begin() + static_cast<std::ptrdiff_t>(taken++);
      std::rotate(first, piece.loops.begin() + static_cast<std::ptrdiff_t>(at),
                  piece.loops.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      continue;
    }
    if (loop.clip) break;  // its trip count is not known here
    // What both compute is written by both at each step of the loops between: lines that go to and fro.
    const bool both = overlap > 0 && at == taken;
    const auto [unit, per] =
        lane ? part_of_lanes(loop.extent, want, have, grain, both) : part_of_steps(loop.extent, want);
    int64_t parts = (loop.extent + per - 1) / per;
    if (parts < 2) break;
    LoopDigit outer{vars.fresh(), parts, std::nullopt, std::nullopt};
    LoopDigit inner{vars.fresh(), per, std::nullopt, std::nullopt};
    IndexExpr so_far = IndexExpr::var(outer.var, parts) * per;
    if (loop.extent % per != 0 && lane && both) {
      // The last part ends where the digit ends: all parts have the same code, and are longer by what it begins
      // earlier.
      const int64_t begin = std::min(overlap, unit), last = (loop.extent - per) / begin * begin;
      outer.steps = Steps{IndexExpr(0), per, last};
      so_far = IndexExpr::var(outer.var, Range{0, last});
      inner.extent = loop.extent - last;
    } else if (loop.extent % per != 0) {
      inner = part_of(loop, per, so_far);
    }
    if (loop.steps) {
      // The variable keeps its meaning; only its counter starts further up.
      inner.var = loop.var;
      inner.steps = Steps{loop.steps->first + so_far, loop.steps->step, loop.steps->last};
    } else if (!inner.clip) {
      substitute_in(piece, loop.var, so_far + IndexExpr::var(inner.var, per));
    }
    piece.loops[at] = inner;
    piece.loops.insert(piece.loops.begin() + static_cast<std::ptrdiff_t>(taken), outer);
    ++taken;
    break;
  }
  return taken;
}

std::vector<size_t> cut_chains(LoopPiece& piece, int lanes, int64_t most, VarSource& vars) {
  std::vector<size_t> cuts;
  int64_t chain = 1;  // steps of one accumulator inside the last cut
  for (size_t k = piece.loops.size(); k-- > 0;) {
    const LoopDigit loop = piece.loops[k];
    int64_t unit = piece.has_lanes && k + 1 == piece.loops.size() ? lanes : 1;
    int64_t steps = (loop.extent + unit - 1) / unit;
    if (steps <= most / chain) {
      chain *= steps;
    } else if (steps <= most || loop.clip || loop.steps) {
      if (chain > 1) cuts.push_back(k + 1);
      chain = steps;
    } else {
      int64_t inside = std::max<int64_t>(1, most / chain);
      for (int64_t even = inside; even >= std::max<int64_t>(1, inside / 2); --even) {
        if (loop.extent % (even * unit) != 0) continue;
        inside = even;
        break;
      }
      int64_t per = inside * unit, parts = (loop.extent + per - 1) / per;
      LoopDigit outer{vars.fresh(), parts, std::nullopt, std::nullopt};
      LoopDigit inner{vars.fresh(), per, std::nullopt, std::nullopt};
      IndexExpr so_far = IndexExpr::var(outer.var, parts) * per;
      if (loop.extent % per != 0) {
        inner = part_of(loop, per, so_far);
      } else {
        substitute_in(piece, loop.var, so_far + IndexExpr::var(inner.var, per));
      }
      piece.loops[k] = inner;
      piece.loops.insert(piece.loops.begin() + static_cast<std::ptrdiff_t>(k), outer);
      for (size_t& c : cuts) ++c;
      cuts.push_back(k + 1);
      chain = 1;
      ++k;  // the outer part is looked at next
    }
  }
  return cuts;
}

std::function<bool(int)> writes_apart(const LoopPiece& piece,
                                      const std::function<void(AccessWalk&, const Coords&)>& walk, VarSource& vars) {
  constexpr int64_t kLongRow = 16 * kCacheLine;
  AccessWalk accesses(vars);
  walk(accesses, piece.element(piece.coords, 0));
  auto step_of = [](const Access& a, const LoopDigit& l) {
    const auto step = a.address.coefficient(l.var);
    return step ? std::abs(*step) : 0;
  };
  std::map<int, bool> apart;
  for (const LoopDigit& l : piece.loops) {
    const bool in_lanes = piece.has_lanes && &l == &piece.loops.back();
    auto side_by_side = [&](int bytes) {
      return in_lanes || (l.steps && (l.steps->last + l.steps->step) * bytes >= kLongRow);
    };
    apart[l.var] = std::ranges::all_of(accesses.accesses(), [&](const Access& a) {
      const int64_t step = a.write ? step_of(a, l) : 0;
      if (step == 0 || step * a.bytes >= kCacheLine || (step == 1 && side_by_side(a.bytes))) return true;
      return std::ranges::all_of(piece.loops, [&](const LoopDigit& other) { return step_of(a, other) <= step; });
    });
  }
  return [apart](int var) { return apart.at(var); };
}

bool put_shared_in_strips(LoopPiece& piece, const std::function<void(AccessWalk&, const Coords&)>& walk, int native,
                          const TargetInfo& target, VarSource& vars) {
  constexpr int64_t kFewRows = 4, kOthers = 8, kMostVectors = 8, kMany = 3, kFewOperations = 11;
  if (!piece.known_lanes() || piece.together > 1 || piece.loops.size() < 2) return false;
  const LoopDigit &row = piece.loops[piece.loops.size() - 2], &lane = piece.loops.back();
  AccessWalk accesses(vars);
  walk(accesses, piece.coords);
  if (!waits_for_memory(accesses) || accesses.operations() > kFewOperations) return false;
  if (!accesses.edges().empty()) return false;
  int64_t shared = 0, of_shared = 0, bytes = 1;
  for (const Access& a : accesses.accesses()) {
    if (a.bytes == 0 || a.address.coefficient(lane.var) == 0) continue;
    const bool same = is_shared_by_rows(a, row.var, lane.var);
    shared += same;
    (same ? of_shared : bytes) += a.bytes;
  }
  if (shared < 2) return false;
  const int64_t vectors = std::min((target.vector_registers - kOthers) / shared, kMostVectors);
  const bool far = lane.extent * of_shared > target.l1_bytes / 2;
  if (!far && shared < kMany && lane.extent > vectors * native) return false;
  const int64_t rows = std::max(target.l1_bytes / 2 / (lane.extent * bytes), far ? kFewRows : 0);
  return rows >= kFewRows && vectors > 0 && put_rows_in_strips(piece, native, vectors, rows, vars);
}

}  // namespace hlojit::codegen

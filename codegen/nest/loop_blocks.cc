// See loop_order.h: parts of digits that are handled together inside of the loops: squares that are transposed, sums
// that share what they read, results that alternate.
#include <algorithm>
#include <bit>
#include <numeric>

#include "codegen/nest/lane_pattern.h"
#include "codegen/nest/loop_order.h"

namespace hlojit::codegen {

// Several digits that a write's gaps are filled by become one, of which a block can be taken. (The three colours of two
// pixels that share theirs, computed along rows of bytes: 26 us for 90x120 with each byte stored for itself.)
void LoopOrder::merge_filling_digits() {
  for (const Access& a : accesses) {
    const auto stride = a.address.coefficient(loops.back().var);
    if (!a.write || a.random || !stride || *stride < 2 || *stride > in_turn) continue;
    for (std::vector<size_t> digits; (digits = filling_digits(a, *stride)).size() > 1;) {
      if (!std::ranges::all_of(digits, [&](size_t k) { return can_be_innermost(loops[k]); })) return;
      merge(digits[1], digits[0]);
    }
    return;
  }
}

// Are all values along the digit a block, as they alternate in the result?
bool LoopOrder::fills_in_turn(const Access& a, const LoopDigit& l) const {
  return a.write && a.address.coefficient(loops.back().var) == l.extent && l.extent <= in_turn;
}

// The innermost digit that an access which strides along the lanes is contiguous along, or finds rows by, if squares of
// this side fit it. What fills memory without gaps may be of any count, and so may rows found by index.
std::optional<size_t> LoopOrder::digit_of_squares(const Access& a, int side, bool overlap) const {
  const int lane = loops.back().var;
  const bool found = looks_up(a, lane);
  const auto s = a.address.coefficient(lane);
  if (a.bytes == 0 || (a.random && !found) || (!found && (!s || std::abs(*s) <= 1))) return std::nullopt;
  for (size_t k = loops.size() - 1; k-- > 0;) {
    const LoopDigit& l = loops[k];
    const bool all = fills_in_turn(a, l);
    const bool fits = all || std::has_single_bit(static_cast<uint64_t>(std::min<int64_t>(l.extent, side))) ||
                      (found && l.extent <= kFoundRow);
    const bool usable = !l.clip && !l.steps && can_be_innermost(l) && fits &&
                        (all || l.extent % side == 0 || l.extent < side || overlap);
    if (usable && side_by_side(a, l.var)) return k;
  }
  return std::nullopt;
}

// What is packed is turned in smaller squares where those asked for do not fit. (Rows of 12 by 52 as panels of 16, each
// element stored for itself: products of 24 such and 52x4, 10.1 us, 4.0 so. Results: as often slower as faster, and 11
// ms to compile became 61.)
Unroll LoopOrder::choose_unroll(int block, const LoopPlanOptions& options) {
  constexpr int kLeast = 4;
  // (What is packed is a small part of a product, and its code would be longer.)
  if (!options.packs) merge_filling_digits();
  for (int side = block; side == block || (options.packs && side >= kLeast); side /= 2) {
    for (const Access& a : accesses) {
      const auto k = digit_of_squares(a, side, options.overlap);
      if (!k) continue;
      const bool longer = looks_up(a, loops.back().var) && loops[*k].extent > kFoundRow;
      const int64_t most = fills_in_turn(a, loops[*k]) ? loops[*k].extent : side;
      return take_block(*k, longer ? kFoundRow / 2 : most);
    }
  }
  return {};
}

// Rows are transposed 16 bytes at a time whatever their length, so a part is as good as the block, and a quarter of the
// code: LLVM took 6 ms for 16 by 16 floats. Not where the block is memory without gaps; nor where rows leave the cache
// from one part to the next (sum with a transposed 2000x2000: 1.2 times as long, with AVX2 1.4). Unless the block would
// be more code than LLVM takes in time: ten copies of the 16 sines of a leapfrog over f32[64,10] took 4 s, pairs of
// them 0.1. (Steps of five Langevin chains, 1250 operations, took 1.3 times as long one by one.)
int64_t LoopOrder::part_of(const Unroll& block, int64_t operations, int64_t most_bytes) const {
  constexpr int64_t kTooMuchCode = 2500, kMuchCode = 1000;
  if (operations > kTooMuchCode) {
    int64_t part = std::clamp<int64_t>(kMuchCode * block.count / operations, 1, block.count);
    while (block.count % part != 0) --part;
    return part;
  }
  int widest = 1;
  double bytes = 0;
  for (const Access& a : accesses) {
    if (a.bytes == 0 || a.random) continue;
    const Range at = a.address.range();
    bytes += static_cast<double>(a.bytes) * static_cast<double>(at.hi - at.lo + 1);
    widest = std::max(widest, a.bytes);
    auto stride = a.address.coefficient(loops.back().var);
    if (a.address.coefficient(block.var) != 1 || !stride || *stride <= 1) continue;
    if (*stride <= block.count) return block.count;
  }
  if (bytes > static_cast<double>(most_bytes)) return block.count;
  const int64_t part = std::min<int64_t>(block.count, std::max(16 / widest, 2));
  return block.count % part == 0 ? part : block.count;
}

Unroll LoopOrder::take_block(size_t k, int64_t block) {
  const LoopDigit digit = loops[k];
  const auto at = loops.begin() + static_cast<std::ptrdiff_t>(k);
  loops.erase(at);
  int64_t count = std::min<int64_t>(digit.extent, block);
  int inside = vars_.fresh();
  IndexExpr value = IndexExpr::var(inside, count);
  if (digit.extent % count != 0) {
    LoopDigit blocks{vars_.fresh(), (digit.extent + count - 1) / count, std::nullopt,
                     Steps{IndexExpr(0), count, digit.extent - count}};
    value = value + IndexExpr::var(blocks.var, Range{0, digit.extent - count});
    loops.insert(at, blocks);
  } else if (digit.extent > count) {
    LoopDigit blocks{vars_.fresh(), digit.extent / count, std::nullopt, std::nullopt};
    value = value + IndexExpr::var(blocks.var, blocks.extent) * count;
    loops.insert(at, blocks);
  }
  substitute_all(std::vector<IndexExpr::Substitution>{{digit.var, value}});
  return {inside, count, count};
}

// Does going along `inner`, a row at each step, leave lines of an operand of which the next step along `outer` takes
// more? The first cache keeps those that do not meet too many others in the same few of its places.
bool LoopOrder::leaves_lines(const Access& a, const LoopDigit& outer, const LoopDigit& inner) const {
  constexpr int64_t kLine = 64, kPlaces = 64, kWays = 6;
  if (a.write || a.random || a.bytes == 0) return false;
  const int64_t near = std::abs(a.address.coefficient(outer.var).value_or(0)) * a.bytes;
  const int64_t far = std::abs(a.address.coefficient(inner.var).value_or(0)) * a.bytes;
  if (near == 0 || near > kLine || far <= kLine) return false;
  return inner.extent > kWays * kPlaces * kLine / std::max(kLine, std::gcd(far, kPlaces * kLine));
}

// Short rows that change places: a few of them that lie side by side are moved before the next ones, which lie
// elsewhere. (What 256 chains of 500 states wrote, chain by chain, an Emerald Rapids, us: rows of two floats 247, 90
// so; of three 307, 144; of eight 635, 301; of sixteen 934, 640.)
std::optional<int> LoopOrder::digit_of_lines(bool overlap) const {
  if (loops.size() < 3) return std::nullopt;
  const LoopDigit &outer = loops[loops.size() - 3], &inner = loops[loops.size() - 2];
  const bool usable = !outer.clip && !outer.steps && outer.extent > kRowsOfLines && can_be_innermost(outer);
  if (!usable || (outer.extent % kRowsOfLines != 0 && !overlap)) return std::nullopt;
  const bool leaves = std::ranges::any_of(accesses, [&](const Access& a) { return leaves_lines(a, outer, inner); });
  return leaves ? std::optional(outer.var) : std::nullopt;
}

void LoopOrder::keep_lines(int var) {
  const auto at = std::ranges::find(loops, var, &LoopDigit::var);
  if (loops.end() - at < 3) return;
  const Unroll block = take_block(static_cast<size_t>(at - loops.begin()), kRowsOfLines);
  loops.insert(loops.end() - 1, LoopDigit{block.var, block.count, std::nullopt, std::nullopt, Written::kAsLoop});
}

// Does a reduction read elements of it again a step along the digit later: all of them, vectors of a window's weights,
// or some, as windows overlap? What is read outside of reductions has variables of the loops alone. (One weight for all
// lanes is no load of its own: two rows of a convolution of one channel took 1.2 times as long.)
bool LoopOrder::reads_again(const Access& a, const LoopDigit& digit, bool all) const {
  const auto step = a.address.coefficient(digit.var);
  if (a.write || a.bytes == 0 || a.random || !step || all != (*step == 0)) return false;
  if (all && a.address.coefficient(loops.back().var) == 0) return false;
  return std::ranges::any_of(a.address.terms(), [&](const IndexExpr::Term& t) {
    if (t.atom->kind != IndexExpr::AtomKind::kVar || std::ranges::count(loops, t.atom->var, &LoopDigit::var) > 0)
      return false;
    return all || (*step % t.coefficient == 0 && std::abs(*step / t.coefficient) <= t.atom->range.hi);
  });
}

// Do windows that are all a result reads overlap by more than half along the digit? (3x3 sums of 8x112x112x64, a Zen 4,
// one core and two: 2.90 and 1.27 ms, by pairs 2.20 and 0.98. Every second window of three, which overlap by one, gains
// nothing; nor do windows beside whose elements weights are read, one for all lanes: they compute as much as they
// load.)
bool LoopOrder::windows_overlap(const LoopDigit& digit) const {
  return std::ranges::all_of(accesses, [&](const Access& a) {
    if (a.write || a.bytes == 0) return true;
    if (a.address.coefficient(loops.back().var) == 0 || !reads_again(a, digit, false)) return false;
    const int64_t step = std::abs(*a.address.coefficient(digit.var));
    return std::ranges::any_of(a.address.terms(), [&](const IndexExpr::Term& t) {
      const int64_t apart = std::abs(t.coefficient);
      return t.atom->kind == IndexExpr::AtomKind::kVar && !std::ranges::count(loops, t.atom->var, &LoopDigit::var) &&
             step % apart == 0 && 2 * (step / apart) <= t.atom->range.hi;
    });
  });
}

// A digit whose few values alternate in the result along the lanes: all of them at once are stored without gaps. (3x3
// matrices times vectors, each sum scattered three apart: 24 us, XLA:CPU 17.)
std::optional<size_t> LoopOrder::interleaved_digit() const {
  for (const Access& a : accesses) {
    const auto stride = a.address.coefficient(loops.back().var);
    if (!a.write || !stride || *stride < 2 || *stride > kFewStrides) continue;
    for (size_t k = 0; k + 1 < loops.size(); ++k) {
      const LoopDigit& l = loops[k];
      if (l.extent == *stride && !l.clip && !l.steps && can_be_innermost(l) && a.address.coefficient(l.var) == 1)
        return k;
    }
  }
  return std::nullopt;
}

Unroll LoopOrder::choose_interleaved() {
  const auto whole = interleaved_digit();
  return whole ? take_block(*whole, loops[*whole].extent) : Unroll{};
}

// The outermost digit along which windows overlap: neighbours along an inner one lie in the same few rows, which stay
// in cache anyway, but are walked through with gaps then. (Four columns of a depthwise convolution: 2.5 times as long;
// two rows: 0.7.) Else the innermost.
Unroll LoopOrder::choose_shared(const LoopPlanOptions& options) {
  constexpr int64_t kLong = 4;  // vectors
  const int64_t block = options.shared;
  const bool long_rows = loops.back().extent >= kLong * options.max_lanes;
  if (const Unroll whole = choose_interleaved(); whole.var >= 0) return whole;
  auto any = [&](const LoopDigit& l, bool all) {
    return std::ranges::any_of(accesses, [&](const Access& a) { return reads_again(a, l, all); });
  };
  std::optional<size_t> chosen;
  for (size_t k = loops.size() - 1; k-- > 0;) {
    const LoopDigit& l = loops[k];
    bool usable = l.extent > 1 && !l.clip && !l.steps && can_be_innermost(l) &&
                  (l.extent % block == 0 || l.extent < block || options.overlap);
    if (!usable) continue;
    if ((long_rows && windows_overlap(l)) || (any(l, true) && (!chosen || any(l, false)))) chosen = k;
  }
  return chosen ? take_block(*chosen, block) : Unroll{};
}

// Do steps inside of the loops come to elements of the digit's other rows in between? (Those of one row that lie
// together are few, as in a tile: channels of 20x20 images side by side took 2.8 us instead of 1.9.)
bool LoopOrder::alternates(const Access& a, const LoopDigit& digit) const {
  constexpr int64_t kFewBytes = 1024;
  const int64_t stride = a.address.coefficient(digit.var).value_or(0);
  if (a.write || a.bytes == 0 || a.random || stride <= 1 || stride * a.bytes > kFewBytes) return false;
  return std::ranges::any_of(a.address.terms(), [&](const IndexExpr::Term& t) {
    bool outer =
        t.atom->kind == IndexExpr::AtomKind::kVar && std::ranges::count(loops, t.atom->var, &LoopDigit::var) > 0;
    return !outer && t.coefficient == stride * digit.extent;
  });
}

// (The rows of a bf16 pair: its elements can then be stored together.)
Unroll LoopOrder::choose_group(int64_t alternating) {
  auto take = [&](int64_t most, auto fits) -> Unroll {
    for (size_t k = 0; k < loops.size(); ++k) {
      const LoopDigit l = loops[k];
      if (l.clip || l.extent > most || !can_be_innermost(l)) continue;
      if (std::ranges::none_of(accesses, [&](const Access& a) { return fits(a, l); })) continue;
      loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(k));
      return {l.var, l.extent, l.extent};
    }
    return {};
  };
  const Unroll pair = take(4, [](const Access& a, const LoopDigit& l) {
    const bool pairs = std::has_single_bit(static_cast<uint64_t>(l.extent));
    return pairs && a.bytes > 0 && a.bytes * l.extent <= 4 && a.address.coefficient(l.var) == 1;
  });
  return pair.var >= 0 ? pair
                       : take(alternating, [&](const Access& a, const LoopDigit& l) { return alternates(a, l); });
}

}  // namespace hlojit::codegen

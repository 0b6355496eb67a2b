// See loop_order.h. Lanes go to the digit that the larger part of the traffic has at stride 1.
#include "codegen/nest/loop_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ranges>
#include <set>

#include "codegen/nest/lane_pattern.h"

namespace hlojit::codegen {

bool looks_up(const Access& a, int var) {
  return std::ranges::any_of(a.looked_up, [&](const IndexExpr& x) { return x.depends_on(var); });
}

namespace {

using Substitutions = std::vector<IndexExpr::Substitution>;

int64_t stride_of(const Access& a, int var) { return a.address.coefficient(var).value_or(INT64_MAX); }

bool clip_needs(const LoopDigit& inner, const LoopDigit& outer) {
  return inner.clip && inner.clip->so_far.depends_on(outer.var);
}

// From one element along the digit to the next, where lanes would be; between two wraps for reads (load_wrapping.cc).
std::optional<int64_t> lane_step(const Access& a, const LoopDigit& l, int max_lanes) {
  const auto step = a.address.coefficient(l.var);
  if (step || a.write) return step;
  const auto between = between_wraps(a.address, l.var, lanes_for(l.extent, max_lanes));
  return between ? std::optional(between->step) : std::nullopt;
}

// Do elements along the digit follow each other, wherever an index says that they begin?
bool side_by_side(const Access& a, int var) { return a.address.coefficient(var) == 1 && !looks_up(a, var); }

// Elements of a row found by index that are blocks; of longer ones it is half as many.
constexpr int64_t kFoundRow = 8;

}  // namespace

int lanes_for(int64_t extent, int max_lanes) {
  int lanes = 1;
  while (2 * lanes <= max_lanes && 2 * lanes <= extent) lanes *= 2;
  return lanes;
}

int overlapping_lanes(int64_t extent, int wide, int native, bool side_by_side) {
  constexpr int64_t kFewTrips = 8, kLongVector = 16;
  int best = lanes_for(extent, wide);
  auto price = [&](int w) {
    int64_t trips = (extent + w - 1) / w;
    const bool hidden = side_by_side && native >= kLongVector && trips <= kFewTrips;
    return trips * w + trips * native / (hidden ? 8 : 2);
  };
  for (int w = best / 2; w >= native && w > 1; w /= 2) {
    if (price(w) < price(best)) best = w;
  }
  return best;
}

void substitute_in(std::vector<LoopDigit>& loops, std::span<const IndexExpr::Substitution> values) {
  for (LoopDigit& l : loops) {
    if (l.clip) l.clip->so_far = l.clip->so_far.substitute(values);
    if (l.steps) l.steps->first = l.steps->first.substitute(values);
  }
}

LoopOrder::LoopOrder(std::span<const DimPiece* const> pieces, std::span<const int> dim_vars,
                     std::span<const Access> all, VarSource& vars)
    : vars_(vars) {
  for (const DimPiece* piece : pieces) {
    IndexExpr sum(piece->start);
    for (const Digit& digit : piece->digits) {
      LoopDigit loop{vars.fresh(), digit.extent, std::nullopt, std::nullopt};
      if (digit.clipped) loop.clip = Clip{sum, piece->limit, digit.stride, 1};
      sum = sum + IndexExpr::var(loop.var, digit.extent) * digit.stride;
      if (digit.extent > 1 || digit.clipped) loops.push_back(loop);
    }
    coords.push_back(sum);
  }
  for (size_t d = 0; d < pieces.size(); ++d) dims_.push_back({dim_vars[d], coords[d]});
  for (Access a : all) {
    a.address = a.address.substitute(dims_);
    a.looked_up = substitute(a.looked_up, dims_);
    accesses.push_back(std::move(a));
  }
}

void LoopOrder::substitute_all(std::span<const IndexExpr::Substitution> values) {
  for (Access& a : accesses) {
    a.address = a.address.substitute(values);
    a.looked_up = substitute(a.looked_up, values);
  }
  coords = substitute(coords, values);
  for (IndexExpr::Substitution& d : dims_) d.value = d.value.substitute(values);
  substitute_in(loops, values);
}

// Outer and inner are one loop if every address advances evenly across their border.
bool LoopOrder::mergeable(const LoopDigit& outer, const LoopDigit& inner) const {
  if (inner.clip || inner.steps || outer.steps) return false;
  for (const LoopDigit& l : loops) {
    if (clip_needs(l, outer) || clip_needs(l, inner)) return false;
  }
  for (const Access& a : accesses) {
    auto o = a.address.coefficient(outer.var);
    auto i = a.address.coefficient(inner.var);
    if (!o || !i || *o != *i * inner.extent) return false;
  }
  return true;
}

void LoopOrder::merge_digits() {
  for (size_t k = 0; k + 1 < loops.size();) {
    LoopDigit outer = loops[k], inner = loops[k + 1];
    if (!mergeable(outer, inner)) {
      ++k;
      continue;
    }
    merge(k, k + 1);
    if (k > 0) --k;
  }
}

// One loop for both, where the outer one is; the inner one is not clipped.
void LoopOrder::merge(size_t at_outer, size_t at_inner) {
  const LoopDigit outer = loops[at_outer], inner = loops[at_inner];
  LoopDigit merged{vars_.fresh(), outer.extent * inner.extent, outer.clip, std::nullopt};
  if (merged.clip) merged.clip->factor *= inner.extent;
  IndexExpr m = IndexExpr::var(merged.var, merged.extent);
  loops[at_outer] = merged;
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(at_inner));
  substitute_all(Substitutions{{outer.var, floordiv(m, inner.extent)}, {inner.var, mod(m, inner.extent)}});
}

// The access whose memory order decides the loop order: the first write, else the widest read.
const Access* LoopOrder::leader() const {
  const Access* best = nullptr;
  for (const Access& a : accesses) {
    if (a.write) return &a;
    if (a.bytes == 0 || a.random) continue;
    if (!best || a.address.range().hi > best->address.range().hi) best = &a;
  }
  return best;
}

void LoopOrder::order() {
  const Access* lead = leader();
  if (!lead) return;
  auto weight = [&](const LoopDigit& l) {
    int64_t s = stride_of(*lead, l.var);
    return s == INT64_MAX ? s : s < 0 ? -s : s;
  };
  std::ranges::stable_sort(loops, std::greater{}, weight);
  // A clipped digit stays inside the digits its trip count depends on.
  for (size_t k = 0; k < loops.size(); ++k) {
    for (size_t j = k + 1; j < loops.size(); ++j) {
      if (!clip_needs(loops[k], loops[j])) continue;
      std::rotate(loops.begin() + static_cast<std::ptrdiff_t>(k), loops.begin() + static_cast<std::ptrdiff_t>(j),
                  loops.begin() + static_cast<std::ptrdiff_t>(j) + 1);
      k = static_cast<size_t>(-1);
      break;
    }
  }
}

// The digits, innermost first, that fill the gaps of a write which so many elements lie apart: none if there are gaps
// left.
std::vector<size_t> LoopOrder::filling_digits(const Access& write, int64_t stride) const {
  std::vector<size_t> digits;
  for (int64_t filled = 1; filled < stride;) {
    const auto at = std::ranges::find_if(loops, [&](const LoopDigit& o) {
      return o.extent > 1 && !o.clip && !o.steps && stride % (filled * o.extent) == 0 &&
             write.address.coefficient(o.var) == filled;
    });
    if (at == loops.end()) return {};
    filled *= at->extent;
    digits.push_back(static_cast<size_t>(at - loops.begin()));
  }
  return digits;
}

// The write fills memory without gaps if steps along the lanes alternate with short digits of its own: the
// vectors of those digits' values are interleaved in registers (the two words of a random block).
bool LoopOrder::interleaves(const Access& write, int64_t stride, int block) const {
  return stride <= block && !filling_digits(write, stride).empty();
}

// Several digits that a write's gaps are filled by become one, of which a block can be taken. (The three colours of two
// pixels that share theirs, computed along rows of bytes: 26 us for 90x120 with each byte stored for itself.)
void LoopOrder::merge_filling_digits(int block) {
  for (const Access& a : accesses) {
    const auto stride = a.address.coefficient(loops.back().var);
    if (!a.write || a.random || !stride || *stride < 2 || *stride > block) continue;
    for (std::vector<size_t> digits; (digits = filling_digits(a, *stride)).size() > 1;) {
      if (!std::ranges::all_of(digits, [&](size_t k) { return can_be_innermost(loops[k]); })) return;
      merge(digits[1], digits[0]);
    }
    return;
  }
}

// Each lane's element lies where an index says, its neighbours in a digit of their own, which is given: as blocks these
// are rows that are loaded whole.
const LoopDigit* LoopOrder::found_row(const Access& a, const LoopDigit& l, int block) const {
  if (block == 0 || a.write || a.bytes < 2 || !looks_up(a, l.var)) return nullptr;
  const auto row = std::ranges::find_if(
      loops, [&](const LoopDigit& o) { return o.var != l.var && !o.clip && o.extent > 1 && side_by_side(a, o.var); });
  return row == loops.end() ? nullptr : &*row;
}

// Are most elements of the short rows read, so far apart, in which the lanes lie? They are loaded together and
// transposed (load_rows.cc).
bool LoopOrder::reads_rows(const Access& a, int64_t apart) const {
  if (a.write || a.random || apart <= kFewStrides || apart > kShortRow) return false;
  std::set<int64_t> beside;
  for (const Access& o : accesses) {
    const IndexExpr between = o.address - a.address;
    const bool near = between.is_constant() && std::abs(between.constant()) < apart;
    if (near && !o.write && o.parameter == a.parameter) beside.insert(between.constant());
  }
  return 4 * std::ssize(beside) >= 3 * apart;
}

// Elements along the lanes are moved one by one: not in vectors, nor in those of another digit, transposed.
bool LoopOrder::one_by_one(const Access& a, const LoopDigit& l, std::optional<int64_t> s, int block) const {
  constexpr int64_t kFewVectors = 5;  // whose elements are brought into order faster
  if (looks_up(a, l.var)) return true;
  if (s && (std::abs(*s) <= kFewStrides || reads_rows(a, *s))) return false;
  if (s && a.write && interleaves(a, *s, block)) return false;
  return !s || std::ranges::none_of(loops, [&](const LoopDigit& o) {
    const bool square = o.extent >= block || std::has_single_bit(static_cast<uint64_t>(o.extent));
    const bool all = o.extent == *s && o.extent <= kFewVectors;
    return o.var != l.var && !o.clip && (square || all) && a.address.coefficient(o.var) == 1;
  });
}

// Have hardly any elements neighbours in memory, along whichever digit, and is there no more to do with them than to
// fetch them? Lanes put together of such take as long to fill as all of it takes one by one, and ten times the code.
// (Two steps of a wave in three dims that wrap, the ends of whose rows are boxes: 494 ms to compile and 533 us, 92 and
// 498; the curl of three fields 83 ms and 143 us, 40 and 108. Where each waits for the one before, as in running sums,
// lanes are chains side by side: 289 us for those of 501x503 both ways, 888 so.)
bool LoopOrder::scattered(int operations) const {
  constexpr int kWord = 4;  // bytes; what is narrower is converted and rounded, too
  int all = 0, far = 0;
  bool writes = false;
  for (const Access& a : accesses) {
    if (a.bytes == 0) continue;
    const bool alone = !a.random && std::ranges::all_of(loops, [&](const LoopDigit& l) {
      const auto step = a.address.coefficient(l.var);
      return step && (*step == 0 || std::abs(*step) > kFewStrides);
    });
    if (a.bytes < kWord || (a.write && !alone)) return false;
    writes |= a.write;
    ++all;
    far += alone ? 1 : 0;
  }
  return writes && 4 * far >= 3 * all && 2 * operations <= 3 * far;
}

// Is some element where an index says, and no row of its neighbours?
bool LoopOrder::finds_elements() const {
  return std::ranges::any_of(accesses, [&](const Access& a) {
    return a.bytes > 0 && !a.looked_up.empty() &&
           std::ranges::none_of(loops, [&](const LoopDigit& l) { return side_by_side(a, l.var); });
  });
}

// Of the box's elements, those that a read tells apart: for the others it has been done. Digits do not count that fill
// less than half a vector, or are better blocks beside lanes than lanes, and under guards each element may read
// something else. Inside of all that a read depends on, it is done once wherever elements are found one by one: what
// finds them counts little. (Where a row begins, compared with each number of the row: rows were lanes, and conditions
// transposed, 3.2 us for 65x513 instead of 1.)
double LoopOrder::share(const Access& a, int max_lanes, int block, bool light) const {
  const int64_t least = block > 0 ? std::min(block, 8) + (light ? 0 : 1) : max_lanes / 2;
  const bool by_row = light && finds_elements();
  double part = 1;
  bool inside = true;  // of all digits that tell elements apart
  for (const LoopDigit& l : loops | std::views::reverse) {
    const bool same = !guarded && !a.write && !a.random && a.address.coefficient(l.var) == 0;
    inside &= same;
    if (same && l.extent >= (by_row && inside ? 2 : least)) part /= static_cast<double>(l.extent);
  }
  return part;
}

// Bytes a vector step along the digit moves cheaply: contiguous all, small strides some, a splat a little. Less
// `apart` of those that are moved one by one, which parts of vectors take as long for as whole ones: half of it at
// known distances from where an index says. Where little is done beside that, half vectors are worth more than half,
// and less what many results are interleaved for. (5003 rows of 8 by a factor each: 8.6 us by vectors across the rows,
// 8 of which are interleaved, 3.2 by halves along them. 22041 columns of 7 halves, found by index: 101 us by vectors of
// as many columns, 34 along each.)
double LoopOrder::lane_score(const LoopDigit& l, const LoopPlanOptions& options, int block, double apart) const {
  double score = 0, loss = 0;
  // (What is packed into bytes is worked on more than moved: bits of 26x101 bytes took 2.1 times as long by rows of 8.)
  const bool bytes = std::ranges::any_of(accesses, [](const Access& a) { return a.write && a.bytes == 1; });
  const bool light = apart > 0 && !bytes;
  // Sums are blocks of the few values of such a digit (choose_shared).
  const int most = std::max<int>(block, options.shared > 0 || options.interleaves ? kFewStrides : 0);
  for (const Access& a : accesses) {
    if (a.bytes == 0) continue;
    auto s = lane_step(a, l, options.max_lanes);
    double weight = a.bytes * (a.write ? 1.5 : 1.0) * share(a, options.max_lanes, block, light);
    if (const LoopDigit* row = found_row(a, l, block))
      score += 0.4 * weight, loss += apart * weight * (row->extent <= kFoundRow / 2 ? 0.5 : 1.25);
    else if (apart > 0 && one_by_one(a, l, s, block))
      loss += (s && a.random && !looks_up(a, l.var) ? apart / 2 : apart) * weight;
    else if (!s)
      score -= 0.2 * weight;
    else if (*s == 1)
      score += weight;
    else if (*s == -1)
      score += 0.8 * weight;
    else if (*s == 0)
      score += 0.1 * weight;
    else if (a.write && *s > 1 && !options.packs && interleaves(a, *s, most))
      score += (light && *s > kFewStrides ? 0.5 : 0.8) * weight;
    else if (*s > 1 && *s * a.bytes <= 8)
      score += (a.write ? 0.2 : 0.6) * weight;  // groups, or blocks
    else if (!a.write && (std::abs(*s) <= kFewStrides || (apart > 0 && reads_rows(a, *s))))
      score += 0.5 * weight;  // whole vectors, shuffled
    else if (a.write && *s > 1 && interleaves(a, *s, block))
      score += 0.8 * weight;
  }
  double fill = std::min<double>(1.0, static_cast<double>(lanes_for(l.extent, options.max_lanes)) / options.max_lanes);
  return score * (light ? std::sqrt(fill) : fill) - loss;
}

// No other digit's trip count depends on it.
bool LoopOrder::can_be_innermost(const LoopDigit& l) const {
  return std::ranges::none_of(loops, [&](const LoopDigit& o) { return o.var != l.var && clip_needs(o, l); });
}

bool LoopOrder::choose_lanes(const LoopPlanOptions& options, int block, bool moves) {
  // A gather takes a cycle an element, many operations in part of a vector more. (Rows of 7, reversed: 6.1 us by
  // gathers, 1.2 in two halves; 0.9 XLA:CPU. Of rows found by index those of four are best transposed, 0.6 ns each for
  // 1.0, longer ones one after the other: of eight 1.0 for 2.0.)
  const double apart = moves ? 2 : 0;
  // Padding that is summed up has lanes along any digit. (The largest of bf16[4,23,434], padded to
  // [7,26,437]: 23.3 us where padding was taken one by one, half of all elements.)
  const bool nothing_moves = std::ranges::all_of(accesses, [](const Access& a) { return a.bytes == 0; });
  double best = 0;
  size_t at = loops.size();
  for (size_t k = 0; k < loops.size(); ++k) {
    if (loops[k].extent < 2 || !can_be_innermost(loops[k])) continue;
    if (options.in_order && k + 1 != loops.size()) continue;
    if (!nothing_moves && lane_score(loops[k], options, block, 0) <= 0) continue;
    const double s = lane_score(loops[k], options, block, apart);
    if (at == loops.size() || s >= best) best = s, at = k;
  }
  if (at == loops.size()) return false;
  std::rotate(loops.begin() + static_cast<std::ptrdiff_t>(at), loops.begin() + static_cast<std::ptrdiff_t>(at) + 1,
              loops.end());
  return true;
}

// Beside many operations writes a few elements apart do not count: swish of an odd number of rows in T(8,128)(2,1)
// takes 1.6 times as long by single vectors.
bool LoopOrder::lanes_apart(int operations) const {
  const int64_t writes = operations > kManyOperations ? kFewStrides : 1;
  return std::ranges::any_of(accesses, [&](const Access& a) {
    std::optional<int64_t> s = a.address.coefficient(loops.back().var);
    return a.bytes > 0 && (!s || (std::abs(*s) > (a.write ? writes : kFewStrides) && !reads_rows(a, *s)));
  });
}

bool LoopOrder::lanes_looked_up() const {
  return std::ranges::any_of(accesses, [&](const Access& a) { return a.bytes > 0 && looks_up(a, loops.back().var); });
}

// In instructions a vector: widening takes two, one in pairs; storing three and a half, and one. What is only stored
// gains nothing (floats made bf16 1.03; rows of a one-hot matrix, whose halves LLVM chooses as such, 1.32).
bool LoopOrder::lanes_in_pairs() const {
  double saved = 0;
  bool reads = false;
  for (const Access& a : accesses) {
    const auto step = a.address.coefficient(loops.back().var);
    if (!step || a.random || (a.bytes > 0 && *step != 0 && *step != 1)) return false;
    if (a.bytes == 0 || *step == 0) continue;
    reads |= a.halves && !a.write;
    saved += !a.halves ? -1 : a.write ? 2.5 : 1;
  }
  return reads && saved > 0;
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
    const bool fits = std::has_single_bit(static_cast<uint64_t>(std::min<int64_t>(l.extent, side))) ||
                      (a.write && *s == l.extent && l.extent <= side) || (found && l.extent <= kFoundRow);
    const bool usable =
        !l.clip && !l.steps && can_be_innermost(l) && fits && (l.extent % side == 0 || l.extent < side || overlap);
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
  if (!options.packs) merge_filling_digits(block);
  for (int side = block; side == block || (options.packs && side >= kLeast); side /= 2) {
    for (const Access& a : accesses) {
      const auto k = digit_of_squares(a, side, options.overlap);
      if (!k) continue;
      const bool longer = looks_up(a, loops.back().var) && loops[*k].extent > kFoundRow;
      return take_block(*k, longer ? kFoundRow / 2 : side);
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
  if (block.count * operations > kTooMuchCode) {
    int64_t part = std::clamp<int64_t>(kMuchCode / operations, 1, block.count);
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
  substitute_all(Substitutions{{digit.var, value}});
  return {inside, count, count};
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

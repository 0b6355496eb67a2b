// See loop_order.h: the digit that has the lanes. They go to the one that the larger part of the traffic has at
// stride 1.
#include <algorithm>
#include <bit>
#include <cmath>
#include <ranges>

#include "codegen/nest/lane_pattern.h"
#include "codegen/nest/loop_order.h"

namespace hlojit::codegen {
namespace {

// From one element along the digit to the next, where lanes would be; between two wraps for reads (load_wrapping.cc).
std::optional<int64_t> lane_step(const Access& a, const LoopDigit& l, int max_lanes) {
  const auto step = a.address.coefficient(l.var);
  if (step || a.write) return step;
  const auto between = between_wraps(a.address, l.var, lanes_for(l.extent, max_lanes));
  return between ? std::optional(between->step) : std::nullopt;
}

}  // namespace

bool side_by_side(const Access& a, int var) { return a.address.coefficient(var) == 1 && !looks_up(a, var); }

bool looks_up(const Access& a, int var) {
  return std::ranges::any_of(a.looked_up, [&](const IndexExpr& x) { return x.depends_on(var); });
}

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
  return stride <= std::max(block, in_turn) && !filling_digits(write, stride).empty();
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
    else if (!a.write && (std::abs(*s) <= kFewStrides || reads_rows(a, *s)))
      score += 0.5 * weight;  // whole vectors, shuffled
    else if (a.write && *s > 1 && interleaves(a, *s, block))
      score += 0.8 * weight;
  }
  double fill = std::min<double>(1.0, static_cast<double>(lanes_for(l.extent, options.max_lanes)) / options.max_lanes);
  return score * (light ? std::sqrt(fill) : fill) - loss;
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

}  // namespace hlojit::codegen

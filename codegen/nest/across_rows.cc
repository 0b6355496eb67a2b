// Lanes across rows that are shorter than a vector: colours of pixels, coordinates of points. A run of memory that the
// result fills without gaps is gone through vector by vector, wherever its rows end. What lies elsewhere in an operand
// is fetched by loads and constant shuffles (load_pattern.cc), the same in each period: as many whole vectors as hold
// whole rows. (Every second row of 20003x3 bytes, a Zen 4: 5.6 us element by element.)
#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>
#include <utility>

#include "codegen/nest/lane_pattern.h"
#include "codegen/nest/loop_order.h"
#include "layout/divide.h"

namespace hlojit::codegen {
namespace {

// Vectors of a period, each with code of its own.
constexpr int64_t kMostVectors = 16, kEnoughVectors = 4;
// Of all of them. (Two functions of rows of 15, a vector each otherwise: 9 ms to compile became 37.)
constexpr int64_t kMostOperations = 250;
// Loads, shuffles and choices of a vector. (Nine numbers of as many sources side by side, a matrix of a vector's
// coordinates, took 1.5 times as long as when lanes are its rows and the results interleaved.)
constexpr double kMostPrice = 12;
constexpr double kTurn = 2;  // of the loop over periods
constexpr int64_t kMostInterleaved = 4;

using Substitutions = std::vector<IndexExpr::Substitution>;

}  // namespace

// The digits that the result lies along without gaps, innermost first; none if another result lies otherwise.
std::vector<size_t> LoopOrder::filled_digits() const {
  std::vector<size_t> digits;
  auto writes = [](const Access& a) { return a.write && a.bytes > 0; };
  if (std::ranges::none_of(accesses, writes)) return {};
  for (int64_t filled = 1;;) {
    const auto at = std::ranges::find_if(loops, [&](const LoopDigit& l) {
      return l.extent > 1 && !l.clip && !l.steps && can_be_innermost(l) && std::ranges::all_of(accesses, [&](auto& a) {
               return !writes(a) || a.address.coefficient(l.var) == filled;
             });
    });
    if (at == loops.end()) return digits;
    filled *= at->extent;
    digits.push_back(static_cast<size_t>(at - loops.begin()));
  }
}

// Sums of one array that lies along the digit as the result does. (Sums of windows of three, every second one, of
// 119997x3 floats, one core of a Granite Rapids: 92 us by lanes across the positions, 45 so. The larger of two by two
// along rows of 15 took 1.7 times as long, what a selection scatters to rows of 16 1.9. Convolutions of seven groups of
// three features 0.55 of the time, but 52 ms to compile instead of 17.)
bool LoopOrder::sums_along(int var) const {
  auto reads = [](const Access& a) { return !a.write && a.bytes > 0; };
  return std::ranges::count_if(accesses, reads) == 1 &&
         std::ranges::find_if(accesses, reads)->address.coefficient(var) == 1;
}

// Loads, shuffles and `choices` between sources that a vector takes on the average; none if some access has no pattern
// of few runs.
std::optional<double> LoopOrder::price_across(const Across& across, double choices) const {
  double price = 1 + choices, found = 0;
  for (const Access& a : accesses) {
    if (a.write) continue;
    std::vector<int64_t> steps;
    for (size_t k = 0; k <= across.row_digits; ++k) {
      const LoopDigit& l = loops[across.digits[k]];
      const auto step = a.address.coefficient(l.var);
      if (!step || (k < across.row_digits && looks_up(a, l.var))) return std::nullopt;
      steps.push_back(*step);
    }
    const int rows = loops[across.digits[across.row_digits]].var;
    if (looks_up(a, rows)) {
      int64_t length = 1;
      for (size_t k = 0; k < across.row_digits; ++k)
        length += std::abs(steps[k]) * (loops[across.digits[k]].extent - 1);
      const bool in_turn = std::ranges::all_of(a.looked_up, [&](const IndexExpr& x) {
        const int64_t step = x.coefficient(rows).value_or(1);  // or digits of a merged dim
        return step == 0 || step == 1;
      });
      if (!in_turn || steps.back() != 0 || length < 2 || length * a.bytes > most_found_bytes(a.bytes))
        return std::nullopt;
      found += 2.0 * static_cast<double>(across.rows) / static_cast<double>(across.vectors);
      continue;
    }
    if (a.bytes == 0 || std::ranges::all_of(steps, [](int64_t s) { return s == 0; })) continue;
    if (a.bytes > 8) return std::nullopt;
    int64_t windows = 0;
    for (int64_t v = 0; v < across.vectors; ++v) {
      std::vector<int64_t> offsets;
      for (int64_t n = v * across.lanes; n < (v + 1) * across.lanes; ++n) {
        int64_t rest = n, offset = 0;
        for (size_t k = 0; k < across.row_digits; ++k) {
          const int64_t extent = loops[across.digits[k]].extent;
          offset += rest % extent * steps[k];
          rest /= extent;
        }
        offsets.push_back(offset + rest * steps[across.row_digits]);
      }
      const auto needed = std::ssize(windows_of(std::move(offsets), across.lanes));
      if (needed > std::min<int64_t>(kMostWindows, across.lanes / 2)) return std::nullopt;
      windows += needed;
    }
    price += 1.5 * static_cast<double>(windows) / static_cast<double>(across.vectors);
  }
  return price <= kMostPrice ? std::optional(price + found) : std::nullopt;
}

// Is something read for each element of a row? (What is computed of each of two that repeat another was computed twice:
// sines of f32[2076,136], 77 us, 122.)
bool LoopOrder::tells_apart(const Across& across) const {
  if (std::ranges::any_of(accesses, [](const Access& a) { return !a.looked_up.empty(); })) return false;
  return std::ranges::all_of(across.digits | std::views::take(across.row_digits), [&](size_t k) {
    return std::ranges::any_of(accesses,
                               [&](const Access& a) { return !a.write && a.address.coefficient(loops[k].var) != 0; });
  });
}

// Does a vector take fewer loads and shuffles if lanes are the rows and the results are interleaved? Across the rows
// each source is loaded for each vector; choices are constant masks, but a guarded third of a vector is loaded in
// parts. (Zen 4: two sums of c64[128] side by side, each computed once, 0.19 us, across the rows 0.27; u8[43,57,29]
// with gaps of two elements 19.4 and 31.8.)
bool LoopOrder::interleaves_better(const Across& across, int64_t row, double price) const {
  if (row > kMostInterleaved) return false;
  const int rows = loops[across.digits[across.row_digits]].var;
  double loads = 0;
  for (const Access& a : accesses) {
    if (a.write) continue;
    const int64_t step = a.address.coefficient(rows).value_or(-1);
    if ((step != 0 && step != 1) || looks_up(a, rows)) return false;
    loads += static_cast<double>(step);
  }
  const double parts = guarded && row == 3 ? loads : 0;
  return 1 + std::ceil(std::log2(static_cast<double>(row))) + loads / static_cast<double>(row) < price + parts;
}

// What elements of a vector ask of their places is the same for all of them, or for each vector again.
bool LoopOrder::asks_alike(const Across& across, std::span<const Edge> edges) const {
  return std::ranges::all_of(edges, [&](const Edge& e) {
    const IndexExpr at = e.expr.substitute(dims_);
    const Range range = at.range();
    if (range.hi < e.bound || range.lo >= e.bound) return true;
    bool inside = false, outside = false;
    for (int v : at.variables()) {
      const auto d = std::ranges::find(across.digits, v, [&](size_t k) { return loops[k].var; });
      const auto k = static_cast<size_t>(d - across.digits.begin());
      if (k == across.row_digits) return false;
      (k < across.row_digits ? inside : outside) = true;
    }
    return !(inside && outside);
  });
}

// Of the lane counts and rows that there may be, the ones that take least.
std::optional<LoopOrder::Across> LoopOrder::across_rows(int native, bool overlap, const AccessWalk& walk) const {
  const std::vector<Edge>& edges = walk.edges();
  const int operations = walk.operations();
  const std::vector<size_t> digits = filled_digits();
  if (digits.size() < 2 || loops[digits[0]].extent >= native) return std::nullopt;
  if (walk.has_reduction() && !sums_along(loops[digits[0]].var)) return std::nullopt;
  std::optional<Across> best;
  int64_t row = 1;
  for (size_t k = 1; k < digits.size(); ++k) {
    row *= loops[digits[k - 1]].extent;
    const int64_t rows = loops[digits[k]].extent;
    for (int64_t lanes = native; lanes >= 4 && 4 * lanes >= native; lanes /= 2) {
      const int64_t least = row / std::gcd(row, lanes);
      Across across{digits, k, lanes, least, least * lanes / row, 0, 0};
      if (least > kMostVectors || across.rows > rows) continue;
      if (operations > kManyOperations && (least * operations > kMostOperations || !tells_apart(across))) continue;
      const double choices = static_cast<double>(edges.size()) / 2;
      const auto price = price_across(across, choices);
      if (!price) continue;
      if (interleaves_better(across, row, *price - choices)) return std::nullopt;
      for (across.vectors = least; across.vectors <= std::max(least, kEnoughVectors); across.vectors += least) {
        across.rows = across.vectors * lanes / row;
        if (across.rows > rows || (across.vectors > least && across.vectors * operations > kMostOperations)) break;
        across.left = overlap ? 0 : rows % across.rows;
        const auto periods = static_cast<double>(overlap ? ceil_div(rows, across.rows) : rows / across.rows);
        const double all = periods * (static_cast<double>(across.vectors) * *price + kTurn) +
                           static_cast<double>(across.left * row) * *price;
        across.price = all / static_cast<double>(rows * row);
        if (!best || across.price < best->price) best = across;
      }
    }
  }
  return best && asks_alike(*best, edges) ? best : std::nullopt;
}

LoopOrder LoopOrder::split_off_left(const Across& across) {
  LoopOrder rest = *this;
  const size_t at = across.digits[across.row_digits];
  LoopDigit& rows = loops[at];
  const int64_t first = rows.extent - across.left;
  auto narrow = [&](LoopOrder& order, int64_t begin, int64_t extent) {
    const int var = std::exchange(order.loops[at].var, vars_.fresh());
    order.loops[at].extent = extent;
    const IndexExpr inside = IndexExpr::var(order.loops[at].var, extent) + IndexExpr(begin);
    order.substitute_all(Substitutions{{var, inside}});
  };
  narrow(*this, 0, first);
  narrow(rest, first, across.left);
  if (across.left == 1) rest.loops.erase(rest.loops.begin() + static_cast<std::ptrdiff_t>(at));
  return rest;
}

Unroll LoopOrder::lay_across(const Across& across) {
  const LoopDigit rows = loops[across.digits[across.row_digits]];
  const Unroll block{vars_.fresh(), across.vectors, across.vectors, across.lanes};
  const LoopDigit lane{vars_.fresh(), across.lanes, std::nullopt, std::nullopt};
  LoopDigit periods{vars_.fresh(), ceil_div(rows.extent, across.rows), std::nullopt, std::nullopt};
  IndexExpr first = IndexExpr::var(periods.var, periods.extent) * across.rows;
  if (rows.extent % across.rows != 0) {
    const int64_t last = rows.extent - across.rows;
    periods.steps = Steps{IndexExpr(0), across.rows, last};
    first = IndexExpr::var(periods.var, Range{0, last});
  }
  IndexExpr rest =
      IndexExpr::var(block.var, Range{0, block.value(block.count - 1)}) + IndexExpr::var(lane.var, lane.extent);
  Substitutions values;
  for (size_t k = 0; k < across.row_digits; ++k) {
    const LoopDigit& l = loops[across.digits[k]];
    values.push_back({l.var, mod(rest, l.extent)});
    rest = floordiv(rest, l.extent);
  }
  values.push_back({rows.var, first + rest});
  std::vector<LoopDigit> outer;
  for (size_t k = 0; k < loops.size(); ++k) {
    const auto end = across.digits.begin() + static_cast<std::ptrdiff_t>(across.row_digits) + 1;
    if (std::find(across.digits.begin(), end, k) == end) outer.push_back(loops[k]);
  }
  loops = std::move(outer);
  if (periods.extent > 1) loops.push_back(periods);
  loops.push_back(lane);
  substitute_all(values);
  return block;
}

}  // namespace hlojit::codegen

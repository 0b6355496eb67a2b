// Cutting a dimension so that every address becomes affine.
//
// Coarse to fine: where all breaks repeat with a period shorter than the range, the range becomes
// an outer digit over periods around the pattern of one period; else it is split at the coarsest
// breaks and each part is cut on its own. Aligned tiles 8 | 128 | 1024 thus take three steps and
// give one piece of four digits. Equal neighbours are joined again under a digit of their own
// wherever every break's quotient is affine in it, which any two neighbours satisfy (unless the
// place of the break moves with another variable):
//
//     tiles 8 and 12, n = 96:  period 24, runs 8 | 4 4 | 8  ->  three pieces
//     reverse of 60 in tiles of 8:  period 8, runs 4 4      ->  one piece {8,8} {4,2} {1,4}
//
// A period may begin anywhere; the phase that needs the fewest pieces wins, with what lies before
// it as a head. Only the end of the whole range may be clipped: inside a pattern a partial period
// is cut off as pieces of its own. Each step halves the range or drops a break, and phases are few,
// so this takes microseconds.
#include "layout/digits.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "layout/tiling.h"

namespace hlojit {
namespace {

using Pieces = std::vector<DimPiece>;

// Breaks in the coordinates of the dimension: wraps at `phase` + any multiple of `width`, with
// `within` > 0 only up to the next `phase` + multiple of `within`.
struct Wrap {
  int64_t width;
  int64_t phase;
  int64_t within;
  bool moves;  // other variables choose the phase: slopes may differ between its values
  int64_t period() const { return within > 0 ? within : width; }
  bool operator==(const Wrap&) const = default;
};

// First position >= x where the outermost count of a wrap begins anew.
int64_t first_at(const Wrap& w, int64_t x) { return x + mod(w.phase - x, w.period()); }

// The wraps that matter strictly inside (x, y), as seen from there.
std::vector<Wrap> inside(const std::vector<Wrap>& wraps, int64_t x, int64_t y) {
  std::vector<Wrap> out;
  for (Wrap w : wraps) {
    if (w.within > 0 && first_at(w, x + 1) >= y) {  // one block: the count never restarts here
      w.phase = first_at(w, x + 1) - w.within;
      w.within = 0;
    }
    if (first_at(w, x + 1) >= y) continue;
    w.phase = mod(w.phase, w.period());
    if (std::ranges::find(out, w) == out.end()) out.push_back(w);
  }
  return out;
}

int64_t common_period(const std::vector<Wrap>& wraps) {
  int64_t period = 1;
  for (const Wrap& w : wraps) {
    period = saturating_product(period / std::gcd(period, w.period()), w.period());
  }
  return period;
}

int64_t length(const DimPiece& piece) { return piece.limit - piece.start; }

// What a wrap's floordiv and mod make of position i: the digits it would take.
struct Quotients {
  int64_t outer, inner;
};
Quotients quotients(const Wrap& w, int64_t i) {
  int64_t at = i - w.phase;
  if (w.within == 0) return {floordiv(at, w.width), 0};
  return {floordiv(at, w.within), mod(at, w.within) / w.width};
}

// Is a wrap's quotient an affine function of the digits, over all their values, also those a limit
// would cut off? False for grids too large to look at.
bool affine_in(const Wrap& w, int64_t start, std::span<const Digit> digits) {
  constexpr int64_t kMaxPoints = 512;
  // Whole periods are affine by themselves. What is left may stay inside one count.
  std::vector<Digit> outer;
  int64_t points = 1, reach = 0;
  for (const Digit& d : digits.first(digits.size() - 1)) {
    if (d.stride % w.period() == 0) continue;
    outer.push_back(d);
    points = saturating_product(points, d.extent);
    reach += d.stride * (d.extent - 1);
  }
  int64_t run = digits.back().extent - 1;
  auto same = [](Quotients a, Quotients b) { return a.outer == b.outer && a.inner == b.inner; };
  Quotients base = quotients(w, start);
  if (same(base, quotients(w, start + reach + run))) return true;
  if (w.moves || points > kMaxPoints) return false;
  for (int64_t n = 0; n < points; ++n) {
    int64_t rest = n, at = start;
    Quotients affine = base;
    for (const Digit& d : outer) {
      int64_t value = rest % d.extent;
      rest /= d.extent;
      at += value * d.stride;
      Quotients unit = quotients(w, start + d.stride);
      affine.outer += value * (unit.outer - base.outer);
      affine.inner += value * (unit.inner - base.inner);
    }
    if (!same(affine, quotients(w, at)) || !same(affine, quotients(w, at + run))) return false;
  }
  return true;
}

bool affine_in(const std::vector<Wrap>& wraps, const DimPiece& piece) {
  return std::ranges::all_of(wraps, [&](const Wrap& w) { return affine_in(w, piece.start, piece.digits); });
}

bool same_form(const DimPiece& a, const DimPiece& b) {
  return length(a) == length(b) && std::ranges::equal(a.digits, b.digits, [](const Digit& x, const Digit& y) {
           return x.stride == y.stride && x.extent == y.extent;
         });
}

// Does a piece hold every value between its start and its limit?
bool contiguous(const DimPiece& piece) {
  int64_t count = 1;
  for (const Digit& d : piece.digits) count *= d.extent;
  return count == length(piece);
}

// Joins runs of equal adjacent pieces into one with a new outer digit.
Pieces join_equal(const Pieces& pieces, const std::vector<Wrap>& wraps) {
  Pieces out;
  for (size_t i = 0; i < pieces.size();) {
    size_t count = 1;
    bool whole = contiguous(pieces[i]);
    while (whole && i + count < pieces.size() && same_form(pieces[i], pieces[i + count]) &&
           pieces[i + count].start == pieces[i + count - 1].limit) {
      ++count;
    }
    DimPiece joined = pieces[i];
    for (; count > 1; --count) {
      joined.digits.insert(joined.digits.begin(), Digit{length(pieces[i]), static_cast<int64_t>(count)});
      if (affine_in(wraps, joined)) break;
      joined.digits.erase(joined.digits.begin());
    }
    joined.limit = pieces[i + count - 1].limit;
    out.push_back(std::move(joined));
    i += count;
  }
  return out;
}

// Fewer pieces are better; among as many, the longer runs (fewer digits).
std::pair<size_t, size_t> cost(const Pieces& pieces) {
  size_t digits = 0;
  for (const DimPiece& p : pieces) digits += p.digits.size();
  return {pieces.size(), digits};
}

class Cutter {
 public:
  Cutter(const std::vector<Wrap>& all, int max_pieces) : all_(all), max_pieces_(static_cast<size_t>(max_pieces)) {}

  // Pieces for [x, y); `open`: the end may be clipped. nullopt: more pieces than allowed.
  std::optional<Pieces> cut(int64_t x, int64_t y, const std::vector<Wrap>& all, bool open) {
    if (x >= y) return Pieces{};
    // Phases multiply with depth; a dimension that needs this much search has too many runs anyway.
    if (++steps_ > kMaxSteps) return std::nullopt;
    std::vector<Wrap> wraps = inside(all, x, y);
    if (wraps.empty()) return Pieces{{.start = x, .limit = y, .digits = {{1, y - x}}}};
    int64_t period = common_period(wraps);
    std::optional<Pieces> best;
    if (period >= y - x) {
      best = split(x, y, wraps, open);
    } else {
      for (int64_t phase : phases(x, period, wraps)) {
        std::optional<Pieces> found = repeat(x, y, phase, period, wraps, open);
        if (found && (!best || cost(*found) < cost(*best))) best = std::move(found);
        if (best && best->size() == 1) break;
      }
    }
    if (best && best->size() > max_pieces_) return std::nullopt;
    return best;
  }

 private:
  static constexpr int kMaxSteps = 4000;
  static constexpr int64_t kShortPeriod = 4;

  // Where periods could begin: at x itself, or where some count begins anew.
  static std::vector<int64_t> phases(int64_t x, int64_t period, const std::vector<Wrap>& wraps) {
    constexpr size_t kMaxPhases = 6;
    std::vector<int64_t> out = {x};
    for (const Wrap& w : wraps) {
      if (w.period() != period && wraps.size() > 3) continue;
      int64_t at = first_at(w, x);
      if (std::ranges::find(out, at) == out.end() && out.size() < kMaxPhases) out.push_back(at);
    }
    return out;
  }

  // A head before `phase`, then periods, each cut alike. At phase x there is room for one period.
  std::optional<Pieces> repeat(int64_t x, int64_t y, int64_t phase, int64_t period, const std::vector<Wrap>& wraps,
                               bool open) {
    if (phase >= y) return std::nullopt;
    if (period > y - phase) return both(x, phase, y, wraps, open);
    std::optional<Pieces> head = cut(x, phase, wraps, false);
    std::optional<Pieces> pattern = head ? cut(phase, phase + period, wraps, false) : std::nullopt;
    if (!pattern) return std::nullopt;
    int64_t whole = (y - phase) / period;
    // A loop of two or three steps that may end early gives up more than a piece for the end costs.
    bool short_steps = period <= kShortPeriod && whole > kShortPeriod && (y - phase) % period != 0;
    if (open && !short_steps) {
      Pieces out = *head;
      for (DimPiece piece : *pattern) {
        int64_t times = ceildiv(y - piece.start, period);
        if (times > 1) {
          piece.digits.insert(piece.digits.begin(), Digit{period, times});
          piece.limit = y;
        }
        piece.limit = std::min(piece.limit, y);
        out.push_back(std::move(piece));
      }
      // Digits reach beyond y until they are clipped; a wrap out there would spoil the address.
      if (std::ranges::all_of(out, [&](const DimPiece& p) { return affine_in(all_, p); })) return out;
    }
    Pieces out = *std::move(head);
    for (DimPiece piece : *pattern) {
      if (whole > 1) piece.digits.insert(piece.digits.begin(), Digit{period, whole});
      piece.limit += (whole - 1) * period;
      out.push_back(std::move(piece));
    }
    std::optional<Pieces> tail = cut(phase + whole * period, y, wraps, open);
    if (!tail) return std::nullopt;
    out.insert(out.end(), tail->begin(), tail->end());
    return join_equal(out, wraps);
  }

  std::optional<Pieces> both(int64_t x, int64_t middle, int64_t y, const std::vector<Wrap>& wraps, bool open) {
    std::optional<Pieces> first = cut(x, middle, wraps, false);
    std::optional<Pieces> second = first ? cut(middle, y, wraps, open) : std::nullopt;
    if (!second) return std::nullopt;
    first->insert(first->end(), second->begin(), second->end());
    return first;
  }

  // Splits at the coarsest wraps; each part is cut on its own.
  std::optional<Pieces> split(int64_t x, int64_t y, const std::vector<Wrap>& wraps, bool open) {
    constexpr int64_t kMaxParts = 64;
    int64_t coarsest = 0;
    for (const Wrap& w : wraps) coarsest = std::max(coarsest, w.period());
    std::vector<int64_t> at = {x, y};
    for (const Wrap& w : wraps) {
      if (w.period() != coarsest) continue;
      if ((y - x) / coarsest > kMaxParts) return std::nullopt;
      for (int64_t p = first_at(w, x + 1); p < y; p += coarsest) at.push_back(p);
    }
    std::ranges::sort(at);
    at.erase(std::ranges::unique(at).begin(), at.end());
    if (static_cast<int64_t>(at.size()) > kMaxParts) return std::nullopt;
    Pieces out;
    for (size_t i = 0; i + 1 < at.size(); ++i) {
      bool last = i + 2 == at.size();
      std::optional<Pieces> part = cut(at[i], at[i + 1], wraps, open && last);
      if (!part) return std::nullopt;
      out.insert(out.end(), part->begin(), part->end());
    }
    return join_equal(out, wraps);
  }

  const std::vector<Wrap>& all_;
  size_t max_pieces_;
  int steps_ = 0;
};

// Drops loops that run once and marks digits that the limit can cut short. Only the last iterations
// of the outer digits come near the limit, so it suffices to follow those.
void finish(DimPiece& piece) {
  std::erase_if(piece.digits, [](const Digit& d) { return d.extent == 1; });
  if (piece.digits.empty()) piece.digits.push_back({1, 1});
  int64_t left = length(piece);
  for (Digit& d : piece.digits) {
    int64_t trips = ceildiv(left, d.stride);
    d.clipped = trips < d.extent;
    left -= (std::min(trips, d.extent) - 1) * d.stride;
  }
}

// As many of the wraps as fit, finest first: those meet the inner loops. Wraps of one width come
// and go together, for they often belong to one address, which needs all of them or none.
Pieces cut_what_fits(int64_t x, int64_t y, std::vector<Wrap> wraps, int max_runs) {
  auto group = [](const Wrap& w) { return std::pair(w.width, w.within); };
  std::ranges::sort(wraps, {}, group);
  std::vector<Wrap> kept;
  Pieces best = {{.start = x, .limit = y, .digits = {{1, y - x}}}};
  for (auto from = wraps.begin(); from != wraps.end();) {
    auto to = std::find_if(from, wraps.end(), [&](const Wrap& w) { return group(w) != group(*from); });
    size_t before = kept.size();
    kept.insert(kept.end(), from, to);
    if (std::optional<Pieces> pieces = Cutter(kept, max_runs).cut(x, y, kept, true)) {
      best = *std::move(pieces);
    } else {
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(before), kept.end());
    }
    from = to;
  }
  return best;
}

}  // namespace

DimCut cut_dimension(int64_t n, std::span<const Break> breaks, std::span<const int64_t> edges, int max_runs) {
  std::vector<int64_t> at = {0, n};
  for (int64_t e : edges) {
    if (e > 0 && e < n) at.push_back(e);
  }
  std::ranges::sort(at);
  at.erase(std::ranges::unique(at).begin(), at.end());
  std::vector<Wrap> wraps;
  for (const Break& b : breaks) {
    bool nested = b.within > b.width;
    int64_t period = nested ? b.within : b.width;
    wraps.push_back({b.width, mod(-mod(b.offset, period), period), nested ? b.within : 0, b.moves});
  }
  DimCut out;
  for (size_t i = 0; i + 1 < at.size(); ++i) {
    int64_t x = at[i], y = at[i + 1];
    std::vector<Wrap> here = inside(wraps, x, y);
    std::optional<Pieces> pieces = Cutter(wraps, max_runs).cut(x, y, here, true);
    if (!pieces) pieces = cut_what_fits(x, y, here, max_runs);
    for (DimPiece& piece : *pieces) {
      finish(piece);
      out.pieces.push_back(std::move(piece));
    }
  }
  return out;
}

}  // namespace hlojit

// See lane_widths.h.
#include "codegen/nest/lane_widths.h"

#include <algorithm>
#include <bit>

#include "codegen/nest/loop_order.h"

namespace hlojit::codegen {
namespace {

// Lanes of the last of several vectors, if the rest of a digit is much less than such a vector; 0 else. `least`: fewer
// take as long.
int last_lanes(int64_t extent, int lanes, int least) {
  const int64_t full = extent / lanes, rest = extent % lanes;
  const int last = std::max(least, static_cast<int>(std::bit_ceil(static_cast<uint64_t>(rest))));
  return rest > 0 && 8 * (lanes - last) > (full + 1) * lanes ? last : 0;
}

// Of all vectors of a digit, the last one moved back or narrower.
int64_t lanes_computed(int64_t extent, int lanes, int least) {
  const int64_t full = extent / lanes, last = last_lanes(extent, lanes, least);
  return full * lanes + (extent % lanes == 0 ? 0 : last > 0 ? last : lanes);
}

}  // namespace

LaneWidths lane_widths(const LoopPiece& piece, int wide, int native, bool overlap, Last last) {
  if (!piece.has_lanes) return {{1}};
  const LoopDigit& lane = piece.loops.back();
  int w = lanes_for(lane.extent, wide), n = std::min(native, w);
  if (overlap && !lane.clip && w > 1) {
    w = overlapping_lanes(lane.extent, wide, native, piece.side_by_side);
    const bool one_by_one = piece.apart || piece.looked_up;
    // A quarter of a register takes a Zen 4 half as long as all of it, and is rarely in two lines of the cache. (Pools
    // by 3x3 and 2x2 of 17 features, one core: 8.2 and 3.0 us by two registers, 6.6 and 2.5 so; rotary embeddings of 33
    // 3.4 and 2.8.)
    const int least = one_by_one ? 1 : std::max(1, n / 4);
    // Lanes that cost one by one are not computed twice for the sake of a few vectors side by side. (Elements of rows
    // of 203 by 51 indices a row, one core of a Zen 5: 4.3 us by 64, 3.2 by 48 and 4.)
    for (int v = w / 2; last == Last::kNarrower && one_by_one && v >= n && v > 1; v /= 2) {
      const int64_t now = lanes_computed(lane.extent, w, least), then = lanes_computed(lane.extent, v, least);
      if (8 * (now - then) > now) w = v;
    }
    if (lane.extent % w == 0) return {{w}};
    // As many vectors, of parts that do not overlap: who reads a row back at once, as the next kernel of a loop does,
    // finds each of its parts in one store on its way. What lies in two makes the load wait until both are done. (Heun
    // steps of three floats, one core of a Zen 4: 32.1 us by 2 and 2, 29.7 by 2 and 1; implicit Euler steps 142 and
    // 128.)
    if (last != Last::kAsOthers && lane.extent < native && std::has_single_bit(static_cast<uint64_t>(lane.extent % w)))
      return {{w, static_cast<int>(lane.extent % w)}};
    return {{w}, Rest::kMovedBack, last == Last::kNarrower ? last_lanes(lane.extent, w, least) : 0};
  }
  // Of a vector that there may be one of or none, the end is not known to lie in the digit, and places in a tile seem
  // to wrap. (Bytes as floats in panels of 48, the last of them clipped: 62 us for 694x249 one by one, 20 so.)
  while (lane.clip && w > n && lane.extent < 2 * w) w /= 2;
  LaneWidths all{{w}};
  bool exact = !lane.clip && lane.extent % w == 0;
  if (n < w && !exact) {
    all.widths.push_back(n);
    exact = !lane.clip && lane.extent % w % n == 0;
  }
  if (!exact && all.widths.back() > 1) all.widths.push_back(1);
  return all;
}

LaneWidths halving_widths(const LoopPiece& piece, int wide, int native) {
  LaneWidths all = lane_widths(piece, wide, native, false);
  const int last = all.widths.back();
  if (last > 1 || all.widths.size() == 1 || piece.loops.back().clip) return all;
  all.widths.pop_back();
  const int64_t rest = piece.loops.back().extent % all.widths.back();
  for (int w = all.widths.back() / 2; w > 0; w /= 2) {
    if ((rest & w) != 0) all.widths.push_back(w);
  }
  return all;
}

LaneWidths narrowing_widths(const LoopPiece& piece, int wide, int native, bool masks) {
  constexpr int64_t kLittle = 32;  // operations, done one by one
  const int64_t extent = piece.loops.back().extent;
  auto dear = [&](int64_t elements) { return elements * piece.operations > kLittle; };
  auto half = [](int64_t elements) { return static_cast<int>(std::bit_floor(static_cast<uint64_t>(elements))); };
  auto whole = [](int64_t elements) { return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(elements))); };
  if (masks && extent < native && dear(extent - half(extent))) return {{whole(extent)}, Rest::kMasked};
  LaneWidths all{.widths = {lanes_for(extent, wide)}};
  int64_t rest = extent % all.widths[0];
  auto follow = [&](int lanes) {
    all.widths.push_back(lanes);
    rest %= lanes;
  };
  if (rest >= native) follow(native);
  if (dear(rest)) {
    if (masks && dear(rest - half(rest))) all.rest = Rest::kMasked;
    follow(all.rest == Rest::kMasked ? whole(rest) : half(rest));
  }
  if (rest > 0 && all.rest != Rest::kMasked) follow(1);
  return all;
}

}  // namespace hlojit::codegen

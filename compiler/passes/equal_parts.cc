// See equal_parts.h.
#include "compiler/passes/equal_parts.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace hlojit {
namespace {

constexpr int64_t kFewestParts = 16, kRowsOfPart = 64;  // at least: the row that a part leaves is little beside them
constexpr int64_t kAlignedElements = 16;
// Strips of 1 kB, or two, are a core's, and going through a few rows again costs more.
constexpr int64_t kShortRow = 4 << 10, kShortRowOfMemory = 16 << 10, kMinInColumns = 1 << 19;

}  // namespace

// (Sums of columns on one core of a Zen 4, by divisors alone and by these: 1023x1023 80 us and 56, 1024x1000 68 and 51,
// 1023x600 45 and 31, 2000x500 58 and 51. On two cores even numbers share out: 1021x1019 35 us in 15 parts, 29 in 12.)
int64_t parts_of(int64_t n, int64_t wanted, int64_t inner) {
  auto rank = [&](int64_t parts) {
    const int64_t rest = n % parts;
    return std::tuple(rest != 0, std::max(rest, n / kMostParts), n / parts * inner % kAlignedElements != 0,
                      parts % 2 != 0, std::abs(parts - wanted));
  };
  int64_t best = wanted;
  for (int64_t parts = std::max<int64_t>(wanted / 2, 1); parts <= std::min(n, 2 * wanted); ++parts) {
    if (rank(parts) < rank(best)) best = parts;
  }
  return best;
}

int64_t parts_of_rows(int64_t n, int64_t inner) {
  return parts_of(n, std::clamp(n / kRowsOfPart, kFewestParts, kMostParts), inner);
}

// From memory longer ones come faster, too, if each core reads its own from end to end. (Sums of the columns of
// 32768x1024 floats, one and two cores of a Zen 4: 9.7 and 5.4 ms by strips of a kilobyte, 5.0 and 2.6 so; of
// 16384x2048 8.0 and 4.3, 5.5 and 2.6; 8192x4096 6.0 and 2.2 either way.)
// So they do from a last level that is far: what is prefetched beyond a strip's end is another core's. (A Granite
// Rapids, one and two cores: 1400x1401 324 and 215 us by strips, 272 and 136 so; 1024x1024 169 and 85, 142 and 36;
// 2000x2001 617 and 295, 549 and 290.)
bool sums_short_rows(const Shape& rows, int64_t row_bytes, const TargetInfo& target) {
  const bool far = rows.dense_bytes() > target.near_bytes();
  const int64_t longest = far ? kShortRowOfMemory : kShortRow;
  return row_bytes < longest && rows.element_count() >= kMinInColumns;
}

Instruction* slice_along(Computation& c, Instruction* x, int64_t d, int64_t start, int64_t limit) {
  Shape shape = x->shape;
  shape.dims[d] = limit - start;
  Instruction* part = c.add(Opcode::kSlice, std::move(shape), {x}, x->name);
  for (int64_t n : x->shape.dims) part->attrs.slice.push_back({0, n, 1});
  part->attrs.slice[d] = {start, limit, 1};
  return part;
}

Instruction* split_dim(Computation& c, Instruction* x, int64_t d, int64_t parts) {
  Shape shape = x->shape;
  int64_t rest = shape.dims[d] / parts;
  shape.dims[d] = parts;
  shape.dims.insert(shape.dims.begin() + d + 1, rest);
  std::vector<int64_t> minor;
  for (int64_t m : x->shape.layout.minor_to_major) {
    if (m == d) minor.push_back(d + 1);
    minor.push_back(m > d ? m + 1 : m);
  }
  shape.layout.minor_to_major = std::move(minor);
  return c.add(Opcode::kReshape, std::move(shape), {x}, x->name);
}

WindowDim window_of_parts(int64_t parts) {
  return {.size = parts, .stride = std::max<int64_t>(parts - 1, 1), .lhs_dilate = parts};
}

bool is_window_of_parts(const WindowDim& window, int64_t places) {
  return window.size > 1 && window.size == places && window == window_of_parts(places);
}

bool lies_beside_next(const Shape& shape, int64_t d) {
  const std::vector<int64_t>& minor = shape.layout.minor_to_major;
  const auto next = std::ranges::find(minor, d + 1);
  return !shape.layout.tiled() && next != minor.end() && next + 1 != minor.end() && *(next + 1) == d;
}

Instruction* join_with_next(Computation& c, Instruction* x, int64_t d) {
  Shape shape = x->shape;
  shape.dims[d] *= shape.dims[d + 1];
  shape.dims.erase(shape.dims.begin() + d + 1);
  std::vector<int64_t>& minor = shape.layout.minor_to_major;
  std::erase(minor, d + 1);
  for (int64_t& m : minor) m -= m > d ? 1 : 0;
  return c.add(Opcode::kReshape, std::move(shape), {x}, x->name);
}

}  // namespace hlojit

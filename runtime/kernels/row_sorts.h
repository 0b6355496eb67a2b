// Ascending sorts of many short rows of unsigned integers: rows go side by side in the lanes of vectors, and the same
// exchanges of elements sort all of them.
#pragma once

#include <cstdint>

namespace hlojit {

/// Of longer rows the exchanges, n log^2 n of them, take longer than a sort of each in vectors of its own. (500 rows of
/// s32, one thread of a Zen 4: of 12, 20 and 32 keys 38, 74 and 141 us one by one, 8, 11 and 15 so; of 64 43, and 84
/// so, before keys were transposed in registers.)
constexpr int64_t kMostInColumns = 32;

/// Fewer than half the rows that a line of the cache has keys leave most lanes empty. (Two rows of 12 f32: 0.3 us one
/// by one, 0.6 so; three of 32 1.0 and 1.6.)
template <class Key>
constexpr bool sorts_in_columns(int64_t n, int64_t count) {
  return n <= kMostInColumns && 2 * count * static_cast<int64_t>(sizeof(Key)) >= 64;
}

/// Sorts each of `count` rows of n keys, one row behind the other, in place; n <= kMostInColumns. Keys are uint8_t,
/// uint16_t, uint32_t or uint64_t.
template <class Key>
void sort_rows(Key* rows, int64_t n, int64_t count);

}  // namespace hlojit

// See row_sorts.h.
#include "runtime/kernels/row_sorts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace hlojit {
namespace {

/// Elements of a row that change places if the later one is less.
struct Exchange {
  uint8_t first, second;
};

/// What sorts a row, one exchange after the other.
struct Network {
  static constexpr size_t kMost = 191;  // of rows of kMostInColumns
  size_t count = 0;
  std::array<Exchange, kMost> exchanges{};

  constexpr std::span<const Exchange> all() const { return std::span(exchanges).first(count); }
};

/// Batcher's merges of odd and even elements, for rows of any length: what lies behind their end is left out.
constexpr Network network_of(int64_t n) {
  Network made;
  for (int64_t sorted = 1; sorted < n; sorted *= 2) {
    for (int64_t apart = sorted; apart > 0; apart /= 2) {
      for (int64_t start = apart % sorted; start + apart < n; start += 2 * apart) {
        for (int64_t k = start; k < start + std::min(apart, n - start - apart); ++k) {
          if (k / (2 * sorted) == (k + apart) / (2 * sorted))
            made.exchanges[made.count++] = {static_cast<uint8_t>(k), static_cast<uint8_t>(k + apart)};
        }
      }
    }
  }
  return made;
}

// Made by the compiler: to make one took as long as to sort by it. (Eight rows of 30 floats on one core of a Zen
// 3: 1.47 us, 0.59 so.)
constexpr auto kNetworks = [] {
  std::array<Network, kMostInColumns + 1> all{};
  for (size_t n = 0; n < all.size(); ++n) all[n] = network_of(static_cast<int64_t>(n));
  return all;
}();

/// A square of keys, as many in a row as 16 bytes hold, transposed in registers.
template <class Key>
struct Square {
  static constexpr int kSide = 16 / sizeof(Key);
  using Row = Key __attribute__((vector_size(16)));

  template <int kFirst, size_t... k>
  [[gnu::always_inline]] static Row interleaved(Row x, Row y, std::index_sequence<k...>) {
    return __builtin_shufflevector(x, y, (kFirst + static_cast<int>(k) / 2 + (k % 2 == 0 ? 0 : kSide))...);
  }
  /// `to_step` and `from_step`: elements from row to row.
  [[gnu::always_inline]] static void transpose(const Key* from, int64_t from_step, Key* to, int64_t to_step) {
    constexpr auto kAll = std::make_index_sequence<kSide>();
    Row rows[kSide], next[kSide];
    for (int r = 0; r < kSide; ++r) std::memcpy(&rows[r], from + r * from_step, sizeof(Row));
    for (int done = 1; done < kSide; done *= 2) {
      for (int r = 0; r < kSide / 2; ++r) {
        next[2 * r] = interleaved<0>(rows[r], rows[r + kSide / 2], kAll);
        next[2 * r + 1] = interleaved<kSide / 2>(rows[r], rows[r + kSide / 2], kAll);
      }
      std::ranges::copy(next, rows);
    }
    for (int r = 0; r < kSide; ++r) std::memcpy(to + r * to_step, &rows[r], sizeof(Row));
  }
};

/// As many rows as a line of the cache has keys, in columns.
template <class Key>
struct Columns {
  static constexpr int64_t kRows = 64 / sizeof(Key);
  alignas(64) Key keys[kMostInColumns][kRows];

  [[gnu::always_inline]] void sort(std::span<const Exchange> exchanges) {
    for (const Exchange e : exchanges) {
      Key *first = keys[e.first], *second = keys[e.second];
#pragma clang loop vectorize(assume_safety)
      for (int64_t r = 0; r < kRows; ++r) {
        const Key x = first[r], y = second[r];
        first[r] = std::min(x, y);
        second[r] = std::max(x, y);
      }
    }
  }

  /// Calls move(r, k) for the first row and key of squares that cover `count` rows of n keys, the last ones of a row
  /// beginning sooner, and one(r, k) for each key where there is no room for a square.
  template <class Move, class One>
  [[gnu::always_inline]] static void cover(int64_t n, int64_t count, Move&& move, One&& one) {
    constexpr int64_t kSide = Square<Key>::kSide;
    const int64_t whole = n < kSide ? 0 : count / kSide * kSide;
    for (int64_t r = 0; r < whole; r += kSide) {
      for (int64_t k = 0; k < n; k += kSide) move(r, std::min(k, n - kSide));
    }
    for (int64_t r = whole; r < count; ++r) {
// (Gathers and scatters took twice as long.)
#pragma clang loop vectorize(disable)
      for (int64_t k = 0; k < n; ++k) one(r, k);
    }
  }
};

template <class Key>
[[gnu::always_inline]] inline void rows_sorted(Key* rows, int64_t n, int64_t count) {
  constexpr int64_t kRows = Columns<Key>::kRows;
  const std::span<const Exchange> exchanges = kNetworks[static_cast<size_t>(n)].all();
  Columns<Key> columns{};
  auto& keys = columns.keys;
  for (int64_t begin = 0; begin < count; begin += kRows, rows += kRows * n) {
    const int64_t here = std::min(kRows, count - begin);
    columns.cover(
        n, here, [&](int64_t r, int64_t k) { Square<Key>::transpose(rows + r * n + k, n, &keys[k][r], kRows); },
        [&](int64_t r, int64_t k) { keys[k][r] = rows[r * n + k]; });
    columns.sort(exchanges);
    columns.cover(
        n, here, [&](int64_t r, int64_t k) { Square<Key>::transpose(&keys[k][r], kRows, rows + r * n + k, n); },
        [&](int64_t r, int64_t k) { rows[r * n + k] = keys[k][r]; });
  }
}

}  // namespace

// A function template has no clones.
#define HLOJIT_EACH_WIDTH __attribute__((target_clones("default", "avx2", "avx512bw")))
#define HLOJIT_ROWS_OF(Key)                                                                                       \
  HLOJIT_EACH_WIDTH void sort_rows_of_##Key(Key* rows, int64_t n, int64_t count) { rows_sorted(rows, n, count); } \
  template <>                                                                                                     \
  void sort_rows(Key* rows, int64_t n, int64_t count) {                                                           \
    sort_rows_of_##Key(rows, n, count);                                                                           \
  }
HLOJIT_ROWS_OF(uint8_t)
HLOJIT_ROWS_OF(uint16_t)
HLOJIT_ROWS_OF(uint32_t)
HLOJIT_ROWS_OF(uint64_t)

}  // namespace hlojit

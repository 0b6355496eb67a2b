// See row_sorts.h.
#include "runtime/kernels/row_sorts.h"

#include <algorithm>
#include <vector>

namespace hlojit {
namespace {

/// Elements of a row that change places if the later one is less.
struct Exchange {
  uint16_t first, second;
};

/// Batcher's merges of odd and even elements, for rows of any length: what lies behind their end is left out.
std::vector<Exchange> exchanges_of(int64_t n) {
  std::vector<Exchange> all;
  for (int64_t sorted = 1; sorted < n; sorted *= 2) {
    for (int64_t apart = sorted; apart > 0; apart /= 2) {
      for (int64_t start = apart % sorted; start + apart < n; start += 2 * apart) {
        for (int64_t k = start; k < start + std::min(apart, n - start - apart); ++k) {
          if (k / (2 * sorted) == (k + apart) / (2 * sorted))
            all.push_back({static_cast<uint16_t>(k), static_cast<uint16_t>(k + apart)});
        }
      }
    }
  }
  return all;
}

/// As many rows as a line of the cache has keys, in columns.
template <class Key>
struct Columns {
  static constexpr int64_t kRows = 64 / sizeof(Key);
  alignas(64) Key keys[kMostInColumns][kRows];

  [[gnu::always_inline]] void sort(const std::vector<Exchange>& exchanges) {
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
};

template <class Key>
[[gnu::always_inline]] inline void rows_sorted(Key* rows, int64_t n, int64_t count) {
  constexpr int64_t kRows = Columns<Key>::kRows;
  const std::vector<Exchange> exchanges = exchanges_of(n);
  Columns<Key> columns{};
  for (int64_t begin = 0; begin < count; begin += kRows, rows += kRows * n) {
    const int64_t here = std::min(kRows, count - begin);
    for (int64_t r = 0; r < here; ++r) {
      for (int64_t k = 0; k < n; ++k) columns.keys[k][r] = rows[r * n + k];
    }
    columns.sort(exchanges);
    for (int64_t r = 0; r < here; ++r) {
      for (int64_t k = 0; k < n; ++k) rows[r * n + k] = columns.keys[k][r];
    }
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

// See integer_sort.h.
#include "runtime/kernels/integer_sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <utility>

namespace hlojit {
namespace {

constexpr size_t kSmallestPart = 1 << 14;
constexpr size_t kFew = 32;

// How many of the first `count` elements of the merged a[0, n) and b[0, m) come from a.
template <class Key>
size_t split(const Key* a, size_t n, const Key* b, size_t m, size_t count) {
  size_t low = count > m ? count - m : 0, high = std::min(count, n);
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (b[count - 1 - middle] < a[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

template <class Key>
void merge(const Key* a, const Key* a_end, const Key* b, const Key* b_end, Key* out) {
  while (a != a_end && b != b_end) {
    bool right = *b < *a;
    *out++ = right ? *b : *a;
    a += !right;
    b += right;
  }
  out = std::copy(a, a_end, out);
  std::copy(b, b_end, out);
}

// Each key goes behind those that are less, and those equal to it that came before: no branch depends on a key. (A call
// of the library for a row of seven took half a microsecond. Loops of 17 bytes that lie across two lines of the cache
// took a fifth longer, or not, as other code was linked before them.)
template <class Key>
void sort_few(Key* keys, size_t n) {
  std::array<Key, kFew> from;
  std::copy_n(keys, n, from.begin());
  for (size_t k = 0; k < n; ++k) {
    const Key key = from[k];
    size_t before = 0;
    [[clang::code_align(32)]] for (size_t j = 0; j < k; ++j)
      before += !(key < from[j]);
    [[clang::code_align(32)]] for (size_t j = k + 1; j < n; ++j)
      before += from[j] < key;
    keys[before] = key;
  }
}

// By how often each value occurs.
void sort_bytes(uint8_t* keys, size_t n) {
  std::array<size_t, 256> count{};
  for (size_t k = 0; k < n; ++k) ++count[keys[k]];
  for (size_t v = 0; v < 256; ++v) keys = std::fill_n(keys, count[v], static_cast<uint8_t>(v));
}

}  // namespace

template <class Key>
void sort_integers(Key* keys, size_t n) {
  if (n <= kFew) return sort_few(keys, n);
  if constexpr (sizeof(Key) == 1) {
    sort_bytes(keys, n);
  } else if constexpr (sizeof(Key) == 2) {
    vector_sorts().of_16(keys, n);
  } else if constexpr (sizeof(Key) == 4) {
    vector_sorts().of_32(keys, n);
  } else if constexpr (sizeof(Key) == 8) {
    vector_sorts().of_64(keys, n);
  } else {
    vector_sorts().of_128(keys, n);
  }
}

template <class Key>
Key* sort_integers(ThreadPool& pool, Key* keys, Key* scratch, size_t n) {
  size_t parts = std::bit_floor(std::min<size_t>(static_cast<size_t>(pool.threads()), n / kSmallestPart));
  if (parts <= 1 || sizeof(Key) == 1) {
    sort_integers(keys, n);
    return keys;
  }
  auto begin = [&](size_t part) { return n * part / parts; };
  auto chunks = static_cast<int64_t>(parts);
  auto cost = static_cast<int64_t>(n * sizeof(Key));
  run_chunks(pool, chunks, cost, [&](int64_t c) {
    auto part = static_cast<size_t>(c);
    sort_integers(keys + begin(part), begin(part + 1) - begin(part));
  });
  for (size_t run = 1; run < parts; run *= 2, std::swap(keys, scratch)) {
    // Each task makes one part of the result: of a pair of runs, found by bisection.
    run_chunks(pool, chunks, cost, [&](int64_t c) {
      auto part = static_cast<size_t>(c);
      size_t first = part / (2 * run) * (2 * run);
      const Key *a = keys + begin(first), *b = keys + begin(first + run), *end = keys + begin(first + 2 * run);
      auto na = static_cast<size_t>(b - a), nb = static_cast<size_t>(end - b);
      size_t from = begin(part) - begin(first), to = begin(part + 1) - begin(first);
      size_t a0 = split(a, na, b, nb, from), a1 = split(a, na, b, nb, to);
      merge(a + a0, a + a1, b + (from - a0), b + (to - a1), scratch + begin(part));
    });
  }
  return keys;
}

#define HLOJIT_SORT_OF(Key)                  \
  template void sort_integers(Key*, size_t); \
  template Key* sort_integers(ThreadPool&, Key*, Key*, size_t)
HLOJIT_SORT_OF(uint8_t);
HLOJIT_SORT_OF(uint16_t);
HLOJIT_SORT_OF(uint32_t);
HLOJIT_SORT_OF(uint64_t);
HLOJIT_SORT_OF(Wide);
#undef HLOJIT_SORT_OF

}  // namespace hlojit

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
struct Merge {
  const Key *a, *a_end, *b, *b_end;
  Key* out;

  void step() {
    const bool right = *b < *a;
    *out++ = right ? *b : *a;
    a += !right;
    b += right;
  }
  /// Steps before one of them can have ended.
  size_t sure() const { return static_cast<size_t>(std::min(a_end - a, b_end - b)); }
  void finish() {
    while (a != a_end && b != b_end) step();
    std::copy(b, b_end, std::copy(a, a_end, out));
  }
};

// Elements [from, to) of a[0, n) and b[0, m), merged. A step waits for the one before it, so some merges go side by
// side. (99991 and 1000000 floats sorted by two cores of a Granite Rapids: 288 us and 3.29 ms by one, 196 and 2.32 so.)
template <class Key>
void merge(const Key* a, size_t n, const Key* b, size_t m, size_t from, size_t to, Key* out) {
  constexpr size_t kSideBySide = 4;
  std::array<Merge<Key>, kSideBySide> merges;
  size_t before = split(a, n, b, m, from), at = from;
  for (size_t k = 0; k < kSideBySide; ++k) {
    const size_t end = from + (to - from) * (k + 1) / kSideBySide, behind = split(a, n, b, m, end);
    merges[k] = {a + before, a + behind, b + (at - before), b + (end - behind), out + (at - from)};
    before = behind, at = end;
  }
  auto sure = [&] { return std::ranges::min(merges, {}, &Merge<Key>::sure).sure(); };
  for (size_t steps = sure(); steps > 0; steps = sure()) {
    auto [p, q, r, s] = merges;
    for (; steps > 0; --steps) p.step(), q.step(), r.step(), s.step();
    merges = {p, q, r, s};
  }
  for (Merge<Key>& left : merges) left.finish();
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
      merge(a, na, b, nb, from, to, scratch + begin(part));
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

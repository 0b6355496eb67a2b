// Ascending sort of unsigned integers: vectors within a part, parts in parallel, then merges.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/parallel.h"

namespace hlojit {

/// 128 bits that compare high half first.
struct Wide {
  uint64_t low, high;
  bool operator<(const Wide& other) const { return high < other.high || (high == other.high && low < other.low); }
};

/// Sorts keys[0, n) in place on the calling thread. Keys are uint8_t, uint16_t, uint32_t, uint64_t or Wide.
template <class Key>
void sort_integers(Key* keys, size_t n);

/// The same for words by AVX2's instructions, whatever the machine has.
void sort_words_avx2(uint32_t* keys, size_t n);

/// Sorts keys[0, n) on the pool with scratch[0, n); returns which of the two holds the result. (The
/// result is the same however the work is split: equal keys are the same bits.)
template <class Key>
Key* sort_integers(ThreadPool& pool, Key* keys, Key* scratch, size_t n);

}  // namespace hlojit

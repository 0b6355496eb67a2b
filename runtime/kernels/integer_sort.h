// Ascending sort of unsigned integers: vectors within a part, parts in parallel, then merges.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/vector_sorts.h"
#include "runtime/parallel.h"

namespace hlojit {

/// Sorts keys[0, n) in place on the calling thread. Keys are uint8_t, uint16_t, uint32_t, uint64_t or Wide.
template <class Key>
void sort_integers(Key* keys, size_t n);

/// Sorts keys[0, n) on the pool with scratch[0, n); returns which of the two holds the result. (The
/// result is the same however the work is split: equal keys are the same bits.)
template <class Key>
Key* sort_integers(ThreadPool& pool, Key* keys, Key* scratch, size_t n);

}  // namespace hlojit

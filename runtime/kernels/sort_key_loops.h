// The loops over all elements of a sort besides the sorting itself, and of a selection, for each width of vectors that
// a machine may have.
#pragma once

#include <cstdint>

#include "runtime/kernels/sort_keys.h"

namespace hlojit {

/// out[k] = the key of in[k] (of its canonical form, if that is asked for) with the bits of `flip` turned round.
/// Returns bits that some canonical form lost. `Type` is one of with_key_type's.
template <class Type>
typename Type::Key make_keys(const typename Type::Key* in, typename Type::Key* out, int64_t n, bool canonical,
                             typename Type::Key flip);

/// The way back. `keys` may be `out`.
template <class Type>
void take_keys(const typename Type::Key* keys, typename Type::Key* out, int64_t n, typename Type::Key flip);

/// Elements of a step of next_below.
constexpr int64_t kKeyStep = 16;

/// From `at` on, in whole steps below `end`: the first that has keys (`flip` turned round) less than `limit`, and which
/// of its elements these are, a byte each, 0 or 1. Where the steps end if none has.
template <class Type>
int64_t next_below(const typename Type::Key* in, int64_t at, int64_t end, typename Type::Key flip,
                   typename Type::Key limit, uint8_t* below);

}  // namespace hlojit

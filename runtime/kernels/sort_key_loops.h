// The loops over all elements of a sort besides the sorting itself, for each width of vectors that a machine may have.
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

}  // namespace hlojit

// One stretch of memory for values that do not all live at once: each gets an offset where nobody else is while it
// lives.
//
// Two ways are tried, and the one that needs less is taken: as values come, each into the smallest gap that holds it;
// or the largest first, each as far down as it fits beside those it lives together with. The first leaves gaps where
// something small has settled in what something large would have needed (a training step's gradients: 3.5 MB instead of
// 2.7), the second takes time that grows with the square of their number.
#pragma once

#include <cstdint>
#include <span>

namespace hlojit {

struct Tenant {
  int64_t size = 0;            ///< bytes, a multiple of the alignment
  int64_t begin = 0, end = 0;  ///< first and last moment, inclusive
  int64_t offset = -1;
};

/// a + b; throws Error(kFailed) if there are no such addresses.
int64_t add_bytes(int64_t a, int64_t b);

/// Sets the offsets; gives the bytes that are needed. `tenants` come in the order of their first moments.
int64_t place_tenants(std::span<Tenant> tenants);

}  // namespace hlojit

// Division of sizes upwards.
#pragma once

#include <cstdint>

namespace hlojit {

/// Pieces of `size` > 0 that it takes to cover n >= 0.
constexpr int64_t ceil_div(int64_t n, int64_t size) { return (n + size - 1) / size; }
/// The least multiple of `unit` > 0 that is at least n >= 0.
constexpr int64_t round_up(int64_t n, int64_t unit) { return ceil_div(n, unit) * unit; }

}  // namespace hlojit

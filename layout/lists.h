// Lists of numbers (sizes, dimension numbers) and what is asked of them everywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

namespace hlojit {

using Ints = std::vector<int64_t>;

/// Some element of the list equals x.
template <std::ranges::input_range List, class T>
bool contains(const List& list, const T& x) {
  return std::ranges::find(list, x) != std::ranges::end(list);
}

/// Product of all sizes, 1 of none; as a double where it may exceed 63 bits.
template <class Number = int64_t>
Number product(std::span<const int64_t> sizes) {
  Number n = 1;
  for (int64_t size : sizes) n *= static_cast<Number>(size);
  return n;
}

}  // namespace hlojit

// Strided walks over dense arrays: the one loop nest behind all data movement.
//
// An array is viewed from a base element with a stride a dimension; broadcast is stride 0, reverse a negative stride,
// slice an offset and a scale, transpose a permutation.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "compiler/ir/attributes.h"
#include "layout/lists.h"

namespace hlojit::eval {

/// Strides in elements of a dense row-major array.
inline Ints row_major_strides(std::span<const int64_t> dims) {
  Ints strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

/// Calls f(index) for every index of the box in row-major order; none if a size is zero.
template <class F>
void for_each_index(std::span<const int64_t> dims, F&& f) {
  if (product(dims) == 0) return;
  Ints index(dims.size(), 0);
  while (true) {
    f(std::span<const int64_t>(index));
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

/// Calls f(offset_a, offset_b) for every index of the box, in row-major order.
template <class F>
void for_each_offset(std::span<const int64_t> dims, std::span<const int64_t> strides_a,
                     std::span<const int64_t> strides_b, F&& f) {
  if (product(dims) == 0) return;
  if (dims.empty()) {
    f(int64_t{0}, int64_t{0});
    return;
  }
  const size_t last = dims.size() - 1;
  for_each_index(dims.first(last), [&](std::span<const int64_t> index) {
    int64_t a = 0, b = 0;
    for (size_t d = 0; d < last; ++d) {
      a += index[d] * strides_a[d];
      b += index[d] * strides_b[d];
    }
    for (int64_t i = 0; i < dims[last]; ++i, a += strides_a[last], b += strides_b[last]) f(a, b);
  });
}

/// An array as it is walked over: a base element and a stride a dimension, in elements.
template <class Byte>
struct View {
  Byte* data;
  int64_t base;
  std::span<const int64_t> strides;
};

/// to[to.base + index . to.strides] = from[from.base + index . from.strides] over the box;
/// `width` is the bytes of an element: 1, 2, 4, 8 or 16.
void copy_strided(int width, std::span<const int64_t> dims, View<std::byte> to, View<const std::byte> from);

}  // namespace hlojit::eval

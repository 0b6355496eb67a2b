// Plain index mathematics: the tiled linear-index formula, its inverse, physical sizes.
// Slow and obvious: the yardstick for the symbolic side (layout/digits.h, layout/index_expr.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "layout/export.h"
#include "layout/shape.h"

namespace hlojit {

using Index = std::vector<int64_t>;

/// Elements the buffer holds, tile padding and tail padding included.
HLOJIT_API int64_t physical_elements(const Shape& shape);
/// The same for the largest memory of an array split by SC(...): each split dimension counts with
/// its largest piece. On this target one buffer holds all pieces; buffers never use this number.
HLOJIT_API int64_t physical_elements_per_memory(const Shape& shape);
/// Bytes of the buffer: ceil(physical_elements * bits / 8) + metadata prefix.
HLOJIT_API int64_t physical_size(const Shape& shape);
/// Positions along dim `dim` that memory has for every position of the others: its size, filled up to whole tiles.
HLOJIT_API int64_t stored_extent(const Shape& shape, size_t dim);
/// Bits an element takes in memory (E(n) or 8 * dtype_bytes).
HLOJIT_API int64_t element_bits(const Shape& shape);
/// Position in memory, in elements, of the element at `index` (logical order of dims). Throws
/// Error(kInput) for an index outside the array.
HLOJIT_API int64_t linear_index(const Shape& shape, std::span<const int64_t> index);
/// Inverse: the index at position `linear`, or nullopt for padding. Throws Error(kInput) for a
/// position outside the buffer.
HLOJIT_API std::optional<Index> multi_index(const Shape& shape, int64_t linear);
/// Calls f(index, linear) for every element in memory order.
void for_each_in_memory_order(const Shape& shape, const std::function<void(std::span<const int64_t>, int64_t)>& f);
/// A drawing of the buffer for a terminal: tiles, padding, order in memory. Cut above 1,024 elements.
HLOJIT_API std::string draw(const Shape& shape, std::optional<int64_t> highlight = std::nullopt);

/// Copies elements between two buffers of compatible shapes in any two layouts (tiles, packing).
/// Padding of dst is zeroed. Sizes: physical_size of each shape.
HLOJIT_API void relayout(const Shape& from, const void* src, const Shape& to, void* dst);

}  // namespace hlojit

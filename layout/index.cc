// Plain index mathematics: the formula of the layout page, its inverse, sizes.
//
// The formula itself lives in layout/tiling.h; the inverse walks the tiles backwards, which needs
// the sizes each tile saw.
#include "layout/index.h"

#include <algorithm>

#include "layout/divide.h"
#include "layout/tiling.h"

namespace hlojit {
namespace {

[[noreturn]] void overflow() { throw Error(ErrorKind::kInvalid, "the size of the array's storage overflows 64 bits"); }

// Product of the sizes after tiling, rounded up to the tail alignment.
int64_t padded_elements(std::span<const int64_t> sizes, int64_t alignment) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return 0;
  int64_t count = 1;
  for (int64_t n : sizes) {
    if (__builtin_mul_overflow(count, n, &count)) overflow();
  }
  if (__builtin_mul_overflow(ceildiv(count, alignment), alignment, &count)) overflow();
  return count;
}

// Sizes of the physical dimensions before one tile, and the tile without its stars.
struct Step {
  std::vector<int64_t> before;  // widened, before combining
  const Tile* tile;
  std::vector<int64_t> combined;  // after combining, before the cut
  std::vector<int64_t> sizes;     // the tile without stars
};

// Takes back a cut: joins quotients and remainders. False if the index is in the tile's padding.
bool join(Index& index, const Step& step) {
  size_t k = step.sizes.size();
  size_t first = step.combined.size() - k;
  for (size_t p = 0; p < k; ++p) {
    int64_t joined = index[first + p] * step.sizes[p] + index[step.combined.size() + p];
    if (joined >= step.combined[first + p]) return false;
    index[first + p] = joined;
  }
  index.resize(step.combined.size());
  return true;
}

// Takes back the folding of starred dimensions.
void separate(Index& index, const Step& step) {
  const std::vector<int64_t>& tile = step.tile->dims;
  size_t first = step.before.size() - tile.size();
  Index out(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(first));
  out.resize(step.before.size());
  size_t from = index.size();
  for (size_t p = tile.size(); p-- > 0;) {
    if (tile[p] == Tile::kCombine) {  // the value below still holds this dimension above its own
      int64_t minor = step.before[first + p + 1];
      out[first + p] = out[first + p + 1] / minor;
      out[first + p + 1] %= minor;
    } else {
      out[first + p] = index[--from];
    }
  }
  index = std::move(out);
}

}  // namespace

int64_t physical_elements(const Shape& shape) {
  Index origin(shape.dims.size(), 0);
  return padded_elements(apply_tiles<int64_t>(shape, origin).sizes, shape.layout.tail_padding_alignment);
}

int64_t physical_elements_per_memory(const Shape& shape) {
  Shape piece = shape;
  for (const SplitConfig& split : shape.layout.split_configs) {
    size_t dim = shape.layout.minor_to_major[shape.dims.size() - 1 - split.dim];
    int64_t largest = 0, start = 0;
    for (int64_t index : split.indices) {
      int64_t end = std::min(index, shape.dims[dim]);
      largest = std::max(largest, end - start);
      start = end;
    }
    piece.dims[dim] = std::max(largest, shape.dims[dim] - start);
  }
  return physical_elements(piece);
}

int64_t element_bits(const Shape& shape) {
  int64_t bits = shape.layout.element_size_in_bits;
  return bits != 0 ? bits : int64_t{8} * dtype_bytes(shape.type);
}

int64_t physical_size(const Shape& shape) {
  __int128 bits = static_cast<__int128>(physical_elements(shape)) * element_bits(shape);
  __int128 size = (bits + 7) / 8 + shape.layout.metadata_prefix_bytes;
  if (size > std::numeric_limits<int64_t>::max()) overflow();
  return static_cast<int64_t>(size);
}

int64_t stored_extent(const Shape& shape, size_t dim) {
  const int64_t size = shape.dims[dim];
  if (!shape.layout.tiled()) return size;
  const std::vector<int64_t>& tile = shape.layout.tiles.front().dims;
  const auto at = std::ranges::find(shape.layout.minor_to_major, static_cast<int64_t>(dim));
  const auto from_minor = static_cast<size_t>(at - shape.layout.minor_to_major.begin());
  if (from_minor >= tile.size() || std::ranges::find(tile, Tile::kCombine) != tile.end()) return size;
  return round_up(size, tile[tile.size() - 1 - from_minor]);
}

int64_t linear_index(const Shape& shape, std::span<const int64_t> index) {
  if (index.size() != shape.dims.size()) {
    throw Error(ErrorKind::kInput, "the index has " + std::to_string(index.size()) +
                                       " entries but the array has rank " + std::to_string(shape.rank()));
  }
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] < 0 || index[d] >= shape.dims[d]) {
      throw Error(ErrorKind::kInput, "index " + std::to_string(index[d]) + " of dimension " + std::to_string(d) +
                                         " is outside [0, " + std::to_string(shape.dims[d]) + ")");
    }
  }
  return row_major(apply_tiles(shape, index));
}

std::optional<Index> multi_index(const Shape& shape, int64_t linear) {
  int64_t stored = physical_elements(shape);
  if (linear < 0 || linear >= stored) {
    throw Error(ErrorKind::kInput,
                "position " + std::to_string(linear) + " is outside [0, " + std::to_string(stored) + ")");
  }
  // Forwards once for the sizes each tile sees.
  Index origin(shape.dims.size(), 0);
  Tiled<int64_t> v = physical_order<int64_t>(shape, origin);
  std::vector<Step> steps;
  for (const Tile& tile : shape.layout.tiles) {
    widen(v, tile.dims.size());
    Step step{.before = v.sizes, .tile = &tile, .combined = {}, .sizes = {}};
    step.sizes = combine(v, tile);
    step.combined = v.sizes;
    cut(v, step.sizes);
    steps.push_back(std::move(step));
  }
  // Row-major place in the final sizes; what is left over is tail padding.
  Index index(v.sizes.size(), 0);
  for (size_t k = index.size(); k-- > 0;) {
    index[k] = linear % v.sizes[k];
    linear /= v.sizes[k];
  }
  if (linear > 0) return std::nullopt;
  // Backwards through the tiles.
  for (size_t s = steps.size(); s-- > 0;) {
    if (!join(index, steps[s])) return std::nullopt;
    separate(index, steps[s]);
    // Leading size-1 dims a wide tile added: before this tile there were as many as after the last.
    size_t had = s > 0 ? steps[s - 1].combined.size() + steps[s - 1].sizes.size() : shape.dims.size();
    size_t added = index.size() - had;
    index.erase(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(added));
  }
  Index logical(shape.dims.size());
  for (size_t k = 0; k < logical.size(); ++k) {
    logical[shape.layout.minor_to_major[k]] = index[index.size() - 1 - k];
  }
  return logical;
}

void for_each_in_memory_order(const Shape& shape, const std::function<void(std::span<const int64_t>, int64_t)>& f) {
  int64_t count = shape.element_count();
  // Sorting the elements by position never touches padding, of which there may be any amount.
  std::vector<std::pair<int64_t, int64_t>> order;  // position, row-major number
  order.reserve(count);
  Index index(shape.dims.size(), 0);
  auto unravel = [&](int64_t n) {
    for (size_t d = index.size(); d-- > 0;) {
      index[d] = n % shape.dims[d];
      n /= shape.dims[d];
    }
  };
  for (int64_t n = 0; n < count; ++n) {
    unravel(n);
    order.emplace_back(linear_index(shape, index), n);
  }
  std::ranges::sort(order);
  for (auto [position, n] : order) {
    unravel(n);
    f(index, position);
  }
}

}  // namespace hlojit

// What the tiles of a layout do to sizes and to an index, one tile after the other.
//
// A tile works on the whole vector its predecessor left: on the last k entries of (sizes, index),
// both major to minor. It first folds entries marked '*' into the next more minor one, then cuts
// every entry e of size d into e / t (size ceil(d/t)) and e mod t (size t); the quotients stay
// where they were, the remainders go to the end. The result, read row major, is the place in
// memory.
//
// Templates over the index type, so that numbers and symbolic expressions share one formula.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "layout/shape.h"

namespace hlojit {

inline int64_t floordiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
inline int64_t mod(int64_t a, int64_t b) { return a - floordiv(a, b) * b; }
/// For a >= 0, b > 0; no overflow.
inline int64_t ceildiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// Product that stays at the largest int64: sizes that overflow are refused by shape_errors.
inline int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

/// Sizes and index of an array as its tiles see it; both major to minor and of equal length.
template <class T>
struct Tiled {
  std::vector<int64_t> sizes;
  std::vector<T> index;
};

/// Leading entries of size 1 (a tile of more dims than the array), so that there are at least k.
template <class T>
void widen(Tiled<T>& v, size_t k) {
  if (v.sizes.size() >= k) return;
  size_t missing = k - v.sizes.size();
  v.sizes.insert(v.sizes.begin(), missing, 1);
  v.index.insert(v.index.begin(), missing, T(0));
}

/// Folds every entry under a '*' into the next more minor one; returns the tile without stars.
template <class T>
std::vector<int64_t> combine(Tiled<T>& v, const Tile& tile) {
  std::vector<int64_t> sizes;
  size_t first = v.sizes.size() - tile.dims.size(), out = first;
  for (size_t p = 0; p < tile.dims.size(); ++p) {
    size_t i = first + p;
    if (tile.dims[p] == Tile::kCombine) {
      v.index[i + 1] = v.index[i] * v.sizes[i + 1] + v.index[i + 1];
      v.sizes[i + 1] = saturating_product(v.sizes[i], v.sizes[i + 1]);
    } else {
      sizes.push_back(tile.dims[p]);
      v.sizes[out] = v.sizes[i];
      v.index[out] = v.index[i];
      ++out;
    }
  }
  v.sizes.resize(out);
  v.index.resize(out);
  return sizes;
}

/// Cuts the last entries of v by a tile without stars.
template <class T>
void cut(Tiled<T>& v, std::span<const int64_t> tile) {
  size_t first = v.sizes.size() - tile.size();
  for (size_t p = 0; p < tile.size(); ++p) {
    T index = v.index[first + p];
    // An index is in bounds, also where the range of a symbolic one (a clipped digit) is wider.
    bool one_tile = v.sizes[first + p] <= tile[p];
    v.index[first + p] = one_tile ? T(0) : floordiv(index, tile[p]);
    v.index.push_back(one_tile ? index : mod(index, tile[p]));
    v.sizes[first + p] = ceildiv(v.sizes[first + p], tile[p]);
    v.sizes.push_back(tile[p]);
  }
}

/// Sizes and index in the order of memory before any tile: most major dimension first.
/// `index` is in logical order; the layout must be valid for the shape.
template <class T>
Tiled<T> physical_order(const Shape& shape, std::span<const T> index) {
  Tiled<T> v;
  const std::vector<int64_t>& order = shape.layout.minor_to_major;
  for (size_t k = order.size(); k-- > 0;) {
    v.sizes.push_back(shape.dims[order[k]]);
    v.index.push_back(index[order[k]]);
  }
  return v;
}

/// The whole formula: physical order, then every tile.
template <class T>
Tiled<T> apply_tiles(const Shape& shape, std::span<const T> index) {
  Tiled<T> v = physical_order(shape, index);
  for (const Tile& tile : shape.layout.tiles) {
    widen(v, tile.dims.size());
    cut(v, combine(v, tile));
  }
  return v;
}

/// Row-major place of v in memory.
template <class T>
T row_major(const Tiled<T>& v) {
  T linear(0);
  int64_t stride = 1;
  for (size_t k = v.sizes.size(); k-- > 0;) {
    linear = linear + v.index[k] * stride;
    stride = saturating_product(stride, v.sizes[k]);
  }
  return linear;
}

}  // namespace hlojit

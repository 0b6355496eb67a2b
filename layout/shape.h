// Shapes and layouts: what an array is, and where its elements lie in memory.
//
// A shape is an element type and sizes (dimensions 0..N-1, size 0 legal, N = 0 a scalar), or a
// tuple of shapes, a token, an opaque. An array shape carries a layout: the order of its
// dimensions in memory (minor to major) and a list of tiles applied left to right. Semantics and
// text grammar: the layout page of the specification; index mathematics is in layout/index.h.
//
// One of the headers that are installed, which find each other beside themselves, so that a user needs
// one include path and may have a layout/ of their own.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtype.h"
#include "error.h"
#include "export.h"

namespace hlojit {

/// One tile: sizes, most major first. kCombine ('*') folds that dimension into the next minor one.
struct Tile {
  static constexpr int64_t kCombine = std::numeric_limits<int64_t>::min();
  std::vector<int64_t> dims;
  bool operator==(const Tile&) const = default;
};

/// Split of one physical dimension (0 = most major) between memories, at the given indices.
struct SplitConfig {
  int64_t dim = 0;
  std::vector<int64_t> indices;
  bool operator==(const SplitConfig&) const = default;
};

/// Where the elements of an array lie. Default-constructed: rank 0, untiled.
struct HLOJIT_API Layout {
  std::vector<int64_t> minor_to_major;
  std::vector<Tile> tiles;
  int64_t tail_padding_alignment = 1;    ///< L(n), in elements
  DType index_type = DType::kInvalid;    ///< #(u32): sparse only; parsed, refused by validation
  DType pointer_type = DType::kInvalid;  ///< *(u32): sparse only; parsed, refused by validation
  int64_t element_size_in_bits = 0;      ///< E(n); 0 = 8 * dtype_bytes
  int64_t memory_space = 0;              ///< S(n); preserved, without effect on values
  std::vector<SplitConfig> split_configs;
  int64_t metadata_prefix_bytes = 0;  ///< M(n)

  bool operator==(const Layout&) const = default;
  bool tiled() const { return !tiles.empty(); }
  /// {N-1, ..., 0}, untiled.
  static Layout descending(int64_t rank);
  /// True for the default layout of its rank (no field differs from the default).
  bool is_default() const;
};

/// An array, tuple, token or opaque shape. A value type; cheap enough to copy.
struct HLOJIT_API Shape {
  DType type = DType::kInvalid;
  std::vector<int64_t> dims;    ///< sizes; the bound for a dynamic dimension
  std::vector<bool> dynamic;    ///< empty, or one flag a dimension (`<=n`)
  Layout layout;                ///< arrays only
  std::vector<Shape> elements;  ///< tuples only

  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::min();  ///< `?`

  /// Array with the default layout.
  static Shape array(DType type, std::vector<int64_t> dims);
  static Shape scalar(DType type) { return array(type, {}); }
  static Shape tuple(std::vector<Shape> elements);
  static Shape token();
  static Shape opaque();
  /// Parses HLO shape text such as `f32[3,5]{1,0:T(2,2)}`; whole string; validates the layout.
  /// Throws Error(kInvalid) with location 1:COLUMN.
  static Shape parse(std::string_view text);

  bool is_array() const { return is_array_type(type); }
  bool is_tuple() const { return type == DType::kTuple; }
  bool is_token() const { return type == DType::kToken; }
  bool is_scalar() const { return is_array() && dims.empty(); }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  bool has_dynamic_dims() const;
  /// Product of the sizes (scalar 1). Array shapes only.
  int64_t element_count() const;
  /// Bytes of the unpacked, untiled elements: element_count * dtype_bytes. Array shapes only.
  int64_t dense_bytes() const;

  /// Everything equal, layout and dynamic flags included.
  bool operator==(const Shape&) const = default;
  /// HLO text; with or without the layout (the default layout is printed too, as XLA does).
  std::string to_string(bool with_layout = true) const;
};

/// Type and sizes equal (layouts ignored), recursively.
HLOJIT_API bool compatible(const Shape& a, const Shape& b);
HLOJIT_API bool compatible_ignoring_element_type(const Shape& a, const Shape& b);
/// Like compatible, but any two float types are equal.
HLOJIT_API bool compatible_ignoring_fp_precision(const Shape& a, const Shape& b);
HLOJIT_API bool same_dimensions(const Shape& a, const Shape& b);

/// An array's layout is an order of its dims alone.
HLOJIT_API bool has_plain_layout(const Shape& shape);
/// The dim of size above 1 that is minor in memory; -1 if there is none.
HLOJIT_API int64_t minor_dim(const Shape& shape);
/// The dims are the same, in order, but for those of size 1.
HLOJIT_API bool same_but_for_unit_dims(const Shape& a, const Shape& b);
/// An array of plain layout without dims of size 1; the others keep their order in memory, and all elements their
/// place.
HLOJIT_API Shape without_unit_dims(const Shape& shape);
/// Of each dim above 1 of `from` which dim of `to` it is, where the two have the same sizes, in order, but for dims of
/// size 1; -1 of those, and of all where other sizes differ.
HLOJIT_API std::vector<int64_t> past_unit_dims(const Shape& from, const Shape& to);

/// Number of leaves that have storage (arrays), depth first; tokens and () have none.
HLOJIT_API int64_t leaf_count(const Shape& shape);
/// Those leaves, depth first; pointers into `shape`.
HLOJIT_API std::vector<const Shape*> leaves(const Shape& shape);

/// All broken rules of an array's layout (size, range, duplicates, tiles, L, E ...), empty if valid.
HLOJIT_API std::vector<std::string> layout_errors(const Shape& shape);
/// Also: negative sizes, overflow of element or byte count, unbounded dims, tuple with dims.
HLOJIT_API std::vector<std::string> shape_errors(const Shape& shape);
/// Throws Error(kInvalid) with the first of shape_errors.
HLOJIT_API void check_shape(const Shape& shape, Location where = {});

HLOJIT_API std::string to_string(const Layout& layout);

}  // namespace hlojit

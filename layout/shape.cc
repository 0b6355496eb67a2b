// Shapes as values: constructors, comparisons, leaves, and the rules a shape and its layout keep.
#include "layout/shape.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include "layout/tiling.h"

namespace hlojit {
namespace {

std::string number(int64_t n) { return std::to_string(n); }

// Product of sizes; nullopt if it does not fit. A size of 0 makes any product 0.
std::optional<int64_t> checked_product(std::span<const int64_t> sizes) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return 0;
  int64_t product = 1;
  for (int64_t n : sizes) {
    if (__builtin_mul_overflow(product, n, &product)) return std::nullopt;
  }
  return product;
}

void order_errors(const Shape& shape, std::vector<std::string>& errors) {
  const std::vector<int64_t>& order = shape.layout.minor_to_major;
  int64_t rank = shape.rank();
  if (static_cast<int64_t>(order.size()) != rank) {
    errors.push_back("layout has " + number(order.size()) + " entries in minor_to_major but the array has rank " +
                     number(rank));
    return;
  }
  std::vector<bool> seen(rank, false);
  for (int64_t d : order) {
    if (d < 0 || d >= rank) {
      errors.push_back("minor_to_major names dimension " + number(d) + " but the array has rank " + number(rank));
    } else if (seen[d]) {
      errors.push_back("minor_to_major names dimension " + number(d) + " twice");
    } else {
      seen[d] = true;
    }
  }
}

void tile_errors(const Tile& tile, std::vector<std::string>& errors) {
  if (tile.dims.empty()) errors.push_back("a tile has no dimensions");
  for (int64_t t : tile.dims) {
    if (t <= 0 && t != Tile::kCombine) {
      errors.push_back("tile dimension " + number(t) + " is not positive");
    }
  }
  if (!tile.dims.empty() && tile.dims.back() == Tile::kCombine) {
    errors.push_back("the last dimension of a tile is '*', which has nothing to combine into");
  }
}

void split_errors(const Shape& shape, const SplitConfig& split, std::vector<std::string>& errors) {
  if (split.dim < 0 || split.dim >= shape.rank()) {
    errors.push_back("SC splits physical dimension " + number(split.dim) + " but the array has rank " +
                     number(shape.rank()));
    return;
  }
  int64_t previous = 0;
  for (int64_t i : split.indices) {
    if (i <= previous) {
      errors.push_back("SC indices must be positive and ascend, but " + number(i) + " follows " + number(previous));
      return;
    }
    previous = i;
  }
}

void element_size_errors(const Shape& shape, std::vector<std::string>& errors) {
  int64_t bits = shape.layout.element_size_in_bits;
  if (bits == 0) return;
  std::string name = "E(" + number(bits) + ")";
  if (bits < 0) {
    errors.push_back(name + " is negative");
  } else if (bits < dtype_bits(shape.type)) {
    errors.push_back(name + " cannot hold the " + number(dtype_bits(shape.type)) + " bits of " +
                     std::string(dtype_name(shape.type)));
  } else if (bits != 1 && bits != 2 && bits != 4 && bits % 8 != 0) {
    errors.push_back(name + " is neither 1, 2, 4 nor whole bytes");
  }
}

void size_errors(const Shape& shape, std::vector<std::string>& errors) {
  for (int64_t n : shape.dims) {
    if (n == Shape::kUnbounded) {
      errors.push_back("a dimension is unbounded ('?'): every dimension needs a size or a bound");
      return;
    }
    if (n < 0) {
      errors.push_back("dimension size " + number(n) + " is negative");
      return;
    }
  }
  if (!shape.dynamic.empty() && shape.dynamic.size() != shape.dims.size()) {
    errors.push_back("the shape has " + number(shape.dynamic.size()) + " dynamic flags but rank " +
                     number(shape.rank()));
  }
}

/// Half of what 63 bits hold, so that a size may be rounded up to whole lines and vectors: codegen did not come to an
/// end on an array of 2^63 - 1 bytes.
constexpr int64_t kMostBytes = int64_t{1} << 62;

void storage_errors(const Shape& shape, std::vector<std::string>& errors) {
  std::optional<int64_t> count = checked_product(shape.dims);
  int64_t bytes;
  if (!count || __builtin_mul_overflow(*count, int64_t{dtype_bytes(shape.type)}, &bytes) || bytes > kMostBytes) {
    errors.push_back("the size of the array overflows 64 bits");
    return;
  }
  std::vector<int64_t> origin(shape.dims.size(), 0);
  std::optional<int64_t> stored = checked_product(apply_tiles<int64_t>(shape, origin).sizes);
  const int64_t packed = shape.layout.element_size_in_bits;
  int64_t bits = packed != 0 ? packed : int64_t{8} * dtype_bytes(shape.type);
  int64_t align = shape.layout.tail_padding_alignment;
  int64_t total;
  if (!stored || __builtin_mul_overflow(ceildiv(*stored, align), align, &total) ||
      (static_cast<__int128>(total) * bits + 7) / 8 + shape.layout.metadata_prefix_bytes > kMostBytes) {
    errors.push_back("the size of the array's tiled storage overflows 64 bits");
  }
}

template <class SameType>
bool compatible_if(const Shape& a, const Shape& b, const SameType& same_type) {
  if (a.is_tuple() != b.is_tuple()) return false;
  if (a.is_tuple()) {
    return std::ranges::equal(a.elements, b.elements,
                              [&](const Shape& x, const Shape& y) { return compatible_if(x, y, same_type); });
  }
  if (a.is_array() != b.is_array()) return false;
  if (!a.is_array()) return a.type == b.type;
  return same_type(a.type, b.type) && a.dims == b.dims;
}

void collect_leaves(const Shape& shape, std::vector<const Shape*>& out) {
  if (shape.is_array()) out.push_back(&shape);
  for (const Shape& element : shape.elements) collect_leaves(element, out);
}

}  // namespace

Layout Layout::descending(int64_t rank) {
  Layout layout;
  for (int64_t d = rank; d-- > 0;) layout.minor_to_major.push_back(d);
  return layout;
}

bool Layout::is_default() const { return *this == descending(static_cast<int64_t>(minor_to_major.size())); }

Shape Shape::array(DType type, std::vector<int64_t> dims) {
  Shape shape;
  shape.type = type;
  shape.layout = Layout::descending(static_cast<int64_t>(dims.size()));
  shape.dims = std::move(dims);
  return shape;
}

Shape Shape::tuple(std::vector<Shape> elements) {
  Shape shape;
  shape.type = DType::kTuple;
  shape.elements = std::move(elements);
  return shape;
}

Shape Shape::token() {
  Shape shape;
  shape.type = DType::kToken;
  return shape;
}

Shape Shape::opaque() {
  Shape shape;
  shape.type = DType::kOpaque;
  return shape;
}

bool Shape::has_dynamic_dims() const {
  if (std::ranges::find(dynamic, true) != dynamic.end()) return true;
  return std::ranges::any_of(elements, [](const Shape& s) { return s.has_dynamic_dims(); });
}

int64_t Shape::element_count() const {
  std::optional<int64_t> count = checked_product(dims);
  if (!count) throw Error(ErrorKind::kInvalid, "the size of the array overflows 64 bits");
  return *count;
}

int64_t Shape::dense_bytes() const {
  int64_t bytes;
  if (__builtin_mul_overflow(element_count(), int64_t{dtype_bytes(type)}, &bytes)) {
    throw Error(ErrorKind::kInvalid, "the size of the array overflows 64 bits");
  }
  return bytes;
}

bool compatible(const Shape& a, const Shape& b) {
  return compatible_if(a, b, [](DType x, DType y) { return x == y; });
}

bool compatible_ignoring_element_type(const Shape& a, const Shape& b) {
  return compatible_if(a, b, [](DType, DType) { return true; });
}

bool compatible_ignoring_fp_precision(const Shape& a, const Shape& b) {
  return compatible_if(a, b, [](DType x, DType y) { return x == y || (is_float(x) && is_float(y)); });
}

bool same_dimensions(const Shape& a, const Shape& b) { return a.is_array() && b.is_array() && a.dims == b.dims; }

bool has_plain_layout(const Shape& shape) {
  Layout ordered;
  ordered.minor_to_major = shape.layout.minor_to_major;
  return shape.layout == ordered;
}

int64_t minor_dim(const Shape& shape) {
  const std::vector<int64_t>& order = shape.layout.minor_to_major;
  const auto at = std::ranges::find_if(order, [&](int64_t d) { return shape.dims[static_cast<size_t>(d)] != 1; });
  return at == order.end() ? -1 : *at;
}

bool same_but_for_unit_dims(const Shape& a, const Shape& b) {
  const auto above_one = std::views::filter([](int64_t n) { return n != 1; });
  return std::ranges::equal(a.dims | above_one, b.dims | above_one);
}

Shape without_unit_dims(const Shape& shape) {
  Shape narrow;
  narrow.type = shape.type;
  std::vector<int64_t> place(shape.dims.size(), -1);
  for (size_t d = 0; d < shape.dims.size(); ++d) {
    if (shape.dims[d] == 1) continue;
    place[d] = static_cast<int64_t>(narrow.dims.size());
    narrow.dims.push_back(shape.dims[d]);
  }
  for (int64_t d : shape.layout.minor_to_major) {
    if (place[static_cast<size_t>(d)] >= 0) narrow.layout.minor_to_major.push_back(place[static_cast<size_t>(d)]);
  }
  return narrow;
}

std::vector<int64_t> past_unit_dims(const Shape& from, const Shape& to) {
  std::vector<int64_t> places(from.dims.size(), -1);
  size_t t = 0;
  auto skip_ones = [&] {
    while (t < to.dims.size() && to.dims[t] == 1) ++t;
  };
  for (size_t f = 0; f < from.dims.size(); ++f) {
    if (from.dims[f] == 1) continue;
    skip_ones();
    if (t == to.dims.size() || to.dims[t] != from.dims[f]) return std::vector<int64_t>(from.dims.size(), -1);
    places[f] = static_cast<int64_t>(t++);
  }
  skip_ones();
  return t == to.dims.size() ? places : std::vector<int64_t>(from.dims.size(), -1);
}

int64_t leaf_count(const Shape& shape) {
  int64_t count = shape.is_array() ? 1 : 0;
  for (const Shape& element : shape.elements) count += leaf_count(element);
  return count;
}

std::vector<const Shape*> leaves(const Shape& shape) {
  std::vector<const Shape*> out;
  collect_leaves(shape, out);
  return out;
}

std::vector<std::string> layout_errors(const Shape& shape) {
  std::vector<std::string> errors;
  const Layout& layout = shape.layout;
  if (!shape.is_array()) {
    if (layout != Layout{}) errors.push_back("only an array can have a layout");
    return errors;
  }
  order_errors(shape, errors);
  for (const Tile& tile : layout.tiles) tile_errors(tile, errors);
  if (layout.tail_padding_alignment <= 0) {
    errors.push_back("L(" + number(layout.tail_padding_alignment) + ") is not positive");
  }
  if (layout.index_type != DType::kInvalid || layout.pointer_type != DType::kInvalid) {
    errors.push_back("#(...) and *(...) belong to sparse arrays, which do not exist any more");
  }
  element_size_errors(shape, errors);
  if (layout.memory_space < 0) {
    errors.push_back("memory space S(" + number(layout.memory_space) + ") is negative");
  }
  for (const SplitConfig& split : layout.split_configs) split_errors(shape, split, errors);
  if (layout.metadata_prefix_bytes < 0) {
    errors.push_back("M(" + number(layout.metadata_prefix_bytes) + ") is negative");
  }
  return errors;
}

std::vector<std::string> shape_errors(const Shape& shape) {
  std::vector<std::string> errors;
  if (shape.is_array()) {
    size_errors(shape, errors);
    bool sizes_valid = errors.empty();
    for (std::string& e : layout_errors(shape)) errors.push_back(std::move(e));
    if (!shape.elements.empty()) errors.push_back("an array has tuple elements");
    // Storage follows from sizes and layout; it has no meaning before both are valid.
    if (sizes_valid && errors.empty()) storage_errors(shape, errors);
    return errors;
  }
  std::string name(dtype_name(shape.type));
  if (shape.type == DType::kInvalid) errors.push_back("the shape has no valid type");
  if (!shape.dims.empty()) errors.push_back(name + " cannot have dimensions");
  if (!shape.is_tuple() && !shape.elements.empty()) errors.push_back(name + " has tuple elements");
  for (std::string& e : layout_errors(shape)) errors.push_back(std::move(e));
  for (const Shape& element : shape.elements) {
    for (std::string& e : shape_errors(element)) errors.push_back(std::move(e));
  }
  return errors;
}

void check_shape(const Shape& shape, Location where) {
  std::vector<std::string> errors = shape_errors(shape);
  if (!errors.empty()) throw Error(ErrorKind::kInvalid, where, errors.front(), "shape");
}

}  // namespace hlojit

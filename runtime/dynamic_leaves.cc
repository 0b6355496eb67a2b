// See dynamic_leaves.h.
#include "runtime/dynamic_leaves.h"

#include <algorithm>
#include <cstring>

namespace hlojit {
namespace {

// Row-major boxes: copies what both arrays have, a row of the last dimension at a time.
void copy_common(const Shape& from, const char* source, const Shape& to, char* target) {
  const auto width = static_cast<size_t>(dtype_bytes(from.type));
  if (from.dims.empty()) {
    std::memcpy(target, source, width);
    return;
  }
  std::vector<int64_t> box = from.dims;
  for (size_t d = 0; d < box.size(); ++d) box[d] = std::min(box[d], to.dims[d]);
  if (std::ranges::find(box, 0) != box.end()) return;
  std::vector<int64_t> at(box.size(), 0);
  while (true) {
    size_t a = 0, b = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      a = a * static_cast<size_t>(from.dims[d]) + static_cast<size_t>(at[d]);
      b = b * static_cast<size_t>(to.dims[d]) + static_cast<size_t>(at[d]);
    }
    std::memcpy(target + b * width, source + a * width, static_cast<size_t>(box.back()) * width);
    size_t d = box.size() - 1;
    while (d > 0 && ++at[d - 1] == box[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

std::vector<DynamicLeafDim> dynamic_leaf_dims(const std::vector<Shape>& leaves) {
  std::vector<DynamicLeafDim> all;
  for (size_t l = 0; l < leaves.size(); ++l) {
    for (size_t d = 0; d < leaves[l].dynamic.size(); ++d) {
      if (leaves[l].dynamic[d]) all.push_back({l, d});
    }
  }
  return all;
}

bool fits_bounds(const Shape& given, const Shape& wanted) {
  if (!wanted.has_dynamic_dims() || given.type != wanted.type || given.rank() != wanted.rank()) return false;
  for (size_t d = 0; d < wanted.dims.size(); ++d) {
    bool fits = wanted.dynamic[d] ? given.dims[d] <= wanted.dims[d] : given.dims[d] == wanted.dims[d];
    if (!fits) return false;
  }
  return given.layout == wanted.layout || given.layout.is_default();
}

Buffer resized(const Buffer& from, const Shape& to) {
  const Shape source = Shape::array(from.shape().type, from.shape().dims);
  const Shape target = Shape::array(to.type, to.dims);
  Buffer plain = from.shape() == source ? from : from.to_layout(source);
  Buffer made = Buffer::allocate(target);
  copy_common(source, static_cast<const char*>(plain.raw()), target, static_cast<char*>(made.mutable_raw()));
  return to == target ? made : made.to_layout(to);
}

}  // namespace hlojit

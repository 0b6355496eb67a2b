// What memory holds before a run is nothing to count on: all ones, which are NaN in floats and -1 in integers, where a
// test would find zeros by chance.
#pragma once

#include <cstring>
#include <vector>

#include "hlojit/hlojit.h"

namespace hlojit {

/// Fills memory that the next run of `e` takes from the pool, for its results and its temporaries.
inline void spoil_memory(const Executable& e) {
  std::vector<Buffer> taken;
  for (const Shape& shape : e.result_shapes()) {
    if (!shape.has_dynamic_dims()) taken.push_back(Buffer::allocate(shape));
  }
  if (e.arena_bytes() > 0) taken.push_back(Buffer::allocate(Shape::array(DType::kU8, {e.arena_bytes()})));
  for (Buffer& b : taken) std::memset(b.mutable_raw(), 0xff, b.size_bytes());
}

}  // namespace hlojit

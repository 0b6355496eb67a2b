// Dynamic dimensions (`<=n`) as explicit sizes: arrays keep the sizes of their bounds, and an s32[]
// travels beside each dynamic dimension. What combines elements is given its identity in place of
// padding, so padded values never reach a result:
//
//   d = f32[<=6] set-dimension-size(x, n)             m = s32[] clamp(0, n, 6)
//   s = f32[] reduce(d, zero)                  ->     p = pred[6] compare(iota, broadcast(m)), LT
//                                                     s = f32[] reduce(select(p, x, zeros), zero)
//
// Sizes are inferred forwards from set-dimension-size, dynamic-reshape and parameters. Loops and
// branches carry them beside their state. A dynamic parameter of the entry brings its sizes as
// further parameters behind all others, a dynamic result its sizes as further results.
// Test: tests/hlo/run/dynamic.hlo.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/pipeline.h"
#include "layout/shape.h"

namespace hlojit {

/// A dimension of a value whose size is known at run time only.
struct DynamicDim {
  size_t leaf;  ///< which of the value's arrays, depth first
  size_t dim;
  int64_t bound;
  bool operator==(const DynamicDim&) const = default;
};
/// Those that the shape declares, in the order in which their sizes are handed over: parameter
/// after parameter behind all parameters; behind the result in a tuple, if there are any.
std::vector<DynamicDim> dynamic_dims(const Shape& shape);
/// Whether the pass has anything to do.
bool has_dynamic_sizes(const Module& module);

bool dynamic(Module& module, const PipelineOptions& options);

}  // namespace hlojit

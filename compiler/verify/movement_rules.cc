// Ops that move elements: the result's sizes follow from the operand's and the attributes.
#include <algorithm>

#include "compiler/verify/rules.h"
#include "layout/index.h"

namespace hlojit::rules {
namespace {

// A result that has x's element type and these sizes.
Shape like(const Shape& x, std::vector<int64_t> dims) { return Shape::array(x.type, std::move(dims)); }

// Start indices of the dynamic slices, operands first.. of the op: one integer scalar a dimension,
// or (old form) one vector of them.
void need_start_indices(const Use& use, size_t first, int64_t rank) {
  int64_t given = use.count() - static_cast<int64_t>(first);
  bool vector = given == 1 && use.operand(first).is_array() && use.operand(first).rank() == 1;
  if (vector) {
    need(use.operand(first).dims[0] == rank, "dynamic-slice-indices", "{} indices are given for an operand of rank {}",
         use.operand(first).dims[0], rank);
  } else {
    need(given == rank, "dynamic-slice-indices", "{} indices are given for an operand of rank {}", given, rank);
  }
  for (size_t i = first; i < use.operands.size(); ++i) {
    const Shape& index = array(use, i);
    need(vector || index.is_scalar(), "dynamic-slice-indices", "start index {} must be a scalar, not {}", i - first,
         index);
    need(is_integral(index.type), "dynamic-slice-indices", "start indices are integers, not {}",
         dtype_name(index.type));
    need(index.type == use.operand(first).type, "dynamic-slice-indices",
         "start indices have different element types, {} and {}", dtype_name(use.operand(first).type),
         dtype_name(index.type));
  }
}

void need_slice_sizes(std::span<const int64_t> sizes, const Shape& x) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    need(sizes[d] >= 0 && sizes[d] <= x.dims[d], "dynamic-slice-size",
         "slice size {} does not lie in [0, {}], the size of dimension {}", sizes[d], x.dims[d], d);
  }
}

Shape copy(const Use& use) {
  need_count(use, 1);
  return use.operand(0);
}

Shape bitcast(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  if (!use.declared) return undetermined();
  const Shape& result = declared_array(use);
  int64_t from = physical_size(x), to = physical_size(result);
  need(from == to, "bitcast-size", "bitcast from {} bytes ({}) to {} bytes ({})", from, x.to_string(), to,
       result.to_string());
  return result;
}

Shape broadcast(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  const Ints& dims = use.attrs.dimensions;
  need(dims.size() == x.dims.size(), "dimension-count",
       "dimensions must name a result dimension for each of the operand's {}, not {}", x.rank(), list(dims));
  if (!use.declared) return undetermined();
  const Shape& result = declared_array(use);
  need(result.type == x.type, "result-shape", "broadcast of {} is declared {}: it keeps the element type", x, result);
  need_dimensions(dims, result.rank(), "dimensions");
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t from = x.dims[i], to = result.dims[dims[i]];
    need(from == to || from == 1, "broadcast-size",
         "operand dimension {} of size {} becomes result dimension {} of size {}", i, from, dims[i], to);
  }
  return result;
}

Shape reshape(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  if (!use.declared) return undetermined();
  const Shape& result = declared_array(use);
  need(result.type == x.type, "result-shape", "reshape of {} is declared {}: it keeps the element type", x, result);
  need(result.element_count() == x.element_count(), "reshape-count",
       "reshape from {} elements ({}) to {} elements ({})", x.element_count(), x, result.element_count(), result);
  return result;
}

Shape dynamic_reshape(const Use& use) {
  need(use.count() >= 1, "operand-count", "dynamic-reshape takes a value and a size for each dimension");
  const Shape& x = array(use, 0);
  for (size_t i = 1; i < use.operands.size(); ++i) {
    need(scalar(use, i).type == DType::kS32, "operand-type", "sizes of dynamic-reshape are s32[], not {}",
         use.operand(i));
  }
  if (!use.declared) return undetermined();
  const Shape& result = declared_array(use);
  need(use.count() == result.rank() + 1, "operand-count", "dynamic-reshape to {} takes {} sizes, not {}", result,
       result.rank(), use.count() - 1);
  need(result.type == x.type, "result-shape", "dynamic-reshape of {} is declared {}: it keeps the element type", x,
       result);
  need(result.element_count() == x.element_count(), "reshape-count",
       "dynamic-reshape from {} elements ({}) to {} elements ({})", x.element_count(), x, result.element_count(),
       result);
  return result;
}

Shape transpose(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  const Ints& permutation = use.attrs.dimensions;
  need(permutation.size() == x.dims.size(), "dimension-count",
       "transpose of {} takes a permutation of {} dimensions, not {}", x, x.rank(), list(permutation));
  need_dimensions(permutation, x.rank(), "dimensions");
  std::vector<int64_t> dims;
  for (int64_t p : permutation) dims.push_back(x.dims[p]);
  return like(x, std::move(dims));
}

Shape reverse(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  need_dimensions(use.attrs.dimensions, x.rank(), "dimensions");
  return x;
}

Shape concatenate(const Use& use) {
  need(use.count() >= 1, "operand-count", "concatenate takes at least one operand");
  need_arrays(use);
  const Shape& first = use.operand(0);
  need(!first.dims.empty(), "operand-kind", "concatenate joins arrays of rank 1 or more, not {}", first);
  int64_t along = single_dimension(use, first.rank());
  std::vector<int64_t> dims = first.dims;
  for (size_t i = 1; i < use.operands.size(); ++i) {
    need_same_type(use, 0, i);
    const Shape& x = use.operand(i);
    bool fits = x.dims.size() == dims.size();
    for (size_t d = 0; fits && d < dims.size(); ++d) {
      fits = static_cast<int64_t>(d) == along || x.dims[d] == dims[d];
    }
    need(fits, "operand-sizes", "operands 0 and {} of concatenate differ outside dimension {}: {} and {}", i, along,
         first, x);
    dims[along] = add(dims[along], x.dims[along]);
  }
  return like(first, std::move(dims));
}

Shape slice(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  const auto& ranges = use.attrs.slice;
  need(ranges.size() == x.dims.size(), "dimension-count", "slice of {} takes {} ranges, not {}", x, x.rank(),
       ranges.size());
  std::vector<int64_t> dims;
  for (size_t d = 0; d < ranges.size(); ++d) {
    auto [start, limit, stride] = ranges[d];
    need(stride >= 1, "slice-bounds", "stride {} of dimension {} must be at least 1", stride, d);
    need(0 <= start && start <= limit && limit <= x.dims[d], "slice-bounds",
         "range [{}:{}] of dimension {} does not lie in [0:{}]", start, limit, d, x.dims[d]);
    dims.push_back(limit == start ? 0 : (limit - start - 1) / stride + 1);
  }
  return like(x, std::move(dims));
}

Shape dynamic_slice(const Use& use) {
  need(use.count() >= 1, "operand-count", "dynamic-slice takes a value and its start indices");
  const Shape& x = array(use, 0);
  need_start_indices(use, 1, x.rank());
  const Ints& sizes = use.attrs.dynamic_slice_sizes;
  need(sizes.size() == x.dims.size(), "dimension-count", "dynamic_slice_sizes needs {} sizes for {}, not {}", x.rank(),
       x, sizes.size());
  need_slice_sizes(sizes, x);
  return like(x, sizes);
}

Shape dynamic_update_slice(const Use& use) {
  need(use.count() >= 2, "operand-count", "dynamic-update-slice takes a value, an update and its start indices");
  const Shape& x = array(use, 0);
  const Shape& update = array(use, 1);
  need_same_type(use, 0, 1);
  need(update.dims.size() == x.dims.size(), "operand-sizes", "the update must have the operand's rank: {} into {}",
       update, x);
  need_start_indices(use, 2, x.rank());
  need_slice_sizes(update.dims, x);
  return x;
}

Shape pad(const Use& use) {
  need_count(use, 2);
  const Shape& x = array(use, 0);
  scalar(use, 1);
  need_same_type(use, 0, 1);
  const auto& padding = use.attrs.padding;
  need(padding.size() == x.dims.size(), "pad-config", "padding has {} entries for an operand of rank {}",
       padding.size(), x.rank());
  std::vector<int64_t> dims;
  for (size_t d = 0; d < padding.size(); ++d) {
    auto [low, high, interior] = padding[d];
    need(interior >= 0, "pad-config", "interior padding {} of dimension {} is negative", interior, d);
    int64_t gaps = mul(std::max<int64_t>(x.dims[d] - 1, 0), interior);
    int64_t size = add(add(add(low, high), x.dims[d]), gaps);
    need(size >= 0, "pad-config", "padding {}_{} leaves {} elements of dimension {}, which has {}", low, high, size, d,
         x.dims[d]);
    dims.push_back(size);
  }
  return like(x, std::move(dims));
}

Shape get_dimension_size(const Use& use) {
  need_count(use, 1);
  single_dimension(use, array(use, 0).rank());
  return Shape::scalar(DType::kS32);
}

Shape set_dimension_size(const Use& use) {
  need_count(use, 2);
  Shape x = array(use, 0);
  need(use.operand(1).is_scalar() && use.operand(1).type == DType::kS32, "operand-type",
       "the size must be s32[], not {}", use.operand(1));
  int64_t d = single_dimension(use, x.rank());
  x.dynamic.resize(x.dims.size());
  x.dynamic[d] = true;
  return x;
}

constexpr Entry kOps[] = {
    {Opcode::kBitcast, bitcast, "", ResultShape::kDeclare},
    {Opcode::kBroadcast, broadcast, "dimensions:always", ResultShape::kDeclare},
    {Opcode::kConcatenate, concatenate, "dimensions:always!"},
    {Opcode::kCopy, copy},
    {Opcode::kDynamicReshape, dynamic_reshape, "", ResultShape::kDeclare},
    {Opcode::kDynamicSlice, dynamic_slice, "dynamic_slice_sizes!", ResultShape::kDeclare},
    {Opcode::kDynamicUpdateSlice, dynamic_update_slice, "", ResultShape::kDeclare},
    {Opcode::kGetDimensionSize, get_dimension_size, "dimensions!"},
    {Opcode::kPad, pad, "padding!"},
    {Opcode::kReshape, reshape, "inferred_dimension", ResultShape::kDeclare},
    {Opcode::kReverse, reverse, "dimensions:always!"},
    {Opcode::kSetDimensionSize, set_dimension_size, "dimensions!"},
    {Opcode::kSlice, slice, "slice!", ResultShape::kDeclare},
    {Opcode::kTranspose, transpose, "dimensions:always!"},
};

}  // namespace

std::span<const Entry> movement_rules() { return kOps; }

}  // namespace hlojit::rules

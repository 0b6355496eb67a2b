#include "compiler/analysis/index_map.h"

#include <algorithm>

namespace hlojit {
namespace {

bool contains(const Ints& list, int64_t x) { return std::find(list.begin(), list.end(), x) != list.end(); }

// Same memory position under both shapes; layouts without tiles only.
std::optional<Coords> bitcast_coords(const Shape& operand, const Shape& result, const Coords& coords) {
  if (operand.layout.tiled() || result.layout.tiled()) return std::nullopt;
  if (dtype_bits(operand.type) != dtype_bits(result.type)) return std::nullopt;
  if (operand.element_count() != result.element_count()) return std::nullopt;
  auto physical = [](const Shape& s) {
    std::vector<int64_t> dims;
    for (auto it = s.layout.minor_to_major.rbegin(); it != s.layout.minor_to_major.rend(); ++it) {
      dims.push_back(s.dims[static_cast<size_t>(*it)]);
    }
    return dims;
  };
  Coords in_order;
  for (auto it = result.layout.minor_to_major.rbegin(); it != result.layout.minor_to_major.rend(); ++it) {
    in_order.push_back(coords[static_cast<size_t>(*it)]);
  }
  std::vector<IndexExpr> read = reshape_coordinates(physical(operand), physical(result), in_order);
  Coords logical(operand.dims.size());
  size_t n = read.size();
  for (size_t k = 0; k < n; ++k) {
    logical[static_cast<size_t>(operand.layout.minor_to_major[n - 1 - k])] = read[k];
  }
  return logical;
}

}  // namespace

std::optional<Coords> operand_coords(const Instruction& i, size_t k, const Coords& coords) {
  const Shape& operand = i.operand(k)->shape;
  using enum Opcode;
  switch (i.opcode) {
    case kBroadcast: {
      Coords c;
      for (size_t d = 0; d < operand.dims.size(); ++d) {
        auto to = static_cast<size_t>(i.attrs.dimensions[d]);
        bool expands = operand.dims[d] == 1 && i.shape.dims[to] != 1;
        c.push_back(expands ? IndexExpr(0) : coords[to]);
      }
      return c;
    }
    case kReshape: return reshape_coordinates(operand.dims, i.shape.dims, coords);
    case kTranspose: {
      Coords c(coords.size());
      for (size_t d = 0; d < coords.size(); ++d) c[static_cast<size_t>(i.attrs.dimensions[d])] = coords[d];
      return c;
    }
    case kSlice: {
      Coords c;
      for (size_t d = 0; d < coords.size(); ++d) {
        c.push_back(coords[d] * i.attrs.slice[d].stride + i.attrs.slice[d].start);
      }
      return c;
    }
    case kReverse: {
      Coords c = coords;
      for (int64_t d : i.attrs.dimensions) {
        auto n = static_cast<size_t>(d);
        c[n] = IndexExpr(operand.dims[n] - 1) - coords[n];
      }
      return c;
    }
    case kBitcast: return bitcast_coords(operand, i.shape, coords);
    case kBitcastConvert:
      if (operand.dims != i.shape.dims) return std::nullopt;
      return coords;
    default: break;
  }
  if (!is_elementwise(i.opcode) && i.opcode != kCopy) return std::nullopt;
  if (operand.rank() == 0 && !coords.empty()) return Coords{};  // select's pred, clamp's bounds
  return coords;
}

Ints reduced_sizes(const Instruction& reduce) {
  Ints dims = reduce.attrs.dimensions, sizes;
  std::sort(dims.begin(), dims.end());
  for (int64_t d : dims) sizes.push_back(reduce.operand(0)->shape.dims[static_cast<size_t>(d)]);
  return sizes;
}

Coords reduce_input_coords(const Instruction& reduce, const Coords& kept, const Coords& reduced) {
  Coords c;
  size_t k = 0, r = 0;
  for (int64_t d = 0; d < reduce.operand(0)->shape.rank(); ++d) {
    c.push_back(contains(reduce.attrs.dimensions, d) ? reduced[r++] : kept[k++]);
  }
  return c;
}

Ints contracting_sizes(const Instruction& dot) {
  Ints sizes;
  for (int64_t d : dot.attrs.dot.lhs_contracting) sizes.push_back(dot.operand(0)->shape.dims[static_cast<size_t>(d)]);
  return sizes;
}

Coords dot_input_coords(const Instruction& dot, int k, const Coords& result, const Coords& contracting) {
  const DotDims& d = dot.attrs.dot;
  const Ints& batch = k == 0 ? d.lhs_batch : d.rhs_batch;
  const Ints& contracted = k == 0 ? d.lhs_contracting : d.rhs_contracting;
  const Shape& shape = dot.operand(static_cast<size_t>(k))->shape;
  auto lhs_free = static_cast<size_t>(dot.operand(0)->shape.rank()) - d.lhs_batch.size() - d.lhs_contracting.size();
  size_t next = batch.size() + (k == 0 ? 0 : lhs_free);
  Coords c(shape.dims.size());
  for (int64_t dim = 0; dim < shape.rank(); ++dim) {
    auto at = static_cast<size_t>(dim);
    auto b = std::find(batch.begin(), batch.end(), dim);
    auto x = std::find(contracted.begin(), contracted.end(), dim);
    if (b != batch.end()) c[at] = result[static_cast<size_t>(b - batch.begin())];
    else if (x != contracted.end()) c[at] = contracting[static_cast<size_t>(x - contracted.begin())];
    else c[at] = result[next++];
  }
  return c;
}

}  // namespace hlojit

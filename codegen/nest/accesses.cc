#include "codegen/nest/accesses.h"

#include <algorithm>

namespace hlojit::codegen {

bool AccessWalk::visited(const Instruction* value, const Coords& coords) {
  auto& list = seen_[value];
  if (std::find(list.begin(), list.end(), coords) != list.end()) return true;
  list.push_back(coords);
  return false;
}

// A run-time index in [0, limit].
IndexExpr AccessWalk::symbol(int64_t limit) {
  int id = vars_.fresh();
  symbols_.insert(id);
  return IndexExpr::var(id, Range{0, std::max<int64_t>(limit, 0)});
}

void AccessWalk::write(const Shape& shape, const Coords& coords) {
  accesses_.push_back({nullptr, linear_index(shape, coords), dtype_bytes(shape.type), true, false});
}

void AccessWalk::read(const Instruction* i, const Coords& coords) {
  if (visited(i, coords)) return;
  operations_ += i->info().price == OpPrice::kTranscendental ? 12 : i->info().price == OpPrice::kFree ? 0 : 1;
  if (i->shape.is_array()) {
    int bytes = dtype_bytes(i->shape.type);
    widest_ = std::max(widest_, is_narrow_float(i->shape.type) ? 4 : bytes);
  }
  using enum Opcode;
  switch (i->opcode) {
    case kParameter: {
      IndexExpr address = linear_index(i->shape, coords);
      std::vector<int> used = address.variables();
      bool random = std::any_of(used.begin(), used.end(), [&](int v) { return symbols_.contains(v); });
      accesses_.push_back({i, address, dtype_bytes(i->shape.type), false, random});
      return;
    }
    case kConstant: return;
    case kIota: add_index(coords[static_cast<size_t>(i->attrs.dimensions[0])]); return;
    case kGetTupleElement: read(i->operand(0), coords); return;
    case kReduce: {
      has_reduction_ = true;
      Coords reduced;
      for (int64_t n : reduced_sizes(*i)) reduced.push_back(IndexExpr::var(vars_.fresh(), n));
      Coords in = reduce_input_coords(*i, coords, reduced);
      size_t n = i->operand_count() / 2;
      for (size_t k = 0; k < n; ++k) read(i->operand(k), in);
      for (size_t k = n; k < 2 * n; ++k) read(i->operand(k), {});
      return;
    }
    case kDot: {
      has_reduction_ = true;
      Coords contracting;
      for (int64_t n : contracting_sizes(*i)) contracting.push_back(IndexExpr::var(vars_.fresh(), n));
      for (int k = 0; k < 2; ++k) {
        read(i->operand(static_cast<size_t>(k)), dot_input_coords(*i, k, coords, contracting));
      }
      return;
    }
    case kConcatenate: {
      auto d = static_cast<size_t>(i->attrs.dimensions[0]);
      int64_t start = 0;
      for (Instruction* piece : i->operands()) {
        int64_t size = piece->shape.dims[d];
        if (start > 0) edges_.push_back({coords[d], start});
        Coords c = coords;
        c[d] = coords[d] - IndexExpr(start);
        if (size > 0) read(piece, c);
        start += size;
      }
      return;
    }
    case kPad: {
      Coords c = coords;
      for (size_t d = 0; d < coords.size(); ++d) {
        const PadDim& p = i->attrs.padding[d];
        int64_t n = i->operand(0)->shape.dims[d];
        int64_t end = p.low + n + std::max<int64_t>(n - 1, 0) * p.interior;
        if (p.low > 0) edges_.push_back({coords[d], p.low});
        if (p.high > 0) edges_.push_back({coords[d], end});
        c[d] = coords[d] - IndexExpr(p.low);
        if (p.interior > 0) {
          add_index(mod(c[d], p.interior + 1));
          c[d] = floordiv(c[d], p.interior + 1);
        }
      }
      if (i->operand(0)->shape.element_count() > 0) read(i->operand(0), c);
      read(i->operand(1), {});
      return;
    }
    case kDynamicSlice: {
      Coords c = coords;
      for (size_t d = 0; d < coords.size(); ++d) {
        read(i->operand(d + 1), {});
        int64_t slack = i->operand(0)->shape.dims[d] - i->shape.dims[d];
        if (slack > 0) c[d] = coords[d] + symbol(slack);
      }
      read(i->operand(0), c);
      return;
    }
    case kDynamicUpdateSlice: {
      // As a value in the middle of a kernel: both sources are read under a test.
      Coords c = coords;
      for (size_t d = 0; d < coords.size(); ++d) {
        read(i->operand(d + 2), {});
        c[d] = coords[d] - symbol(i->shape.dims[d] - i->operand(1)->shape.dims[d]);
      }
      read(i->operand(0), coords);
      return;
    }
    case kGather: {
      const GatherDims& g = i->attrs.gather;
      Coords batch, c;
      for (size_t d = 0; d < coords.size(); ++d) {
        bool offset = std::find(g.offset_dims.begin(), g.offset_dims.end(), static_cast<int64_t>(d)) != g.offset_dims.end();
        if (!offset) batch.push_back(coords[d]);
      }
      Coords index = batch;
      bool explicit_vector = g.index_vector_dim < i->operand(1)->shape.rank();
      if (explicit_vector) index.insert(index.begin() + g.index_vector_dim, IndexExpr(0));
      read(i->operand(1), index);
      size_t next = 0;
      for (int64_t d = 0; d < i->operand(0)->shape.rank(); ++d) {
        auto in = [&](const Ints& l) { return std::find(l.begin(), l.end(), d) != l.end(); };
        IndexExpr e = symbol(i->operand(0)->shape.dims[static_cast<size_t>(d)] - g.slice_sizes[static_cast<size_t>(d)]);
        if (!in(g.collapsed_slice_dims) && !in(g.operand_batching_dims)) {
          e = e + coords[static_cast<size_t>(g.offset_dims[next++])];
        }
        c.push_back(e);
      }
      read(i->operand(0), c);
      return;
    }
    default: break;
  }
  for (size_t k = 0; k < i->operand_count(); ++k) {
    if (auto c = operand_coords(*i, k, coords)) {
      read(i->operand(k), *c);
    } else {
      // bitcast-convert between widths: the element group starts at the shared coordinates.
      Coords shared = coords;
      shared.resize(i->operand(k)->shape.dims.size(), IndexExpr(0));
      read(i->operand(k), shared);
    }
  }
}

}  // namespace hlojit::codegen

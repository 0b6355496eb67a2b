// Elementwise ops and data movement, and the questions about relations; reductions are in
// access_reductions.cc, writes in access_writes.cc.
#include "compiler/analysis/access.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/analysis/access_rules.h"

namespace hlojit {

using namespace access_rules;

namespace {

AccessRelation fixed(Coords coords) {
  AccessRelation r;
  r.reads.push_back({0, std::move(coords), {}});
  return r;
}

// Every operand at the result's own coordinates; scalars beside arrays are the same everywhere.
AccessRelation elementwise(const Instruction& i, Coords at) {
  AccessRelation r;
  for (size_t k = 0; k < i.operand_count(); ++k) {
    const Shape& operand = i.operand(k)->shape;
    bool scalar = operand.is_array() && operand.rank() == 0;
    r.reads.push_back({k, scalar ? Coords{} : at, {}});
  }
  return r;
}

// Wide to narrow: the element that holds the part. Narrow to wide: all parts, least significant first.
AccessRelation bitcast_convert(const Instruction& i, Coords at) {
  AccessRelation r;
  int64_t from = i.operand(0)->shape.rank(), to = i.shape.rank();
  if (from < to) at.pop_back();
  int64_t parts = from > to ? i.operand(0)->shape.dims.back() : 1;
  for (int64_t k = 0; k < parts; ++k) {
    Coords c = at;
    if (from > to) c.push_back(IndexExpr(k));
    r.reads.push_back({0, std::move(c), {}});
  }
  return r;
}

AccessRelation broadcast(const Instruction& i, const Coords& at) {
  const Shape& operand = i.operand(0)->shape;
  Coords c;
  for (size_t d = 0; d < operand.dims.size(); ++d) {
    auto to = static_cast<size_t>(i.attrs.dimensions[d]);
    bool expands = operand.dims[d] == 1 && i.shape.dims[to] != 1;
    c.push_back(expands ? IndexExpr(0) : at[to]);
  }
  return fixed(std::move(c));
}

AccessRelation transpose(const Instruction& i, const Coords& at) {
  Coords c(at.size());
  for (size_t d = 0; d < at.size(); ++d) c[static_cast<size_t>(i.attrs.dimensions[d])] = at[d];
  return fixed(std::move(c));
}

AccessRelation slice(const Instruction& i, const Coords& at) {
  Coords c;
  for (size_t d = 0; d < at.size(); ++d) c.push_back(at[d] * i.attrs.slice[d].stride + i.attrs.slice[d].start);
  return fixed(std::move(c));
}

AccessRelation reverse(const Instruction& i, Coords at) {
  for (int64_t d : i.attrs.dimensions) {
    auto n = static_cast<size_t>(d);
    at[n] = IndexExpr(i.shape.dims[n] - 1) - at[n];
  }
  return fixed(std::move(at));
}

AccessRelation concatenate(const Instruction& i, const Coords& at) {
  AccessRelation r;
  auto d = static_cast<size_t>(i.attrs.dimensions[0]);
  int64_t start = 0;
  for (size_t k = 0; k < i.operand_count(); ++k) {
    int64_t size = i.operand(k)->shape.dims[d];
    Coords c = at;
    c[d] = at[d] - IndexExpr(start);
    Guard inside{c[d], 0, size};
    r.reads.push_back({k, std::move(c), {std::move(inside)}});
    start += size;
  }
  return r;
}

AccessRelation pad(const Instruction& i, const Coords& at) {
  AccessRelation r;
  Read read;
  for (size_t d = 0; d < at.size(); ++d) {
    const PadDim& p = i.attrs.padding[d];
    IndexExpr position = at[d] - IndexExpr(p.low);
    add_dilated(read, position, p.interior + 1, i.operand(0)->shape.dims[d]);
  }
  r.reads.push_back(std::move(read));
  r.fill = 1;
  return r;
}

// Start of a box along dim d, clamped so that the box fits; `operand` holds the index (or all of them).
IndexExpr box_start(AccessRelation& r, const Instruction& i, size_t first, size_t d, int64_t slack, VarSource& vars) {
  bool vector = i.operand(first)->shape.rank() == 1;
  return symbol(r.symbols, vector ? first : first + d, vector ? Coords{IndexExpr(static_cast<int64_t>(d))} : Coords{},
                Range{0, slack}, vars);
}

AccessRelation dynamic_slice(const Instruction& i, Coords at, VarSource& vars) {
  AccessRelation r;
  for (size_t d = 0; d < at.size(); ++d) {
    int64_t slack = i.operand(0)->shape.dims[d] - i.shape.dims[d];
    if (slack > 0) at[d] = at[d] + box_start(r, i, 1, d, slack, vars);
  }
  r.reads.push_back({0, std::move(at), {}});
  return r;
}

// As a value: the update where the element lies in its box, else the operand.
AccessRelation dynamic_update_slice(const Instruction& i, Coords at, VarSource& vars) {
  AccessRelation r;
  Read update{1, at, {}};
  for (size_t d = 0; d < at.size(); ++d) {
    int64_t n = i.operand(1)->shape.dims[d], slack = i.shape.dims[d] - n;
    if (slack <= 0) continue;
    update.coords[d] = at[d] - box_start(r, i, 2, d, slack, vars);
    update.guards.push_back({update.coords[d], 0, n});
  }
  r.reads.push_back(std::move(update));
  r.reads.push_back({0, std::move(at), {}});
  return r;
}

AccessRelation gather(const Instruction& i, const Coords& at, VarSource& vars) {
  const GatherDims& g = i.attrs.gather;
  const Shape& operand = i.operand(0)->shape;
  AccessRelation r;
  Coords batch;
  for (size_t d = 0; d < at.size(); ++d) {
    if (!contains(g.offset_dims, static_cast<int64_t>(d))) batch.push_back(at[d]);
  }
  IndexVectors indices{i.operand(1)->shape, 1, g.index_vector_dim, batch};
  Coords c(operand.dims.size(), IndexExpr(0));
  for (size_t k = 0; k < g.start_index_map.size(); ++k) {
    auto d = static_cast<size_t>(g.start_index_map[k]);
    int64_t slack = operand.dims[d] - g.slice_sizes[d];
    if (slack > 0) c[d] = symbol(r.symbols, indices.operand, indices.coords(k), Range{0, slack}, vars);
  }
  for (size_t k = 0; k < g.operand_batching_dims.size(); ++k) {
    c[static_cast<size_t>(g.operand_batching_dims[k])] = indices.batch_at(g.start_indices_batching_dims[k]);
  }
  size_t next = 0;
  for (size_t d = 0; d < operand.dims.size(); ++d) {
    auto n = static_cast<int64_t>(d);
    if (contains(g.collapsed_slice_dims, n) || contains(g.operand_batching_dims, n)) continue;
    c[d] = c[d] + at[static_cast<size_t>(g.offset_dims[next++])];
  }
  // Of empty slices nothing is read: the result is zero where it has elements.
  if (!contains(g.slice_sizes, int64_t{0})) r.reads.push_back({0, std::move(c), {}});
  return r;
}

// Same place in memory under both shapes. Layouts without tiles, elements of one width.
AccessRelation bitcast(const Instruction& i, const Coords& at) {
  const Shape &from = i.operand(0)->shape, &to = i.shape;
  if (from.layout.tiled() || to.layout.tiled() || dtype_bits(from.type) != dtype_bits(to.type) ||
      from.element_count() != to.element_count()) {
    throw Error(ErrorKind::kUnsupported, i.location,
                fmt::format("bitcast from {} to {} is not compiled inside a kernel", from.to_string(), to.to_string()));
  }
  auto major_to_minor = [](const Shape& s) {
    Ints order(s.layout.minor_to_major.rbegin(), s.layout.minor_to_major.rend());
    return order;
  };
  auto sizes = [](const Shape& s, const Ints& order) {
    Ints dims;
    for (int64_t d : order) dims.push_back(s.dims[static_cast<size_t>(d)]);
    return dims;
  };
  Ints out_of = major_to_minor(from), into = major_to_minor(to);
  Coords in_order;
  for (int64_t d : into) in_order.push_back(at[static_cast<size_t>(d)]);
  Coords read = reshape_coordinates(sizes(from, out_of), sizes(to, into), in_order);
  Coords logical(from.dims.size());
  for (size_t k = 0; k < read.size(); ++k) logical[static_cast<size_t>(out_of[k])] = read[k];
  return fixed(std::move(logical));
}

}  // namespace

AccessRelation access_relation(const Instruction& i, std::span<const IndexExpr> result,
                               std::span<const IndexExpr> reduced, VarSource& vars) {
  Coords at(result.begin(), result.end());
  if (is_reduction(i)) return reduction_relation(i, at, reduced, vars);
  using enum Opcode;
  switch (i.opcode) {
    case kBitcast: return bitcast(i, at);
    case kBitcastConvert:
      if (i.operand(0)->shape.rank() != i.shape.rank()) return bitcast_convert(i, std::move(at));
      return fixed(std::move(at));
    case kBroadcast: return broadcast(i, at);
    case kConcatenate: return concatenate(i, at);
    case kCopy:
    case kGetTupleElement: return fixed(std::move(at));
    case kDynamicSlice: return dynamic_slice(i, std::move(at), vars);
    case kDynamicUpdateSlice: return dynamic_update_slice(i, std::move(at), vars);
    case kGather: return gather(i, at, vars);
    case kPad: return pad(i, at);
    case kReshape: return fixed(reshape_coordinates(i.operand(0)->shape.dims, i.shape.dims, at));
    case kReverse: return reverse(i, std::move(at));
    case kSlice: return slice(i, at);
    case kTranspose: return transpose(i, at);
    case kConstant:
    case kIota: return {};
    default: break;
  }
  if (is_elementwise(i.opcode)) return elementwise(i, std::move(at));
  throw Error(ErrorKind::kUnsupported, i.location,
              fmt::format("{} inside a kernel is not compiled yet", op_name(i.opcode)));
}

namespace {

// The first read whose guards hold, rather than all reads.
bool takes_first_read(const Instruction& i) {
  return i.info().op_class == OpClass::kMoves || i.is(Opcode::kGetTupleElement);
}

/// A guard's expression as what does not depend on these variables, and the values of what is added to it that does.
struct Parted {
  IndexExpr outer;
  Range inner{0, 0};
};

std::optional<Parted> parted(const IndexExpr& expr, std::span<const int> variables) {
  Parted p{expr, {0, 0}};
  for (const IndexExpr::Term& t : expr.terms()) {
    bool variable = t.atom->kind == IndexExpr::AtomKind::kVar;
    if (!variable || std::ranges::find(variables, t.atom->var) == variables.end()) continue;
    IndexExpr term = IndexExpr::var(t.atom->var, t.atom->range) * t.coefficient;
    p.inner.lo += term.range().lo;
    p.inner.hi += term.range().hi;
    p.outer = p.outer - term;
  }
  for (int v : variables) {
    if (p.outer.depends_on(v)) return std::nullopt;
  }
  return p;
}

}  // namespace

std::optional<Guard> for_all(const Guard& guard, std::span<const int> variables) {
  const auto p = parted(guard.expr, variables);
  if (!p) return std::nullopt;
  Guard all{p->outer, guard.lo - p->inner.lo, guard.hi - p->inner.hi};
  return all.never() ? std::nullopt : std::optional(all);
}

std::optional<Guard> for_some(const Guard& guard, std::span<const int> variables) {
  const auto p = parted(guard.expr, variables);
  if (!p) return std::nullopt;
  return Guard{p->outer, guard.lo - p->inner.hi, guard.hi - p->inner.lo};
}

std::optional<Coords> operand_coords(const Instruction& i, size_t k, std::span<const IndexExpr> result,
                                     std::span<const IndexExpr> reduced) {
  // Symbols would need variables of the caller's; a map with symbols is not fixed.
  VarSource none(1 << 30);
  AccessRelation r = access_relation(i, result, reduced, none);
  if (!r.symbols.empty() || (takes_first_read(i) && r.reads.size() != 1)) return std::nullopt;
  const Read* found = nullptr;
  for (const Read& read : r.reads) {
    if (read.operand != k) continue;
    if (found || !read.guards.empty()) return std::nullopt;
    found = &read;
  }
  if (!found) return std::nullopt;
  return found->coords;
}

// Elementwise is what the class says; no relation has to be made to know it, and fuse asks it of all pairs.
bool reads_own_element(const Instruction& i, size_t k) {
  const Shape& operand = i.operand(k)->shape;
  return i.shape.is_array() && operand.is_array() && operand.dims == i.shape.dims &&
         (is_elementwise(i.opcode) || i.is(Opcode::kCopy));
}

}  // namespace hlojit

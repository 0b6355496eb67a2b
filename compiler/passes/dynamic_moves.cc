// The part of dynamic_rules.h that moves elements: results keep their valid elements first, and
// nothing that is read comes from behind the end of an operand.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "compiler/analysis/access.h"
#include "compiler/ir/combining.h"
#include "compiler/passes/dynamic_rules.h"
#include "compiler/verify/rules.h"
#include "layout/lists.h"

namespace hlojit {

using enum Opcode;

namespace {

// Whether a place depends on a coordinate that has several values.
bool walks(const IndexExpr& place, const Coords& at, const Ints& sizes) {
  for (size_t d = 0; d < at.size(); ++d) {
    if (sizes[d] > 1 && place.depends_on(at[d].variables().at(0))) return true;
  }
  return false;
}

// Dimensions of an operand and of its reshape that hold the same elements: as many on either side.
struct Group {
  size_t from, from_end, to, to_end;
};

// The groups of a reshape, as small as can be. A dimension of one element belongs to one only where its size may be
// none: `sizes` has the operand's, and `said` tells of the result's, if of any. It is in the group of its like on the
// other side, or where there is none in that before, but for one whose result is said to have a size of its own.
std::vector<Group> groups(const Ints& from, const Ints& to, const DimSizes& sizes, const std::vector<bool>& said) {
  const bool none_said = std::ranges::find(said, true) == said.end();
  std::vector<Group> all;
  size_t a = 0, b = 0;
  bool from_unit = false, to_unit = false;
  auto skip_units = [&] {
    while (a < from.size() && from[a] == 1 && !sizes[a]) ++a;
    from_unit = a < from.size() && from[a] == 1;
    while (b < to.size() && to[b] == 1 && !said[b] && !(none_said && from_unit)) ++b;
    to_unit = b < to.size() && to[b] == 1;
  };
  auto takes_said = [&](const Group& g) {
    return std::any_of(said.begin() + static_cast<std::ptrdiff_t>(g.to),
                       said.begin() + static_cast<std::ptrdiff_t>(g.to_end), [](bool x) { return x; });
  };
  for (skip_units(); a < from.size() || b < to.size(); skip_units()) {
    Group g{a, a, b, b};
    int64_t n = a < from.size() ? from[a++] : 1, m = b < to.size() ? to[b++] : 1;
    while (n != m && (a < from.size() || b < to.size())) {
      if (b == to.size() || (n < m && a < from.size()))
        n *= from[a++];
      else
        m *= to[b++];
    }
    g.from_end = a, g.to_end = b;
    auto next_is_said = [&] { return b < to.size() && said[b] && !takes_said(g); };
    for (skip_units(); from_unit && !to_unit && !next_is_said(); skip_units()) g.from_end = ++a;
    for (; to_unit && !from_unit && !takes_said(g); skip_units()) g.to_end = ++b;
    all.push_back(g);
  }
  return all;
}

}  // namespace

// A result dimension whose index walks through the whole of an operand's dimension has its size. A single element,
// wherever it is taken from, is there: the program knows. Windows that walk through a part would each end elsewhere.
void DynamicRules::follow(Instruction* i) {
  VarSource vars;
  Coords at;
  // (A variable of one value would be a constant.)
  for (int64_t n : i->shape.dims) at.push_back(IndexExpr::var(vars.fresh(), std::max<int64_t>(n, 2)));
  AccessRelation relation = access_relation(*i, at, {}, vars);
  DimSizes result(at.size());
  auto read = [&](size_t operand, const Coords& coords) {
    const Instruction* x = i->operand(operand);
    DimSizes sizes = dims(x);
    for (size_t k = 0; k < coords.size(); ++k) {
      auto d = static_cast<size_t>(std::ranges::find(at, coords[k]) - at.begin());
      bool whole = sizes[k] && d < at.size() && i->shape.dims[d] == x->shape.dims[k];
      if (whole) result[d] = is_elementwise(i->opcode) ? joint(result[d], sizes[k]) : least(result[d], sizes[k]);
      if (!sizes[k] || whole || !walks(coords[k], at, i->shape.dims)) continue;
      throw Error(ErrorKind::kUnsupported, i->location,
                  fmt::format("{} of parts of dimension {}, whose size is known at run time only: it must take all of "
                              "it or one element",
                              op_name(i->opcode), k));
    }
  };
  for (const Symbol& s : relation.symbols) read(s.operand, s.coords);
  for (const Read& r : relation.reads) read(r.operand, r.coords);
  // Indices that choose among one place only are not read, and give their sizes all the same.
  const GatherDims& g = i->attrs.gather;
  for (size_t d = 0, k = 0; !g.slice_sizes.empty() && d < result.size(); ++d) {
    if (contains(g.offset_dims, static_cast<int64_t>(d))) continue;
    if (static_cast<int64_t>(k) == g.index_vector_dim) ++k;
    if (!result[d]) result[d] = dims(i->operand(1))[k];
    ++k;
  }
  set_dims(i, std::move(result));
}

// Reversed, the valid elements come last; a window of the same size moves them to the front.
Instruction* DynamicRules::reverse(Instruction* i) {
  DimSizes sizes = dims(i->operand(0));
  Builder::Values starts;
  std::vector<PadDim> behind(sizes.size());
  bool shifts = false;
  for (int64_t d = 0; d < std::ssize(sizes); ++d) {
    bool moved = sizes[d] && contains(i->attrs.dimensions, d);
    const int64_t bound = i->shape.dims[d];
    starts.push_back(moved ? b_.binary(kSubtract, s32(bound), sizes[d]) : s32(0));
    if (moved) behind[d].high = bound;
    shifts |= moved;
  }
  set_dims(i, sizes);
  if (!shifts) return i;
  Instruction* reversed = b_.rev(i->operand(0), i->attrs.dimensions);
  Instruction* made = b_.dynamic_slice(b_.pad(reversed, zero(i->shape.type), behind), starts, i->shape.dims);
  set_dims(made, std::move(sizes));
  return made;
}

// Written one after the other, each over the padding of the one before.
Instruction* DynamicRules::concatenate(Instruction* i) {
  const int64_t d = i->attrs.dimensions.at(0);
  DimSizes sizes;
  bool along = false;
  for (const Instruction* o : i->operands()) {
    DimSizes of = dims(o);
    along |= of[d] != nullptr;
    if (sizes.empty()) sizes = of;
    for (size_t k = 0; k < of.size(); ++k) {
      sizes[k] = least(sizes[k], of[k]);
    }
  }
  if (!along) {
    set_dims(i, std::move(sizes));
    return i;
  }
  Instruction* whole = b_.broadcast(zero(i->shape.type), i->shape.dims);
  Instruction* offset = s32(0);
  for (Instruction* o : i->operands()) {
    Builder::Values starts(i->shape.dims.size(), s32(0));
    starts[d] = offset;
    whole = b_.dynamic_update_slice(whole, o, starts);
    offset = b_.binary(kAdd, offset, runtime_size(o, d));
  }
  sizes[d] = offset;
  set_dims(whole, std::move(sizes));
  return whole;
}

// Of a dynamic update only the valid part is written.
void DynamicRules::dynamic_update_slice(Instruction* i) {
  Instruction *x = i->operand(0), *update = i->operand(1);
  if (is_dynamic(update)) {
    Builder::Values starts(i->operands().begin() + 2, i->operands().end());
    Ints among;
    for (int64_t d = 0; d < update->shape.rank(); ++d) among.push_back(d);
    Instruction* valid = inside(update->shape, dims(update), among);
    Instruction* present = b_.dynamic_slice(x, starts, update->shape.dims);
    i->set_operand(1, b_.select(valid, update, present));
  }
  set_dims(i, dims(x));
}

// Behind the end stands the padding value, so what is added there follows the valid elements.
void DynamicRules::pad(Instruction* i) {
  Instruction* x = i->operand(0);
  DimSizes sizes = dims(x);
  Ints among;
  for (int64_t d = 0; d < x->shape.rank(); ++d) among.push_back(d);
  i->set_operand(0, masked(x, among, i->operand(1)));
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!sizes[d]) continue;
    auto [low, high, interior] = i->attrs.padding[d];
    Instruction* gaps = b_.binary(kMaximum, b_.binary(kSubtract, sizes[d], s32(1)), s32(0));
    Instruction* n = b_.binary(kAdd, sizes[d], b_.binary(kMultiply, gaps, s32(interior)));
    sizes[d] = b_.binary(kMaximum, b_.binary(kAdd, n, s32(low + high)), s32(0));
  }
  set_dims(i, std::move(sizes));
}

// Where a dynamic-slice starts along d, as an s32.
Instruction* DynamicRules::start_of(const Instruction* i, int64_t d) {
  Instruction* at = i->operand(1);
  const DType type = is_signed(at->shape.type) ? DType::kS64 : DType::kU64;
  if (at->shape.rank() == 1) {
    at = b_.reshape(b_.slice_in_dim(at, d, d + 1, 1, 0), {});
  } else {
    at = i->operand(static_cast<size_t>(d) + 1);
  }
  const auto k = static_cast<size_t>(d);
  const auto last = static_cast<double>(i->operand(0)->shape.dims[k] - i->shape.dims[k]);
  Instruction* clamped = b_.op(kClamp, {b_.constant(type, 0), b_.convert(at, type), b_.constant(type, last)});
  return b_.convert(clamped, DType::kS32);
}

// Of a part of a dimension those elements are valid that lie before its end; a single one, as in XLA, always.
void DynamicRules::slice(Instruction* i) {
  DimSizes sizes = dims(i->operand(0));
  for (int64_t k = 0; k < std::ssize(sizes); ++k) {
    const auto d = static_cast<size_t>(k);
    if (!sizes[d] || i->shape.dims[d] == i->operand(0)->shape.dims[d]) continue;
    if (i->shape.dims[d] == 1) {
      sizes[d] = nullptr;
      continue;
    }
    const bool fixed = i->is(kSlice);
    const int64_t stride = fixed ? i->attrs.slice[d].stride : 1;
    Instruction* start = fixed ? s32(i->attrs.slice[d].start) : start_of(i, k);
    Instruction* limit = fixed ? s32(i->attrs.slice[d].limit) : b_.binary(kAdd, start, s32(i->shape.dims[d]));
    Instruction* end = b_.binary(kMinimum, sizes[d], limit);
    Instruction* room = b_.binary(kMaximum, b_.binary(kSubtract, end, start), s32(0));
    Instruction* stretched = b_.binary(kAdd, room, s32(stride - 1));
    sizes[d] = stride == 1 ? room : b_.binary(kDivide, stretched, s32(stride));
  }
  set_dims(i, std::move(sizes));
}

// Where a group is one dimension on either side its size is handed on; else its size goes to the dimension that is
// declared dynamic, or the slowest, and the elements move together.
Instruction* DynamicRules::reshape(Instruction* i) {
  Instruction* x = i->operand(0);
  const Ints &from = x->shape.dims, &to = i->shape.dims;
  const DimSizes sizes = dims(x);
  std::vector<bool> said = i->shape.dynamic;
  said.resize(to.size());
  DimSizes result(to.size());
  bool moves = false;
  for (const Group& g : groups(from, to, sizes, said)) {
    auto has_size = [](Instruction* s) { return s != nullptr; };
    auto slowest = sizes.begin() + static_cast<std::ptrdiff_t>(g.from);
    auto end = sizes.begin() + static_cast<std::ptrdiff_t>(g.from_end);
    if (g.to == g.to_end || std::none_of(slowest, end, has_size)) continue;
    if (g.from_end - g.from == 1 && g.to_end - g.to == 1) {
      result[g.to] = sizes[g.from];
      continue;
    }
    Instruction* count = s32(1);
    for (size_t k = g.from; k < g.from_end; ++k) {
      count = b_.binary(kMultiply, count, sizes[k] ? sizes[k] : s32(from[k]));
    }
    size_t grows = g.to;
    while (grows + 1 < g.to_end && to[grows] == 1) ++grows;
    for (size_t k = g.to; k < g.to_end; ++k) {
      if (said[k]) grows = k;
    }
    int64_t rest = 1;
    for (size_t k = g.to; k < g.to_end; ++k) rest *= k == grows ? 1 : std::max<int64_t>(to[k], 1);
    result[grows] = b_.binary(kDivide, count, s32(rest));
    // A slowest dynamic dimension on both sides: the valid elements are a prefix already.
    moves |= grows != g.to || std::any_of(slowest + 1, end, has_size);
  }
  if (moves) return compacted(x, i->shape, result);
  set_dims(i, std::move(result));
  return i;
}

Instruction* DynamicRules::dynamic_reshape(Instruction* i) {
  DimSizes sizes;
  for (size_t d = 0; d < i->shape.dims.size(); ++d) sizes.push_back(clamped(i->operand(d + 1), i->shape.dims[d]));
  return compacted(i->operand(0), i->shape, sizes);
}

// The valid elements of x in row-major order as those of an array of `shape` whose valid part has
// `sizes`. An element's number among the valid ones follows from its coordinates and the run-time
// sizes, and gives its coordinates in x the same way.
Instruction* DynamicRules::compacted(Instruction* x, const Shape& shape, const DimSizes& sizes) {
  const Shape index = Shape::array(DType::kS32, shape.dims);
  auto spread = [&](Instruction* scalar) { return b_.broadcast(scalar, shape.dims); };
  Instruction* number = spread(s32(0));
  for (int64_t d = 0; d < shape.rank(); ++d) {
    Instruction* size = sizes[d] ? sizes[d] : s32(shape.dims[d]);
    number = b_.binary(kAdd, b_.binary(kMultiply, number, spread(size)), b_.iota(index, d));
  }
  Instruction* at = spread(s32(0));
  int64_t stride = 1;
  for (int64_t d = x->shape.rank(); d-- > 0;) {
    Instruction* size = spread(b_.binary(kMaximum, runtime_size(x, d), s32(1)));
    Instruction* digit = b_.binary(kRemainder, number, size);
    number = b_.binary(kDivide, number, size);
    at = b_.binary(kAdd, at, b_.binary(kMultiply, digit, spread(s32(stride))));
    stride *= x->shape.dims[d];
  }
  GatherDims one;
  one.collapsed_slice_dims = one.start_index_map = {0};
  one.index_vector_dim = shape.rank();
  one.slice_sizes = {std::min<int64_t>(1, stride)};
  Instruction* made = b_.gather(b_.reshape(x, {stride}), at, std::move(one));
  set_dims(made, sizes);
  return made;
}

Instruction* DynamicRules::get_dimension_size(Instruction* i) {
  return runtime_size(i->operand(0), i->attrs.dimensions.at(0));
}

// More than the bound is the bound, less than nothing is nothing. A static result is whole again; only where the size
// is a constant that is less, it is that, whatever the shape says, as in XLA.
Instruction* DynamicRules::set_dimension_size(Instruction* i) {
  Instruction *x = i->operand(0), *n = i->operand(1);
  const int64_t d = i->attrs.dimensions.at(0);
  DimSizes sizes = dims(x);
  const bool less = n->is(kConstant) && n->literal->as_int(0) < x->shape.dims[d];
  const bool says_dynamic = static_cast<size_t>(d) < i->shape.dynamic.size() && i->shape.dynamic[d];
  sizes[d] = less || says_dynamic ? clamped(n, x->shape.dims[d]) : nullptr;
  return resized(x, std::move(sizes));
}

// A value of its own: the same x may have other sizes elsewhere.
Instruction* DynamicRules::resized(Instruction* x, DimSizes sizes) {
  Instruction* made = b_.unary(kCopy, x);
  set_dims(made, std::move(sizes));
  return made;
}

// What XLA:CPU writes where it takes sizes out of an array, (x, sizes...), and where it puts them back.
Instruction* DynamicRules::pad_to_static(Instruction* i) {
  Instruction* x = i->operand(0);
  Builder::Values elements = {resized(x, DimSizes(x->shape.dims.size()))};
  for (int64_t d = 0; d < x->shape.rank(); ++d) elements.push_back(runtime_size(x, d));
  return b_.tuple(std::move(elements));
}

Instruction* DynamicRules::slice_to_dynamic(Instruction* i) {
  DimSizes sizes;
  for (size_t d = 0; d < i->shape.dims.size(); ++d) {
    const bool is_dynamic = d < i->shape.dynamic.size() && i->shape.dynamic[d];
    sizes.push_back(is_dynamic ? clamped(i->operand(d + 1), i->shape.dims[d]) : nullptr);
  }
  return resized(i->operand(0), std::move(sizes));
}

// A window is written as far as its size goes: what is behind that combines to nothing, or is behind the end of the
// operand, too, which is as long.
Instruction* DynamicRules::window_updates(const Instruction* i, size_t k) {
  const ScatterDims& s = i->attrs.scatter;
  const size_t n = i->operand_count() / 2;
  Instruction *x = i->operand(k), *updates = i->operand(n + 1 + k);
  const DimSizes to = dims(x), of = dims(updates);
  Ints among;
  for (size_t d = 0, next = 0; d < to.size(); ++d) {
    if (contains(s.inserted_window_dims, static_cast<int64_t>(d))) continue;
    if (contains(s.input_batching_dims, static_cast<int64_t>(d))) continue;
    const int64_t window = s.update_window_dims[next++];
    const bool whole = of[window] == to[d] && updates->shape.dims[window] == x->shape.dims[d];
    if (of[window] && !whole) among.push_back(window);
  }
  if (among.empty()) return updates;
  std::optional<Opcode> op = n == 1 ? combining_op(*i->to_apply()) : std::nullopt;
  std::optional<Literal> neutral = op ? neutral_number(*op, updates->shape.type) : std::nullopt;
  if (neutral) return masked(updates, among, b_.constant(std::move(*neutral)));
  throw Error(ErrorKind::kUnsupported, i->location,
              fmt::format("scatter of windows whose dimension {} has a size known at run time only, other than the "
                          "operand's, is compiled only where what they are combined by has an identity",
                          among[0]));
}

// Indices behind the end point nowhere.
void DynamicRules::scatter(Instruction* i) {
  const ScatterDims& s = i->attrs.scatter;
  const size_t n = i->operand_count() / 2;
  Instruction* indices = i->operand(n);
  DimSizes batch = dims(indices);
  // Of a type that can name a place outside every dimension.
  if (indices->shape.type != DType::kS32) indices = b_.convert(indices, DType::kS64);
  for (size_t k = 0; k < n; ++k) {
    DimSizes of = dims(i->operand(n + 1 + k));
    i->set_operand(n + 1 + k, window_updates(i, k));
    size_t next = 0;
    for (int64_t d = 0; d < std::ssize(of); ++d) {
      if (contains(s.update_window_dims, d)) continue;
      if (static_cast<int64_t>(next) == s.index_vector_dim) ++next;
      if (next < batch.size() && !batch[next]) batch[next] = of[d];
      ++next;
    }
  }
  Literal nowhere(Shape::scalar(indices->shape.type));
  nowhere.set_int(0, std::numeric_limits<int32_t>::min());
  Ints among;
  for (int64_t d = 0; d < indices->shape.rank(); ++d) {
    if (d != s.index_vector_dim) among.push_back(d);
  }
  i->set_operand(n, masked(indices, batch, among, b_.constant(std::move(nowhere))));
  set(i, [&] {
    LeafSizes all;
    for (size_t k = 0; k < n; ++k) all.push_back(dims(i->operand(k)));
    return all;
  }());
}

}  // namespace hlojit

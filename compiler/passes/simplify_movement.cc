// Rules about where elements are: moves that move nothing, moves of moves, moves of what is the
// same everywhere. All exact for every type; reductions are, but for their order.
#include <algorithm>

#include "compiler/analysis/access.h"
#include "compiler/ir/combining.h"
#include "compiler/ir/instruction_set.h"
#include "compiler/passes/reduced_arrays.h"
#include "compiler/passes/rounds.h"
#include "compiler/passes/simplify_rules.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;
using Context = SimplifyContext;

bool is_identity(const Ints& dimensions) {
  for (size_t d = 0; d < dimensions.size(); ++d) {
    if (dimensions[d] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

/// A broadcast that HLO allows: dimensions ascending.
Instruction* broadcast(Context& c, Instruction* x, const Ints& sizes, const Ints& dimensions) {
  if (!std::ranges::is_sorted(dimensions)) return nullptr;
  if (x->shape.dims == sizes && is_identity(dimensions)) return x;
  return c.b.broadcast_in_dim(x, sizes, dimensions);
}

Instruction* if_same_sizes(Context&, Instruction* i) {
  return i->operand(0)->shape.dims == i->shape.dims ? i->operand(0) : nullptr;
}

Instruction* merge_reshapes(Context& c, Instruction* i) {
  const Instruction* inner = i->operand(0);
  return inner->is(kReshape) ? c.b.reshape(inner->operand(0), i->shape.dims) : nullptr;
}

/// reshape(broadcast(x)) that only adds or takes dims of size 1, or whose x is a scalar.
Instruction* reshape_broadcast(Context& c, Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->is(kBroadcast)) return nullptr;
  Instruction* x = inner->operand(0);
  if (x->shape.rank() == 0) return broadcast(c, x, i->shape.dims, {});
  if (std::ranges::count(x->shape.dims, 1) > 0) return nullptr;  // squeeze knows these
  const Ints places = past_unit_dims(inner->shape, i->shape);
  Ints dims;
  for (int64_t d : inner->attrs.dimensions) {
    if (places[d] < 0) return nullptr;
    dims.push_back(places[d]);
  }
  return broadcast(c, x, i->shape.dims, dims);
}

Instruction* merge_transposes(Context& c, Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->is(kTranspose)) return nullptr;
  Ints dims;
  for (int64_t d : i->attrs.dimensions) dims.push_back(inner->attrs.dimensions[d]);
  return is_identity(dims) ? inner->operand(0) : c.b.transpose(inner->operand(0), dims);
}

/// A transpose that keeps the order of the dims above 1.
Instruction* transpose_of_ones(Context& c, Instruction* i) {
  Ints moving;
  for (int64_t d : i->attrs.dimensions) {
    if (i->operand(0)->shape.dims[d] != 1) moving.push_back(d);
  }
  if (!std::ranges::is_sorted(moving)) return nullptr;
  return c.b.reshape(i->operand(0), i->shape.dims);
}

Instruction* transpose_broadcast(Context& c, Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->is(kBroadcast)) return nullptr;
  Ints dims;
  for (int64_t d : inner->attrs.dimensions) {
    dims.push_back(std::ranges::find(i->attrs.dimensions, d) - i->attrs.dimensions.begin());
  }
  return broadcast(c, inner->operand(0), i->shape.dims, dims);
}

/// A product with its rows and columns exchanged: that of the operands exchanged. (A gradient of weights comes so from
/// JAX; what follows is then elementwise, and done where the product is.) Not where the new columns would leave vectors
/// empty: eight of them took twice as long.
Instruction* transpose_dot(Context&, Instruction* i) {
  constexpr int64_t kManyColumns = 64;
  const Instruction* dot = i->operand(0);
  if (!dot->is(kDot) || dot->users().size() != 1 || !dot->attrs.dot_algorithm->empty()) return nullptr;
  const DotDims& d = dot->attrs.dot;
  const int64_t batch = std::ssize(d.lhs_batch), rank = dot->shape.rank();
  const int64_t rows = dot->operand(0)->shape.rank() - batch - std::ssize(d.lhs_contracting);
  for (int64_t k = 0; k < rank; ++k) {
    const int64_t from = k < batch ? k : k < rank - rows ? k + rows : k - (rank - batch - rows);
    if (i->attrs.dimensions[k] != from) return nullptr;
  }
  const Ints& sizes = i->shape.dims;  // batch, new rows, new columns
  if (rows == 0 || sizes.back() < std::min(kManyColumns, sizes[batch])) return nullptr;
  Instruction* made = i->parent()->clone_instruction(*dot, {dot->operand(1), dot->operand(0)});
  made->shape.dims = sizes;
  made->attrs.dot = DotDims{d.rhs_batch, d.lhs_batch, d.rhs_contracting, d.lhs_contracting};
  std::ranges::reverse(made->attrs.operand_precision);
  return made;
}

/// A product of what was transposed reads it as it was, where its free dims keep their order: as an array, it may be
/// read where it lies. (8x4096 by a transposed 4096x4096 took 1.4 times as long by way of the transpose.)
Instruction* product_of_transposed(Context&, Instruction* dot) {
  DotDims dims = dot->attrs.dot;
  std::vector<Instruction*> operands(dot->operands().begin(), dot->operands().end());
  bool any = false;
  for (size_t side = 0; side < 2; ++side) {
    const Instruction* transposed = operands[side];
    if (!transposed->is(kTranspose)) continue;
    Ints &batch = dims.batch(side), &contracting = dims.contracting(side);
    const Ints& from = transposed->attrs.dimensions;
    Ints kept;
    for (int64_t d = 0; d < std::ssize(from); ++d) {
      if (!contains(batch, d) && !contains(contracting, d)) kept.push_back(from[d]);
    }
    if (!std::ranges::is_sorted(kept)) continue;
    for (int64_t& d : batch) d = from[d];
    for (int64_t& d : contracting) d = from[d];
    operands[side] = transposed->operand(0);
    any = true;
  }
  if (!any) return nullptr;
  Instruction* made = dot->parent()->clone_instruction(*dot, operands);
  made->attrs.dot = dims;
  return made;
}

Instruction* merge_broadcasts(Context& c, Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->is(kBroadcast)) return nullptr;
  Ints dims;
  for (int64_t d : inner->attrs.dimensions) dims.push_back(i->attrs.dimensions[d]);
  return broadcast(c, inner->operand(0), i->shape.dims, dims);
}

/// A large constant of one value is a broadcast of a scalar.
Instruction* spread_constant(Context& c, Instruction* i) {
  if (!i->shape.is_array() || i->shape.element_count() < 2 || !i->literal->is_splat()) return nullptr;
  Literal scalar(Shape::scalar(i->shape.type));
  std::ranges::copy(i->literal->bytes().first(scalar.bytes().size()), scalar.bytes().begin());
  return c.b.broadcast(c.b.constant(std::move(scalar)), i->shape.dims);
}

// ---- slices
// ----------------------------------------------------------------------------------------

Instruction* merge_slices(Context& c, Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->is(kSlice)) return nullptr;
  Ints starts, limits, strides;
  for (int64_t d = 0; d < i->shape.rank(); ++d) {
    const SliceRange &in = inner->attrs.slice[d], &out = i->attrs.slice[d];
    int64_t size = i->shape.dims[d];
    if (size == 0) return nullptr;
    starts.push_back(in.start + out.start * in.stride);
    strides.push_back(in.stride * out.stride);
    limits.push_back(starts.back() + (size - 1) * strides.back() + 1);
  }
  return c.b.slice(inner->operand(0), starts, limits, strides);
}

/// Cuts along dims that are all the same: a smaller broadcast.
Instruction* slice_broadcast(Context& c, Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->is(kBroadcast)) return nullptr;
  for (int64_t d : inner->attrs.dimensions) {
    if (i->shape.dims[d] != inner->shape.dims[d]) return nullptr;
  }
  return broadcast(c, inner->operand(0), i->shape.dims, inner->attrs.dimensions);
}

/// A slice that lies in one part of a concatenation.
Instruction* slice_concatenation(Context& c, Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->is(kConcatenate) || i->shape.element_count() == 0) return nullptr;
  auto d = static_cast<size_t>(inner->attrs.dimensions[0]);
  const SliceRange& range = i->attrs.slice[d];
  int64_t begin = 0;
  for (Instruction* part : inner->operands()) {
    int64_t end = begin + part->shape.dims[d];
    if (range.start >= begin && range.limit <= end) {
      Ints starts, limits, strides;
      for (size_t k = 0; k < i->attrs.slice.size(); ++k) {
        const SliceRange& r = i->attrs.slice[k];
        starts.push_back(r.start - (k == d ? begin : 0));
        limits.push_back(r.limit - (k == d ? begin : 0));
        strides.push_back(r.stride);
      }
      return c.b.slice(part, starts, limits, strides);
    }
    begin = end;
  }
  return nullptr;
}

/// A slice that takes nothing of what a pad adds.
Instruction* slice_pad(Context& c, Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->is(kPad) || i->shape.element_count() == 0) return nullptr;
  Ints starts, limits, strides;
  for (size_t d = 0; d < i->attrs.slice.size(); ++d) {
    const SliceRange& range = i->attrs.slice[d];
    const PadDim& pad = inner->attrs.padding[d];
    starts.push_back(range.start - pad.low);
    limits.push_back(range.limit - pad.low);
    strides.push_back(range.stride);
    if (pad.interior > 0 || starts.back() < 0 || limits.back() > inner->operand(0)->shape.dims[d]) return nullptr;
  }
  return c.b.slice(inner->operand(0), starts, limits, strides);
}

/// dynamic-slice at constant starts, which are clamped.
Instruction* fixed_slice(Context& c, Instruction* i) {
  Ints starts, limits;
  const Shape& from = i->operand(0)->shape;
  if (std::ssize(i->operands()) != from.rank() + 1) return nullptr;  // one vector of starts, before `expand`
  for (int64_t d = 0; d < from.rank(); ++d) {
    int64_t slack = from.dims[d] - i->shape.dims[d], start = 0;
    const Instruction* at = i->operand(d + 1);
    if (slack > 0) {
      if (at->shape.rank() != 0 || !at->is(kConstant)) return nullptr;
      start = std::clamp<int64_t>(at->literal->as_int(0), 0, slack);
      bool huge = is_unsigned(at->shape.type) && at->literal->as_int(0) < 0;
      if (huge) start = slack;  // a u64 beyond int64
    }
    starts.push_back(start);
    limits.push_back(start + i->shape.dims[d]);
  }
  return c.b.slice(i->operand(0), starts, limits);
}

// ---- reverse, concatenate, pad
// ---------------------------------------------------------------------

/// Turning round dims of size 1, or dims a broadcast makes, changes nothing.
Instruction* shorter_reverse(Context& c, Instruction* i) {
  Instruction* x = i->operand(0);
  Ints dims;
  for (int64_t d : i->attrs.dimensions) {
    bool same = i->shape.dims[d] == 1 || (x->is(kBroadcast) && !contains(x->attrs.dimensions, d));
    if (!same) dims.push_back(d);
  }
  if (dims.size() == i->attrs.dimensions.size()) return nullptr;
  return dims.empty() ? x : c.b.rev(x, dims);
}

Instruction* double_reverse(Context&, Instruction* i) {
  const Instruction* inner = i->operand(0);
  bool back = inner->is(kReverse) && std::ranges::is_permutation(inner->attrs.dimensions, i->attrs.dimensions);
  return back ? inner->operand(0) : nullptr;
}

Instruction* shorter_concatenation(Context& c, Instruction* i) {
  int64_t d = i->attrs.dimensions[0];
  Builder::Values parts;
  for (Instruction* o : i->operands()) {
    if (o->shape.dims[d] != 0) parts.push_back(o);
  }
  if (parts.size() == 1) return parts[0];
  if (parts.empty() || parts.size() == i->operand_count()) return nullptr;
  return c.b.concat_in_dim(std::move(parts), d);
}

Instruction* no_pad(Context&, Instruction* i) {
  bool none = std::ranges::all_of(i->attrs.padding, [](const PadDim& p) { return p == PadDim{}; });
  return none ? i->operand(0) : nullptr;
}

/// Windows over elements with the value between them that they start from: the window itself knows of gaps, and of
/// edges. (In the gradient of an average pool of 3x3 by 2 each term asked whether it is an element: 223 us, 42 so.
/// Windows that see one element at most are cheaper as a padded copy: 38 us against 82.)
Instruction* window_over_gaps(Context& c, Instruction* i) {
  const Instruction* pad = i->operand(0);
  if (i->operand_count() != 2 || !pad->is(kPad) || pad->operand(0)->shape.element_count() == 0) return nullptr;
  const Literal *value = splat_value(pad->operand(1)), *init = splat_value(i->operand(1));
  const std::optional<Opcode> op = combining_op(*i->to_apply());
  if (!op || !value || !init || !value->identical(*init)) return nullptr;
  const std::optional<Literal> neutral = neutral_number(*op, value->shape().type);
  if (neutral && neutral->as_complex(0) != value->as_complex(0)) return nullptr;  // extrema feel no second start
  std::vector<WindowDim> window = i->attrs.window;
  bool several = false;
  for (size_t d = 0; d < window.size(); ++d) {
    const PadDim& p = pad->attrs.padding[d];
    several |= p.interior > 0 && window[d].size > p.interior + 1;
    // What the padding cuts off would be seen again by windows that reach beyond.
    if ((p.low < 0 && window[d].pad_low > 0) || (p.high < 0 && window[d].pad_high > 0)) return nullptr;
    window[d].pad_low += window[d].lhs_dilate * p.low;
    window[d].pad_high += window[d].lhs_dilate * p.high;
    window[d].lhs_dilate *= p.interior + 1;
  }
  return several ? c.b.reduce_window({pad->operand(0)}, {i->operand(1)}, i->to_apply(), std::move(window)) : nullptr;
}

// ---- reshapes ------------------------------------------------------------------------------------

/// Arrays side by side, elementwise at most.
bool is_side_by_side(const Instruction* value) {
  constexpr size_t kMostLooks = 16;
  std::vector<const Instruction*> next = {value};
  for (size_t k = 0; k < next.size() && k < kMostLooks; ++k) {
    const Instruction* i = next[k];
    if (i->is(kConcatenate) || i->is(kPad)) return true;
    if (is_elementwise(i->opcode)) next.insert(next.end(), i->operands().begin(), i->operands().end());
  }
  return false;
}

/// What is computed with a reshape of arrays side by side is computed before it: where the next of them begins is then
/// where a dim is cut, not every so many elements of one. (Two by two f64[29,3,34], flat, times two, a Zen 4: 3.3 us
/// by way of two arrays in memory, 1.4.) Nothing is cut otherwise where only dims of size 1 come or go, which squeeze
/// takes away.
Instruction* reshape_later(Context& c, Instruction* i) {
  const auto side_by_side = [](const Instruction* o) {
    return o->is(kReshape) && !same_but_for_unit_dims(o->shape, o->operand(0)->shape) && is_side_by_side(o->operand(0));
  };
  const auto found = std::ranges::find_if(i->operands(), side_by_side);
  if (found == i->operands().end() || !i->called.empty() || i->shape.rank() == 0) return nullptr;
  if ((*found)->shape.dims != i->shape.dims) return nullptr;  // bits of another width
  const Ints& sizes = (*found)->operand(0)->shape.dims;
  Builder::Values operands;
  for (Instruction* o : i->operands()) {
    const bool reshaped = o->is(kReshape) && o->operand(0)->shape.dims == sizes;
    if (!reshaped && o->shape.rank() > 0 && !o->is(kParameter) && !o->is(kConstant) && !splat_value(o)) return nullptr;
    operands.push_back(reshaped ? o->operand(0) : o->shape.rank() == 0 ? o : c.b.reshape(o, sizes));
  }
  return c.b.reshape(c.b.op(i->opcode, Shape::array(i->shape.type, sizes), std::move(operands), i->attrs),
                     i->shape.dims);
}

// ---- reductions ------------------------------------------------------------------------------------

/// A reduction whose order is free goes over what was reshaped: addresses in it are no quotients. (The sum of 70003
/// floats tiled three times, a Zen 4: 148 us in rows of the reshape.)
Instruction* reduce_reshaped(Context& c, Instruction* i) {
  if (i->operand_count() != 2 || !combining_op(*i->to_apply())) return nullptr;
  const std::optional<Reshaped> before = before_reshape(*i, false);
  if (!before) return nullptr;
  Instruction* x = in_sizes_of(*i->parent(), i->operand(0), *before->array);
  return c.b.reduce({x}, {i->operand(1)}, i->to_apply(), before->dims);
}

/// A whole number that is known: a constant, or one that counts the rounds of the loop.
struct KnownNumber {
  Range range;
  Instruction* counter = nullptr;
};

/// `count` of them; nullopt if there are others, or they are not known.
std::optional<std::vector<KnownNumber>> known_numbers(const Context& c, Instruction* i, size_t count) {
  if (i->shape.element_count() != static_cast<int64_t>(count)) return std::nullopt;
  std::vector<KnownNumber> numbers;
  const Literal* splat = splat_value(i);
  if (const Literal* all = i->is(kConstant) ? i->literal.get() : splat) {
    for (size_t k = 0; k < count; ++k) {
      const int64_t n = all->as_int(all == splat ? 0 : static_cast<int64_t>(k));
      numbers.push_back({Range{n, n}});
    }
    return numbers;
  }
  if (!c.loop || count != 1) return std::nullopt;
  while (i->is(kReshape) || i->is(kBroadcast)) i = i->operand(0);
  const auto counted = range_in_rounds(*i, *c.loop);
  if (!counted) return std::nullopt;
  numbers.push_back({*counted, i});
  return numbers;
}

/// x.at[1:-1, 1:-1].set(u) or .add(u): a scatter of one window at a place that is known, inside of its operand, or at
/// one for each round of a loop.
Instruction* scatter_of_one_window(Context& c, Instruction* i) {
  const ScatterDims& s = i->attrs.scatter;
  if (i->operand_count() != 3 || !s.input_batching_dims.empty()) return nullptr;
  const Instruction* made = i->to_apply()->root();
  const bool replaces = made->is(kParameter) && made->attrs.parameter_number == 1;
  const std::optional<Opcode> combines = combining_op(*i->to_apply());
  if (!replaces && !combines) return nullptr;
  Instruction *target = i->operand(0), *indices = i->operand(1), *update = i->operand(2);
  if (target->shape.type != update->shape.type || update->shape.element_count() == 0) return nullptr;
  const auto places = known_numbers(c, indices, s.scatter_dims_to_operand_dims.size());
  if (!places) return nullptr;
  Ints box;
  std::vector<KnownNumber> start(target->shape.dims.size(), {Range{0, 0}});
  size_t next = 0;
  int64_t elements = 1;
  for (int64_t d = 0; d < target->shape.rank(); ++d) {
    box.push_back(contains(s.inserted_window_dims, d) ? 1 : update->shape.dims[s.update_window_dims[next++]]);
    elements *= box.back();
  }
  if (elements != update->shape.element_count()) return nullptr;
  for (size_t k = 0; k < places->size(); ++k) start[s.scatter_dims_to_operand_dims[k]] = (*places)[k];
  DType type = DType::kS64;
  for (size_t d = 0; d < start.size(); ++d) {
    if (start[d].range.lo < 0 || start[d].range.hi > target->shape.dims[d] - box[d]) return nullptr;
    if (start[d].counter) type = start[d].counter->shape.type;  // of several numbers each is a constant
  }
  Builder::Values starts;
  for (const KnownNumber& n : start)
    starts.push_back(n.counter ? n.counter : c.b.constant(type, static_cast<double>(n.range.lo)));
  update = c.b.reshape(update, box);
  if (combines) update = c.b.binary(*combines, c.b.dynamic_slice(target, starts, box), update);
  return c.b.dynamic_update_slice(target, update, std::move(starts));
}

/// The part of `target` between `start` and `start + box` is what a slice takes of it.
bool takes_box(const Instruction* slice, const Instruction* target, const Ints& start, const Ints& box) {
  if (slice->operand(0) != target || slice->shape.dims != box) return false;
  for (size_t d = 0; d < start.size(); ++d) {
    if (slice->attrs.slice[d].start != start[d] || slice->attrs.slice[d].stride != 1) return false;
  }
  return true;
}

/// `value` is computed from `target`, by arithmetic and moves, and not only from the element in the box that it
/// replaces.
bool reads_beside(const Instruction* value, const Instruction* target, const Ints& start, const Ints& box) {
  constexpr size_t kMaxSeen = 256;
  struct Wanted {
    const Instruction* value;
    bool own;  // at the element at hand
  };
  std::vector<Wanted> open = {{value, true}};
  InstructionSet here, elsewhere;
  for (size_t k = 0; k < open.size() && k < kMaxSeen; ++k) {
    const auto [i, own] = open[k];
    if (i == target) return true;
    bool moves = i->info().op_class == OpClass::kMoves && !has_trait(*i, op_trait::kRandomPlaces | op_trait::kUpdates);
    if (!moves && !is_elementwise(i->opcode)) continue;
    if (own && i->is(kSlice) && takes_box(i, target, start, box)) continue;
    for (size_t n = 0; n < i->operand_count(); ++n) {
      const bool stays = own && reads_own_element(*i, n);
      if ((stays ? here : elsewhere).insert(i->operand(n))) open.push_back({i->operand(n), stays});
    }
  }
  return false;
}

/// A step of a stencil, x.at[1:-1].set(f(x[2:], x[:-2])): in place, all of f would have to wait in a buffer for the
/// last read of x. So what stays is copied instead: select(inside, f, x), with x and the result in different memory.
Instruction* update_from_neighbours(Context& c, Instruction* i) {
  Instruction *target = i->operand(0), *update = i->operand(1);
  const Ints &whole = i->shape.dims, &box = update->shape.dims;
  if (2 * update->shape.element_count() < i->shape.element_count() || i->shape.has_dynamic_dims()) return nullptr;
  if (i->operand_count() != box.size() + 2) return nullptr;  // one vector of starts, before `expand`
  Ints start;
  std::vector<PadDim> around;
  for (size_t d = 0; d < box.size(); ++d) {
    const Instruction* at = i->operand(d + 2);
    if (!at->is(kConstant) || at->shape.rank() != 0) return nullptr;
    start.push_back(at->literal->as_int(0));
    if (start[d] < 0 || start[d] > whole[d] - box[d]) return nullptr;
    around.push_back({start[d], whole[d] - box[d] - start[d], 0});
  }
  if (!reads_beside(update, target, start, box)) return nullptr;
  Instruction* inside =
      c.b.pad(c.b.broadcast(c.b.constant(DType::kPred, 1), box), c.b.constant(DType::kPred, 0), around);
  return c.b.select(inside, c.b.pad(update, c.b.constant(i->shape.type, 0), around), target);
}

constexpr SimplifyRule kRules[] = {
    {kConstant, spread_constant},
    // What has the sizes of its operand is its operand.
    {kReshape, if_same_sizes},
    {kSlice,
     [](Context&, Instruction* i) -> Instruction* {
       return i->operand(0)->shape.dims == i->shape.dims ? i->operand(0) : nullptr;
     }},
    {kDynamicSlice, if_same_sizes},
    {kBroadcast,
     [](Context&, Instruction* i) -> Instruction* {
       bool same = i->operand(0)->shape.dims == i->shape.dims && is_identity(i->attrs.dimensions);
       return same ? i->operand(0) : nullptr;
     }},
    {kTranspose,
     [](Context&, Instruction* i) -> Instruction* {
       return is_identity(i->attrs.dimensions) ? i->operand(0) : nullptr;
     }},
    {kPad, no_pad},
    {kConcatenate, shorter_concatenation},
    {kReverse, shorter_reverse},
    {kReverse, double_reverse},
    // An update of everything is the update.
    {kDynamicUpdateSlice,
     [](Context&, Instruction* i) -> Instruction* {
       return i->operand(1)->shape.dims == i->shape.dims ? i->operand(1) : nullptr;
     }},
    // Two moves in one.
    {kReshape, merge_reshapes},
    {kReshape, reshape_broadcast},
    {kTranspose, merge_transposes},
    {kTranspose, transpose_of_ones},
    {kTranspose, transpose_broadcast},
    {kTranspose, transpose_dot},
    {kDot, product_of_transposed},
    {kBroadcast, merge_broadcasts},
    {kSlice, merge_slices},
    {kSlice, slice_broadcast},
    {kSlice, slice_concatenation},
    {kSlice, slice_pad},
    {kDynamicSlice, fixed_slice},
    {kReduce, reduce_reshaped},
    {kReduceWindow, window_over_gaps},
    {kScatter, scatter_of_one_window},
    {kDynamicUpdateSlice, update_from_neighbours},
};

}  // namespace

std::span<const SimplifyRule> movement_rules() {
  static const std::vector<SimplifyRule> rules = [] {
    std::vector<SimplifyRule> all(std::begin(kRules), std::end(kRules));
    for (int k = 0; k < op_count(); ++k) {
      if (const auto opcode = static_cast<Opcode>(k); is_elementwise(opcode)) all.push_back({opcode, reshape_later});
    }
    return all;
  }();
  return rules;
}

}  // namespace hlojit

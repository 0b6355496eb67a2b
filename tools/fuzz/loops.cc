// Loops of a known number of rounds over arrays large enough for a second buffer: every element from neighbours in the
// state, its own old array among them, which is then read at places that are written. And over arrays of a few bytes,
// which stand in registers: each from parts of itself and of others, with branches and loops of their own within.
// And rounds that take parts of an array: to multiply them, or to put them back, updated.
#include <algorithm>
#include <array>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;
using Values = Builder::Values;

// As the neighbour at some distance along d, round the edge or with nothing beyond it.
Instruction* neighbour(Draft& s, Instruction* x, int64_t d) {
  const auto at = static_cast<size_t>(d);
  const int64_t n = x->shape.dims[at], by = s.random.between(1, std::min<int64_t>(n, 3));
  const bool up = s.random.chance(0.5);
  if (s.random.chance(0.4)) {
    const int64_t split = up ? by : n - by;
    return s.b.concat_in_dim({s.b.slice_in_dim(x, split, n, 1, d), s.b.slice_in_dim(x, 0, split, 1, d)}, d);
  }
  Instruction* rest = s.b.slice_in_dim(x, up ? by : 0, up ? n : n - by, 1, d);
  std::vector<PadDim> padding(x->shape.dims.size());
  (up ? padding[at].high : padding[at].low) = by;
  return s.b.pad(rest, s.b.constant(x->shape.type, 1), padding);
}

// A row of one array, by the round's number, in all rows or in another place of the same array.
Instruction* row_of_round(Draft& s, Instruction* x, Instruction* round) {
  const int64_t d = s.random.below(x->shape.rank());
  Ints sizes = x->shape.dims;
  sizes[static_cast<size_t>(d)] = 1;
  Builder::Values from(sizes.size(), s.b.constant(DType::kS32, 0)), to = from;
  from[static_cast<size_t>(d)] = round;
  to[static_cast<size_t>(d)] = s.b.op(kAdd, {round, s.b.constant(DType::kS32, static_cast<double>(s.random.below(3)))});
  Instruction* row = s.b.dynamic_slice(x, from, sizes);
  if (s.random.chance(0.5)) return s.b.dynamic_update_slice(x, row, to);
  Ints others, kept;
  for (int64_t k = 0; k < x->shape.rank(); ++k) {
    if (k == d) continue;
    others.push_back(k);
    kept.push_back(x->shape.dims[static_cast<size_t>(k)]);
  }
  return s.b.broadcast_in_dim(s.b.reshape(row, kept), x->shape.dims, others);
}

// Not the counter.
Instruction* array_of(Draft& s, const std::vector<Instruction*>& state) {
  return state[static_cast<size_t>(s.random.between(1, std::ssize(state) - 1))];
}

Instruction* term(Draft& s, const std::vector<Instruction*>& state) {
  Instruction* x = array_of(s, state);
  const int64_t d = s.random.below(x->shape.rank());
  switch (s.random.below(6)) {
    case 0: return x;
    case 1: return s.b.rev(x, {d});
    case 2: return row_of_round(s, x, state[0]);
    default: return neighbour(s, x, d);
  }
}

// A sum of terms that stays exact: of whole numbers within bounds.
Instruction* next_array(Draft& s, const std::vector<Instruction*>& state) {
  Instruction* sum = term(s, state);
  for (int64_t n = s.random.between(0, 3); n > 0; --n) {
    sum = s.b.op(s.random.chance(0.6) ? kAdd : kSubtract, {sum, term(s, state)});
  }
  return is_float(sum->shape.type) ? s.limited(sum, 32) : sum;
}

Ints large(Draft& s, DType t) {
  Ints sizes = s.random.pick(std::vector<Ints>{{4500}, {67, 68}, {64, 80}, {3, 40, 41}, {17, 18, 16}});
  sizes[0] *= std::max<int64_t>(1, 32 / dtype_bits(t));
  return sizes;
}

Instruction* number(Builder& b, int64_t n) { return b.constant(DType::kS32, static_cast<double>(n)); }

// `init`: a counter, then arrays; `round` adds what becomes of these to what comes of the counter, while it is below
// `bound`.
template <class Round>
Instruction* loop_over(Draft& s, const Values& init, int64_t bound, const Round& round) {
  Instruction* start = s.b.tuple(init);
  Builder c(s.draw.module, "condition");
  Instruction* count = c.get_tuple_element(c.parameter(start->shape), 0);
  c.build(c.compare(Direction::kLt, count, number(c, bound)));
  ++s.draw.depth;
  Draft inner(s.draw, "round");
  std::vector<Instruction*> state, next;
  Instruction* p = inner.b.parameter(start->shape);
  for (size_t k = 0; k < init.size(); ++k) state.push_back(inner.b.get_tuple_element(p, static_cast<int64_t>(k)));
  next.push_back(inner.b.op(kAdd, {state[0], number(inner.b, s.random.chance(0.8) ? 1 : 2)}));
  round(inner, state, next);
  inner.b.build(inner.b.tuple(next));
  --s.draw.depth;
  return s.b.while_loop(c.computation(), inner.b.computation(), start);
}

Instruction* counted_loop(Draft& s) {
  using enum DType;
  if (s.draw.depth > 0) return nullptr;
  const DType t = s.random.pick(std::vector{kF32, kF32, kF64, kBF16, kS32, kS8, kU8});
  const Ints sizes = s.random.chance(0.85) ? large(s, t) : Ints{s.random.between(1, 9), s.random.between(1, 9)};
  Values init = {number(s.b, s.random.between(0, 1))};
  for (int64_t n = s.random.between(1, 3); n > 0; --n) {
    Instruction* x = s.of(t, sizes);
    init.push_back(is_float(t) ? s.small(x, 8) : x);
  }
  return loop_over(s, init, s.random.between(0, 6), [](Draft& inner, const Values& state, Values& next) {
    for (size_t k = 1; k < state.size(); ++k) {
      next.push_back(inner.random.chance(0.75) ? next_array(inner, state) : array_of(inner, state));
    }
  });
}

// Another array of the state brought to this type and these sizes: an element or the sum of it all, or its first ones.
Instruction* fitted(Draft& s, Instruction* x, const Shape& to) {
  if (x->shape.type != to.type) x = s.b.convert(x, to.type);
  if (is_float(to.type)) x = s.limited(x, 8);
  const int64_t n = x->shape.element_count(), wanted = to.element_count();
  Instruction* line = s.b.reshape(x, {n});
  if (n > wanted) line = s.b.slice_in_dim(line, n - wanted, n, 1, 0);
  if (n >= wanted) return s.b.reshape(line, to.dims);
  const int64_t at = s.random.below(n);
  Instruction* one = s.random.chance(0.5) ? reduce_by(s, kAdd, line, {0})
                                          : s.b.reshape(s.b.slice_in_dim(line, at, at + 1, 1, 0), Ints{});
  return s.b.broadcast(one, to.dims);
}

// Each element on its own, of two others.
Instruction* by_parts(Draft& s, Instruction* x) {
  const int64_t n = x->shape.element_count();
  Instruction* line = s.b.reshape(x, {n});
  Values parts;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = s.random.below(n), j = s.random.below(n);
    Instruction* one = s.b.slice_in_dim(line, i, i + 1, 1, 0);
    Instruction* other = s.b.slice_in_dim(line, j, j + 1, 1, 0);
    parts.push_back(s.random.chance(0.3) ? one : s.b.op(s.random.chance(0.5) ? kSubtract : kMultiply, {one, other}));
  }
  return s.b.reshape(s.b.concat_in_dim(parts, 0), x->shape.dims);
}

// What becomes of `x` in a round; whole numbers, if floats, of which sums and products are exact.
Instruction* next_short(Draft& s, const Values& state, Instruction* x) {
  Values alike = {state[0]};
  for (size_t k = 1; k < state.size(); ++k) {
    if (state[k]->shape == x->shape) alike.push_back(state[k]);
  }
  const bool square = x->shape.rank() == 2 && x->shape.dims[0] == x->shape.dims[1];
  Instruction* made = nullptr;
  switch (s.random.below(6)) {
    case 0: return array_of(s, alike);
    case 1: made = by_parts(s, x); break;
    case 2: made = s.b.op(kAdd, {x, fitted(s, array_of(s, state), x->shape)}); break;
    case 3: made = square ? s.b.dot(x, array_of(s, alike)) : term(s, alike); break;
    case 4: made = square ? s.b.transpose(x, {1, 0}) : s.b.op(kMultiply, {x, term(s, alike)}); break;
    default: made = next_array(s, alike); break;
  }
  return is_float(x->shape.type) ? s.limited(made, 8) : made;
}

// One or the other of two ways on, by the round's number.
Instruction* either_way(Draft& s, Instruction* round, const Values& state) {
  std::vector<Computation*> ways;
  Instruction* all = s.b.tuple(state);
  for (int k = 0; k < 2; ++k) {
    Draft branch(s.draw, "branch");
    Instruction* p = branch.b.parameter(all->shape);
    Values now, next;
    for (size_t j = 0; j < state.size(); ++j) now.push_back(branch.b.get_tuple_element(p, static_cast<int64_t>(j)));
    next.push_back(now[0]);
    for (size_t j = 1; j < now.size(); ++j) next.push_back(next_short(branch, now, now[j]));
    ways.push_back(branch.b.build(branch.b.tuple(next)));
  }
  return s.b.conditional(s.b.binary(kAnd, round, number(s.b, 1)), ways, {all, all});
}

void short_round(Draft& s, const Values& state, Values& next) {
  for (size_t k = 1; k < state.size(); ++k) next.push_back(next_short(s, state, state[k]));
  Instruction* made = nullptr;
  if (s.draw.depth < 3 && s.random.chance(0.2)) {
    Values init = next;
    init[0] = number(s.b, s.random.between(0, 3));
    made = loop_over(s, init, s.random.between(0, 6), short_round);
  } else if (s.random.chance(0.2)) {
    made = either_way(s, state[0], next);
  }
  if (!made) return;
  for (size_t k = 1; k < next.size(); ++k) next[k] = s.b.get_tuple_element(made, static_cast<int64_t>(k));
}

Instruction* short_loop(Draft& s) {
  using enum DType;
  if (s.draw.depth > 0) return nullptr;
  const std::vector<Ints> shapes = {{1}, {2}, {3}, {4}, {5}, {8}, {2, 2}, {2, 3}, {3, 1}, {2, 1, 2}, {3, 3}};
  Values init = {number(s.b, s.random.between(0, 1))};
  for (int64_t n = s.random.between(1, 4); n > 0; --n) {
    const DType t = s.random.pick(std::vector{kF32, kF32, kF64, kF64, kBF16, kS32, kS64, kS8, kU8});
    Instruction* x = s.of(t, s.random.pick(shapes));
    init.push_back(is_float(t) ? s.small(x, 8) : x);
    if (s.random.chance(0.4)) init.push_back(is_float(t) ? s.small(s.of(x->shape), 8) : s.of(x->shape));
  }
  return loop_over(s, init, s.random.between(0, 6), short_round);
}

// What rounds put side by side, in parts of one to three rows or columns: all of it, or all but some; one after the
// other, backwards, in steps. Sometimes a round looks at what another one leaves.
Instruction* put_side_by_side(Draft& s, Instruction* all, Instruction* x, Instruction* round, int64_t d, int64_t each) {
  const auto at = static_cast<size_t>(d);
  const int64_t n = all->shape.dims[at], step = s.random.chance(0.7) ? each : s.random.between(0, 3);
  Values to(all->shape.dims.size(), number(s.b, 0));
  Instruction* first = s.b.op(kMultiply, {round, number(s.b, step)});
  if (s.random.chance(0.3)) first = s.b.op(kSubtract, {number(s.b, n - each), first});
  for (int64_t done = 0; done < each;) {
    Ints part = all->shape.dims;
    part[at] = s.random.between(1, each - done);
    const int64_t place = s.random.chance(0.8) ? done : s.random.below(each);
    to[at] = place == 0 ? first : s.b.op(kAdd, {first, number(s.b, place)});
    all = s.b.dynamic_update_slice(all, s.b.broadcast_in_dim(x, part, {1 - d}), to);
    done += part[at];
  }
  return all;
}

Instruction* rows_of_rounds(Draft& s) {
  using enum DType;
  if (s.draw.depth > 0) return nullptr;
  const DType t = s.random.pick(std::vector{kF32, kF32, kF64, kBF16, kS32, kU8});
  const int64_t width = s.random.pick(Ints{1, 3, 8, 65}), each = s.random.between(1, 3), d = s.random.below(2);
  const int64_t parts = s.random.between(1, 6), bound = s.random.chance(0.6) ? parts : s.random.between(0, 6);
  Ints sizes(2, width);
  sizes[static_cast<size_t>(d)] = each * parts;
  Instruction* x = s.of(t, {width});
  Values init = {number(s.b, 0), is_float(t) ? s.small(x, 8) : x};
  for (int64_t n = s.random.between(1, 2); n > 0; --n)
    init.push_back(s.b.broadcast(s.b.constant(t, static_cast<double>(s.random.below(3))), sizes));
  return loop_over(s, init, bound, [&](Draft& inner, const Values& state, Values& next) {
    Instruction* now = inner.b.op(kAdd, {state[1], inner.b.broadcast(inner.b.constant(t, 1), {width})});
    if (inner.random.chance(0.15))
      now = inner.b.op(kAdd, {now, inner.b.reshape(inner.b.slice_in_dim(state[2], 0, 1, 1, d), {width})});
    next.push_back(is_float(t) ? inner.limited(now, 32) : now);
    for (size_t k = 2; k < state.size(); ++k)
      next.push_back(put_side_by_side(inner, state[k], next[1], state[0], d, each));
  });
}

// A product of what a round takes of an array: `order` are the array's dims, of which it takes some places of kTaken;
// what they are multiplied by has a depth, columns and maybe a batch.
struct RoundProduct {
  enum Dim : int64_t { kTaken, kRows, kDepth, kBatch };
  Ints order;
  int64_t each, rows, depth, columns;
  int64_t joined;  ///< the dim along which something is put beside the part, or -1
  bool drops, left, backwards;

  int64_t place(int64_t dim) const { return std::ranges::find(order, dim) - order.begin(); }
  bool has_batch() const { return std::ssize(order) > kBatch; }
  /// Of the part, without what is gone.
  int64_t place_in_part(int64_t dim) const { return place(dim) - (drops && place(kTaken) < place(dim) ? 1 : 0); }
  Ints sizes(int64_t taken) const {
    Ints all;
    for (int64_t d : order) all.push_back(std::array{taken, rows, depth, int64_t{2}}[static_cast<size_t>(d)]);
    return all;
  }
  Ints others() const {
    const int64_t all = joined == kDepth ? 2 * depth : depth;
    return has_batch() ? Ints{all, columns, 2} : Ints{all, columns};
  }

  Instruction* part(Draft& s, Instruction* xs, Instruction* round) const {
    const auto at = static_cast<size_t>(place(kTaken));
    Instruction* first = s.b.op(kMultiply, {round, number(s.b, each)});
    if (backwards) first = s.b.op(kSubtract, {number(s.b, xs->shape.dims[at] - each), first});
    Values from(order.size(), number(s.b, 0));
    from[at] = first;
    Instruction* taken = s.b.dynamic_slice(xs, from, sizes(each));
    if (drops) {
      Ints rest = taken->shape.dims;
      rest.erase(rest.begin() + place(kTaken));
      taken = s.b.reshape(taken, rest);
    }
    if (joined < 0) return taken;
    Values parts = {taken, s.b.unary(kNegate, taken)};
    if (s.random.chance(0.5)) std::swap(parts[0], parts[1]);
    return s.b.concat_in_dim(parts, place_in_part(joined));
  }
  Instruction* product(Draft& s, Instruction* part, Instruction* w) const {
    DotDims dims;
    dims.lhs_contracting = {place_in_part(kDepth)};
    dims.rhs_contracting = {0};
    if (has_batch()) {
      dims.lhs_batch = {place_in_part(kBatch)};
      dims.rhs_batch = {2};
    }
    if (left) return s.b.dot_general(part, w, dims);
    std::swap(dims.lhs_contracting, dims.rhs_contracting);
    std::swap(dims.lhs_batch, dims.rhs_batch);
    return s.b.dot_general(w, part, dims);
  }
};

// Parts of an array by what no round changes, or hardly any: those of all rounds are the array, or most of it. Rounds
// put the products side by side.
Instruction* products_of_rounds(Draft& s) {
  using enum DType;
  if (s.draw.depth > 0) return nullptr;
  const DType t = s.random.pick(std::vector{kF32, kF32, kF64, kS32});
  const int64_t parts = s.random.between(2, 5);
  RoundProduct p;
  p.order = s.permutation(s.random.chance(0.25) ? 4 : 3);
  p.each = s.random.chance(0.7) ? 1 : s.random.between(2, 3);
  p.rows = s.random.between(1, 4);
  p.depth = s.random.pick(Ints{64, 80});
  p.columns = s.random.pick(Ints{64, 67});
  p.drops = p.each == 1 && s.random.chance(0.7);
  p.left = s.random.chance(0.5);
  p.backwards = s.random.chance(0.3);
  p.joined = s.random.chance(0.3) ? s.random.between(RoundProduct::kRows, RoundProduct::kDepth) : -1;
  auto factor_of = [&](const Ints& sizes) { return is_float(t) ? s.small(s.of(t, sizes), 4) : s.of(t, sizes); };
  Instruction *xs = factor_of(p.sizes(p.each * parts + s.random.below(2))), *w = factor_of(p.others());
  const int64_t rows = p.rows * (p.joined == RoundProduct::kRows ? 2 : 1);
  const int64_t products = p.each * rows * p.columns * (p.has_batch() ? 2 : 1);
  const Values init = {number(s.b, 0), xs, w, s.b.broadcast(s.b.constant(t, 0), {parts, products})};
  const bool changes = s.random.chance(0.1);
  Instruction* loop =
      loop_over(s, init, s.random.chance(0.8) ? parts : 2, [&](Draft& inner, const Values& state, Values& next) {
        Instruction* y = p.product(inner, p.part(inner, state[1], state[0]), state[2]);
        next.push_back(state[1]);
        next.push_back(changes ? inner.b.unary(kNegate, state[2]) : state[2]);
        Instruction* row = inner.b.reshape(y, {1, products});
        next.push_back(inner.b.dynamic_update_slice(state[3], row, {state[0], number(inner.b, 0)}));
      });
  return s.b.get_tuple_element(loop, 3);
}

// Parts that are taken of an array, updated and put back, into it or side by side into another one, and of which
// something is read: the layers of a decoder's cache. `order`: which dims an array's layers, rows and columns are.
struct PutBack {
  enum Dim : int64_t { kLayers, kRows, kColumns };
  DType type;
  Ints order, sizes;
  bool drops, scans, elsewhere, read_later, backwards;

  int64_t place(Dim dim) const { return std::ranges::find(order, dim) - order.begin(); }
  int64_t size(Dim dim) const { return sizes[static_cast<size_t>(place(dim))]; }
  /// Of the part.
  int64_t place_in_part(Dim dim) const { return place(dim) - (drops && place(kLayers) < place(dim) ? 1 : 0); }

  Values starts(Draft& s, Instruction* layer) const {
    Values all(sizes.size(), number(s.b, 0));
    all[static_cast<size_t>(place(kLayers))] = layer;
    return all;
  }

  /// A row of `x`, or two in a scatter, at a place that may be behind the end; or each element changes.
  Instruction* updated(Draft& s, Instruction* part, Instruction* at, Instruction* x) const {
    const Ints& all = part->shape.dims;
    if (s.random.chance(0.15)) return s.b.op(kAdd, {part, s.b.broadcast(s.b.constant(type, 1), all)});
    const auto rows = static_cast<size_t>(place_in_part(kRows));
    Ints some = all;
    some[rows] = s.random.chance(0.2) ? 2 : 1;
    if (drops && s.random.chance(0.4)) {
      some[rows] = 2;
      Attributes a;
      ScatterDims& g = a.scatter.edit();
      g.update_window_dims = {1};
      g.inserted_window_dims = g.scatter_dims_to_operand_dims = {place_in_part(kRows)};
      g.index_vector_dim = s.random.below(2);
      const Ints two = g.index_vector_dim == 1 ? Ints{2, 1} : Ints{1, 2};
      Instruction* places =
          s.b.op(kAdd, {s.b.broadcast(at, two), s.b.iota(Shape::array(DType::kS32, two), 1 - g.index_vector_dim)});
      Instruction* values = s.b.broadcast_in_dim(x, {2, size(kColumns)}, {1});
      return s.b.op(kScatter, {part, places, values}, std::move(a), {combiner(s, kAdd, type)});
    }
    Values from(all.size(), number(s.b, 0));
    from[rows] = at;
    return s.b.dynamic_update_slice(part, s.b.broadcast_in_dim(x, some, {place_in_part(kColumns)}), from);
  }

  /// state: the layer, where to update, what with, the array, and the one that is made of it if there are two.
  void round(Draft& s, const Values& state, Values& next) const {
    const int64_t layers = size(kLayers);
    Instruction* layer = backwards ? s.b.op(kSubtract, {number(s.b, layers - 1), state[0]}) : state[0];
    Ints one = sizes;
    one[static_cast<size_t>(place(kLayers))] = 1;
    Instruction* part = s.b.dynamic_slice(state[3], starts(s, layer), one);
    if (drops) {
      one.erase(one.begin() + place(kLayers));
      part = s.b.reshape(part, one);
    }
    for (int64_t n = s.random.between(1, 2); n > 0; --n) part = updated(s, part, state[1], state[2]);
    Instruction* sum = reduce_by(s, kAdd, part, {place_in_part(kRows)});
    if (!drops) sum = s.b.reshape(sum, {size(kColumns)});
    Ints back = sizes;
    back[static_cast<size_t>(place(kLayers))] = 1;
    Instruction* to = elsewhere ? s.b.op(kAdd, {layer, number(s.b, 1)}) : layer;
    Instruction* made = s.b.dynamic_update_slice(state.back(), s.b.reshape(part, back), starts(s, to));
    if (s.random.chance(0.1)) made->control_predecessors.push_back(sum);
    if (read_later) {
      Instruction* first = s.b.slice_in_dim(state[3], 0, 1, 1, place(kLayers));
      sum = s.b.op(kAdd, {sum, s.b.reshape(reduce_by(s, kMaximum, first, {place(kRows)}), {size(kColumns)})});
    }
    next.push_back(s.random.chance(0.5) ? state[1] : s.b.op(kAdd, {state[1], number(s.b, 1)}));
    next.push_back(is_float(type) ? s.limited(sum, 32) : sum);
    if (scans) next.push_back(state[3]);
    next.push_back(made);
  }

  Instruction* loop(Draft& s, Instruction* at, Instruction* x, Instruction* array) const {
    Values init = {number(s.b, 0), at, x, array};
    if (scans) init.push_back(s.b.broadcast(s.b.constant(type, 0), sizes));
    const int64_t rounds = s.random.chance(0.85) ? size(kLayers) : size(kLayers) - 1;
    return loop_over(s, init, rounds,
                     [&](Draft& inner, const Values& state, Values& next) { round(inner, state, next); });
  }
};

Instruction* parts_put_back(Draft& s) {
  using enum DType;
  if (s.draw.depth > 0) return nullptr;
  PutBack p;
  p.type = s.random.pick(std::vector{kF32, kF32, kF64, kBF16, kS32, kS8});
  p.order = s.permutation(3);
  const int64_t layers = s.random.between(2, 4), rows = s.random.between(2, 5), columns = s.random.between(2, 20);
  for (int64_t d : p.order) p.sizes.push_back(std::array{layers, rows, columns}[static_cast<size_t>(d)]);
  p.drops = s.random.chance(0.8);
  p.scans = s.random.chance(0.6);
  p.elsewhere = s.random.chance(0.25);
  p.read_later = s.random.chance(0.1);
  p.backwards = s.random.chance(0.25);
  auto summable = [&](Instruction* v) { return is_float(p.type) ? s.small(v, 4) : v; };
  Instruction *array = summable(s.of(p.type, p.sizes)), *x = summable(s.of(p.type, {columns}));
  Instruction* at = s.index(kS32, rows);
  const int64_t last = p.scans ? 4 : 3;
  if (s.random.chance(0.5)) {
    Instruction* loop = p.loop(s, at, x, array);
    s.keep(s.b.get_tuple_element(loop, 2));
    if (p.scans && s.random.chance(0.3)) s.keep(s.b.get_tuple_element(loop, 3));
    return s.b.get_tuple_element(loop, last);
  }
  // Again and again: what comes out of one goes into the next.
  Instruction* outer =
      loop_over(s, {number(s.b, 0), x, array}, 2, [&](Draft& inner, const Values& state, Values& next) {
        Instruction* loop = p.loop(inner, state[0], state[1], state[2]);
        next.push_back(inner.b.get_tuple_element(loop, 2));
        next.push_back(inner.b.get_tuple_element(loop, last));
      });
  s.keep(s.b.get_tuple_element(outer, 1));
  return s.b.get_tuple_element(outer, 2);
}

// True where the numbers of a row, some places on, and of a column compare so, or where they do not.
Instruction* mask_of_places(Draft& s, int64_t n) {
  Instruction* rows = s.b.iota(Shape::array(DType::kS32, {n, n}), 0);
  Instruction* columns = s.b.iota(Shape::array(DType::kS32, {n, n}), 1);
  if (s.random.chance(0.5)) rows = s.b.op(kAdd, {rows, s.splat(DType::kS32, s.random.between(-2, 2), {n, n})});
  const Direction way = s.random.pick(std::vector{Direction::kGe, Direction::kLt, Direction::kEq, Direction::kNe});
  Instruction* mask = s.b.compare(way, rows, columns);
  return s.random.chance(0.25) ? s.b.unary(kNot, mask) : mask;
}

// What becomes of an array: another one, the sum of two, by a mask the one or the other, or a product with matrices put
// together. state: the counter, the mask, two matrices, then the arrays.
Instruction* next_masked(Draft& s, const Values& state) {
  auto array = [&] { return state[static_cast<size_t>(s.random.between(4, std::ssize(state) - 1))]; };
  Instruction *x = array(), *y = array(), *mask = state[1];
  switch (s.random.below(5)) {
    case 0: return x;
    case 1: return s.b.op(kAdd, {x, y});
    case 2: return s.b.dot(x, s.b.concat_in_dim({state[2], state[3]}, 1));
    default:
      if (s.random.chance(0.5)) mask = s.b.transpose(mask, {1, 0});
      return s.b.select(mask, x, y);
  }
}

// Rounds that hand on what they got, masks of places and matrices among it, and elements of a state that only they
// themselves are made of: few are results.
Instruction* states_in_part(Draft& s) {
  using enum DType;
  if (s.draw.depth > 0) return nullptr;
  const DType t = s.random.pick(std::vector{kF32, kF32, kF64, kS32});
  const int64_t n = s.random.between(2, 20), left = s.random.between(1, n - 1);
  auto of = [&](const Ints& sizes) { return is_float(t) ? s.small(s.of(t, sizes), 3) : s.of(t, sizes); };
  Values init = {number(s.b, 0), mask_of_places(s, n), of({n, left}), of({n, n - left})};
  for (int64_t k = s.random.between(2, 4); k > 0; --k) init.push_back(of({n, n}));
  const bool within = s.random.chance(0.3);
  auto round = [&](Draft& inner, const Values& state, Values& next) {
    for (size_t k = 1; k < 4; ++k) next.push_back(state[k]);
    if (inner.random.chance(0.1)) next[1] = inner.b.unary(kNot, state[1]);
    for (size_t k = 4; k < state.size(); ++k) {
      Instruction* made = next_masked(inner, state);
      next.push_back(is_float(t) ? inner.limited(made, 16) : made);
    }
  };
  Instruction* loop = loop_over(s, init, s.random.between(1, 20), [&](Draft& inner, const Values& state, Values& next) {
    round(inner, state, next);
    if (!within) return;
    Values taken = {number(inner.b, 0)};
    taken.insert(taken.end(), next.begin() + 1, next.end());
    Instruction* more = loop_over(inner, taken, 2, round);
    next.back() = inner.b.get_tuple_element(more, std::ssize(taken) - 1);
  });
  const int64_t last = std::ssize(init) - 1;
  if (s.random.chance(0.3)) s.keep(s.b.get_tuple_element(loop, s.random.between(1, last)));
  return s.b.get_tuple_element(loop, last);
}

}  // namespace

Family counted_loop_family() { return {"counted loops", {{counted_loop, 20}}, 0.04}; }
Family products_of_rounds_family() { return {"products of rounds", {{products_of_rounds, 20}}, 0.04}; }
Family put_back_family() { return {"parts put back", {{parts_put_back, 20}}, 0.04}; }
Family states_in_part_family() { return {"states in part", {{states_in_part, 20}}, 0.04}; }
Family rows_of_rounds_family() { return {"rows of rounds", {{rows_of_rounds, 20}}, 0.04}; }
Family short_loop_family() { return {"loops over a few bytes", {{short_loop, 20}}, 0.04}; }

}  // namespace hlojit::tools::fuzz

// Ops that move elements: by fixed maps here, by indices in indexing.cc.
#include <algorithm>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* broadcast(Draft& s) {
  Instruction* x = s.any();
  Ints sizes = x->shape.dims, dims;
  for (int64_t d = 0; d < x->shape.rank(); ++d) dims.push_back(d);
  for (int64_t n = s.random.between(1, 2); n > 0; --n) {
    int64_t at = s.random.between(0, std::ssize(sizes));
    sizes.insert(sizes.begin() + at, s.random.pick(s.draw.sizes));
    for (int64_t& d : dims) d += d >= at;
  }
  if (std::ssize(sizes) > 5 || !s.fits(sizes)) return nullptr;
  Attributes a;
  if (s.random.chance(0.2)) {  // transposing broadcast: sizes must follow
    Ints order = s.permutation(std::ssize(dims));
    Ints moved = sizes, shuffled = dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      shuffled[i] = dims[static_cast<size_t>(order[i])];
      moved[static_cast<size_t>(shuffled[i])] = x->shape.dims[i];
    }
    a.dimensions = shuffled;
    a.has_dimensions = true;
    return s.b.op(kBroadcast, Shape::array(x->shape.type, moved), {x}, std::move(a));
  }
  a.dimensions = dims;
  a.has_dimensions = true;
  return s.b.op(kBroadcast, Shape::array(x->shape.type, sizes), {x}, std::move(a));
}

// Sizes of so many elements, none for one now and then: random factors, often a whole size that others use.
Ints in_factors(Draft& s, int64_t n) {
  Ints sizes;
  while (n > 1 && std::ssize(sizes) < 4) {
    Ints divisors;
    for (int64_t size : s.draw.sizes) {
      if (size > 1 && n % size == 0) divisors.push_back(size);
    }
    for (int64_t f : {2, 3, 4, 5, 7}) {
      if (n % f == 0) divisors.push_back(f);
    }
    if (divisors.empty() || s.random.chance(0.3)) break;
    sizes.push_back(s.random.pick(divisors));
    n /= sizes.back();
  }
  if (n > 1 || s.random.chance(0.2)) sizes.push_back(n);
  if (s.random.chance(0.3)) s.random.shuffle(sizes);
  return sizes;
}

Instruction* reshape(Draft& s) {
  Instruction* x = s.any();
  const int64_t n = x->shape.element_count();
  return s.b.reshape(x, n == 0 ? Ints{0, s.random.between(0, 3)} : in_factors(s, n));
}

Instruction* transpose(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 2; });
  return x ? s.b.transpose(x, s.permutation(x->shape.rank())) : nullptr;
}

Instruction* reverse(Draft& s) {
  Instruction* x = s.any();
  return s.b.rev(x, s.some(x->shape.rank()));
}

Instruction* concatenate(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1; });
  if (!x) return nullptr;
  int64_t d = s.random.below(x->shape.rank());
  std::vector<Instruction*> pieces = {x};
  for (int64_t n = s.random.between(0, 3); n > 0; --n) {
    Instruction* other = s.any([&](const Shape& v) {
      if (v.type != x->shape.type || v.rank() != x->shape.rank()) return false;
      for (int64_t k = 0; k < v.rank(); ++k) {
        if (k != d && v.dims[static_cast<size_t>(k)] != x->shape.dims[static_cast<size_t>(k)]) return false;
      }
      return true;
    });
    Ints sizes = x->shape.dims;
    sizes[static_cast<size_t>(d)] = s.random.pick(s.draw.sizes);
    pieces.push_back(s.random.chance(0.6) || !s.fits(sizes) ? other : s.of(x->shape.type, sizes));
  }
  Ints sizes = x->shape.dims;
  sizes[static_cast<size_t>(d)] = 0;
  for (Instruction* p : pieces) sizes[static_cast<size_t>(d)] += p->shape.dims[static_cast<size_t>(d)];
  if (!s.fits(sizes)) return nullptr;
  s.random.shuffle(pieces);
  return s.b.concat_in_dim(pieces, d);
}

Instruction* slice(Draft& s) {
  Instruction* x = s.any();
  Ints starts, limits, strides;
  for (int64_t size : x->shape.dims) {
    bool whole = s.random.chance(0.4);
    int64_t start = whole ? 0 : s.random.between(0, size);
    starts.push_back(start);
    limits.push_back(whole ? size : s.random.chance(0.1) ? start : s.random.between(std::min(start + 1, size), size));
    strides.push_back(s.random.chance(0.7) ? 1 : s.random.between(1, 4));
  }
  return s.b.slice(x, starts, limits, strides);
}

Instruction* pad(Draft& s) {
  Instruction* x = s.any();
  std::vector<PadDim> padding;
  Ints sizes;
  for (int64_t size : x->shape.dims) {
    PadDim p;
    if (s.random.chance(0.6)) {
      p = {s.random.between(-2, 5), s.random.between(-2, 5), s.random.chance(0.7) ? 0 : s.random.between(1, 3)};
      if (s.random.chance(0.1)) p.low = s.random.pick(s.draw.sizes);
    }
    int64_t now = size + std::max<int64_t>(size - 1, 0) * p.interior + p.low + p.high;
    if (now < 0) p = {}, now = size;
    padding.push_back(p);
    sizes.push_back(now);
  }
  if (!s.fits(sizes)) return nullptr;
  return s.b.pad(x, s.of(x->shape.type, {}), padding);
}

Instruction* copy(Draft& s) { return s.b.unary(kCopy, s.any()); }

Instruction* iota(Draft& s) {
  DType t = s.type();
  if (is_pred(t)) return nullptr;
  Ints sizes = s.shape(1);
  return s.b.iota(Shape::array(t, sizes), s.random.below(std::ssize(sizes)));
}

// The bytes of an array as those of another shape: any, if there is no padding between them; else of dimensions
// in another order and with further ones of size 1, whose layout keeps every element where it is.
Instruction* bitcast(Draft& s) {
  Instruction* x = s.any();
  if (dtype_bits(x->shape.type) < 8 || x->shape.element_count() == 0) return nullptr;
  Instruction* from = s.b.unary(kCopy, x);
  Shape shape = Shape::array(x->shape.type, x->shape.dims);
  shape.layout = draw_layout(shape, s.random, 0.4);
  shape.layout.element_size_in_bits = 0;
  from->shape = shape;
  if (shape.layout.tiles.empty() && s.random.chance(0.6)) {
    Ints sizes;
    for (int64_t n = shape.element_count(), f = 0; n > 1; n /= f) {
      f = n;
      for (int64_t prime : {7, 5, 3, 2}) f = n % prime == 0 && s.random.chance(0.6) ? prime : f;
      sizes.push_back(f);
      if (std::ssize(sizes) == 5 && n > f) sizes.back() *= n / f, f = n;
    }
    shape = Shape::array(shape.type, sizes);
    shape.layout = draw_layout(shape, s.random, 0);
    shape.layout.element_size_in_bits = 0;
  } else {
    Ints order = s.permutation(shape.rank()), place(order.size());
    for (size_t d = 0; d < order.size(); ++d) {
      place[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
      shape.dims[d] = from->shape.dims[static_cast<size_t>(order[d])];
    }
    for (int64_t& d : shape.layout.minor_to_major) d = place[static_cast<size_t>(d)];
    if (s.random.chance(0.3) && shape.rank() < 6) {
      shape.layout.minor_to_major.push_back(shape.rank());
      shape.dims.push_back(1);
    }
  }
  std::vector<DType> wide;
  for (DType t : s.draw.types) {
    if (dtype_bits(t) == dtype_bits(shape.type) && is_complex(t) == is_complex(shape.type)) wide.push_back(t);
  }
  if (!wide.empty() && s.random.chance(0.3)) shape.type = s.random.pick(wide);
  Instruction* made = s.b.op(kBitcast, shape, {from});
  made->shape = shape;
  s.draw.pinned.insert({from, made});
  return made;
}

// So many operations on x that several such values are more code than is written out as a block. None rounds.
Instruction* worked_on(Draft& s, Instruction* x) {
  Instruction* other = s.of(x->shape);
  for (int64_t n = s.random.between(30, 60); n > 0; --n) {
    x = s.b.binary(kMaximum, s.b.unary(kNegate, x), other);
  }
  return x;
}

// Arrays side by side in a dim of their own, or of few elements each, which is then merged with a neighbour, and met by
// a number for each place in the last dim: what loops have to be cut apart for.
Instruction* stack(Draft& s) {
  DType t = s.type();
  const Ints sizes = {s.random.pick(Ints{1, 3, 17, 40}), s.random.pick(Ints{1, 2, 3, 5, 16, 33})};
  const int64_t place = s.random.between(0, 2);
  const bool works = !is_pred(t) && !is_complex(t) && s.random.chance(0.1);
  Builder::Values parts;
  for (int64_t n = s.random.between(2, 9); n > 0; --n) {
    Ints own = sizes;
    own.insert(own.begin() + place, s.random.chance(0.8) ? 1 : s.random.between(1, 5));
    Instruction* x = s.of(t, own);
    if (works) x = worked_on(s, x);
    parts.push_back(is_float(t) && s.random.chance(0.4) ? s.b.unary(kNegate, x) : x);
  }
  Instruction* all = s.b.concat_in_dim(std::move(parts), place);
  if (s.random.chance(0.3)) all = s.b.transpose(all, s.permutation(3));
  Ints merged = all->shape.dims;
  const int64_t d = s.random.between(0, 1);
  merged[static_cast<size_t>(d)] *= merged[static_cast<size_t>(d) + 1];
  merged.erase(merged.begin() + d + 1);
  if (s.random.chance(0.8)) all = s.b.reshape(all, merged);
  const int64_t last = all->shape.rank() - 1, length = all->shape.dims.back();
  if (!is_float(t) || is_complex(t) || length > 16) return all;
  Literal numbers(Shape::array(t, {length}));
  for (int64_t k = 0; k < length; ++k) numbers.set_double(k, static_cast<double>(k % 5) - 2);
  return s.b.binary(kAdd, all, s.b.broadcast_in_dim(s.b.constant(std::move(numbers)), all->shape.dims, {last}));
}

// Pixels whose neighbours share some of their values, side by side: several short digits fill what vectors of every
// so many-th pixel leave free.
Instruction* stack_of_repeats(Draft& s) {
  const DType t = s.type();
  const int64_t rows = s.random.between(1, 5), columns = s.random.between(1, 70), times = s.random.between(2, 4);
  const Ints sizes = {rows, columns * times, 1};
  Builder::Values parts;
  for (int64_t n = s.random.between(2, 5); n > 0; --n) {
    Instruction* x = s.of(t, {rows, columns * times});
    if (s.random.chance(0.6)) {
      x = s.b.broadcast_in_dim(s.of(t, {rows, columns}), {rows, columns, times}, {0, 1});
      if (s.random.chance(0.2)) x = s.b.broadcast_in_dim(s.of(t, {rows, times}), {rows, columns, times}, {0, 2});
    }
    parts.push_back(s.b.reshape(x, sizes));
  }
  Instruction* all = s.b.concat_in_dim(std::move(parts), 2);
  if (s.random.chance(0.2)) all = s.b.transpose(all, s.permutation(3));
  if (s.random.chance(0.3)) all = s.b.rev(all, {s.random.below(3)});
  return all;
}

// Rows of many vectors that begin anywhere, more of them than a first cache holds: parts of them, turned round, padded,
// joined and masked by their coordinates, beside what all rows or all columns have in common.
Instruction* long_rows(Draft& s) {
  const DType t = s.type();
  const bool few = s.random.chance(0.1);                    // each of them the work of several tasks
  const int64_t vectors = std::max(4 / dtype_bytes(t), 1);  // narrow types have more lanes
  const int64_t columns = few ? s.random.between(200'000, 250'000) : s.random.between(129 * vectors, 260 * vectors);
  const int64_t rows = few ? 2 : (int64_t{50} << 10) / (columns * dtype_bytes(t)) + s.random.between(1, 9);
  Instruction* x = s.of(t, {rows, columns});
  const int64_t left = s.random.below(4), right = s.random.below(4);
  switch (s.random.below(6)) {
    case 0: x = s.b.slice_in_dim(x, left, columns - right, 1, 1); break;
    case 1: x = s.b.rev(x, {s.random.below(2)}); break;
    case 2: x = s.b.pad(x, s.of(t, {}), {{s.random.between(-1, 1), 0, 0}, {left, right, 0}}); break;
    case 3: x = s.b.concat_in_dim({x, s.of(t, {rows, s.random.between(1, 150)})}, 1); break;
    case 4: {
      const Shape numbers = Shape::array(DType::kS32, x->shape.dims);
      Instruction* inside = s.b.compare(Direction::kGe, s.b.iota(numbers, 0), s.b.iota(numbers, 1));
      x = s.b.select(inside, x, s.of(t, x->shape.dims));
      break;
    }
    default: break;
  }
  for (int64_t d = 0; d < 2; ++d) {
    if (s.random.chance(0.4)) continue;
    Instruction* common = s.of(t, {x->shape.dims[static_cast<size_t>(d)]});
    Instruction* all = s.b.broadcast_in_dim(common, x->shape.dims, {d});
    x = is_pred(t) ? s.b.binary(kXor, x, all) : s.b.binary(s.random.pick(std::vector{kAdd, kMaximum}), x, all);
  }
  return x;
}

// One way to move the elements of rows that are shorter than a vector, or to add what their rows or columns have in
// common.
Instruction* short_rows_moved(Draft& s, Instruction* x) {
  const DType t = x->shape.type;
  const auto sizes = x->shape.dims;
  const int64_t rank = std::ssize(sizes), d = s.random.chance(0.6) ? rank - 1 : s.random.below(rank);
  const int64_t n = sizes[static_cast<size_t>(d)];
  switch (s.random.below(7)) {
    case 0: return s.b.rev(x, s.some(rank));
    case 1: {
      const int64_t first = s.random.below(n), step = s.random.between(1, 3);
      return s.b.slice_in_dim(x, first, s.random.between(first + 1, n), step, d);
    }
    case 2: {
      std::vector<PadDim> padding(static_cast<size_t>(rank));
      padding[static_cast<size_t>(d)] = {s.random.between(-1, 2), s.random.between(0, 2), s.random.chance(0.2) ? 1 : 0};
      return s.b.pad(x, s.of(t, {}), padding);
    }
    case 3: {
      Ints more = sizes;
      more[static_cast<size_t>(d)] = s.random.between(1, 4);
      return s.b.concat_in_dim({x, s.of(t, more)}, d);
    }
    case 4: {
      if (n < 2) return x;
      const int64_t at = s.random.between(1, n - 1);
      return s.b.concat_in_dim({s.b.slice_in_dim(x, at, n, 1, d), s.b.slice_in_dim(x, 0, at, 1, d)}, d);
    }
    case 5: {
      Instruction* chosen = s.b.broadcast_in_dim(s.of(DType::kPred, {n}), sizes, {d});
      return s.b.select(chosen, x, s.of(t, sizes));
    }
    default: {
      Instruction* all = s.b.broadcast_in_dim(s.of(t, {n}), sizes, {d});
      return s.b.binary(is_pred(t) ? kXor : s.random.pick(std::vector{kAdd, kMaximum}), x, all);
    }
  }
}

// Rows in another order, as palettes and points are looked up, all of each or some.
Instruction* rows_looked_up(Draft& s, Instruction* x) {
  const Ints from = x->shape.dims;
  const int64_t rank = std::ssize(from);
  Ints at = {s.random.between(2, 150)};
  if (s.random.chance(0.4)) at.push_back(s.random.between(2, 40));
  const auto dims = std::ssize(at);
  Instruction* rows = s.of(s.random.pick(std::vector{DType::kS32, DType::kU8, DType::kS64}), at);
  if (s.random.chance(0.3)) rows = s.b.rev(rows, s.some(dims));
  GatherDims g;
  g.index_vector_dim = dims;
  g.collapsed_slice_dims = g.start_index_map = {0};
  for (int64_t d = 1; d < rank; ++d) g.offset_dims.push_back(dims + d - 1);
  g.slice_sizes = from;
  g.slice_sizes[0] = 1;
  if (s.random.chance(0.3)) g.slice_sizes.back() = s.random.between(1, from.back());
  return s.b.gather(x, rows, std::move(g));
}

// Colours of pixels, coordinates of points: lanes that run across rows.
Instruction* short_rows(Draft& s) {
  Ints sizes = {s.random.between(2, 400)};
  if (s.random.chance(0.3)) sizes.insert(sizes.begin(), s.random.between(1, 4));
  for (int64_t n = s.random.chance(0.3) ? 2 : 1; n > 0; --n) sizes.push_back(s.random.between(2, 9));
  using enum DType;
  const DType t = s.random.chance(0.5) ? s.random.pick(std::vector{kU8, kS8, kPred, kBF16, kF16}) : s.type();
  Instruction* x = s.random.chance(0.5) ? s.fresh(t, sizes) : s.of(t, sizes);
  if (s.random.chance(0.4)) x = rows_looked_up(s, x);
  for (int64_t n = s.random.between(0, 3); n > 0; --n) {
    Instruction* moved = short_rows_moved(s, x);
    if (moved->shape.element_count() > 0) x = moved;
  }
  return x;
}

// Arrays side by side, or one with padding, seen in other sizes and computed with there: by what is the same
// everywhere, by arguments, by others seen so.
Instruction* parts_in_other_sizes(Draft& s) {
  const DType type = s.type();
  Ints sizes;
  for (int64_t k = s.random.between(1, 3); k > 0; --k) sizes.push_back(s.random.pick(Ints{1, 1, 2, 3, 4, 8, 12, 20}));
  const int64_t d = s.random.below(std::ssize(sizes));
  const auto beside = [&] {
    Ints part = sizes, rest = sizes;
    part[static_cast<size_t>(d)] = s.random.between(0, sizes[static_cast<size_t>(d)]);
    rest[static_cast<size_t>(d)] -= part[static_cast<size_t>(d)];
    if (s.random.chance(0.3)) {
      std::vector<PadDim> padding(sizes.size());
      const int64_t low = s.random.between(-1, 2);
      padding[static_cast<size_t>(d)] = {low, rest[static_cast<size_t>(d)] - low, 0};
      return s.b.pad(s.of(type, part), s.splat(type, 1, {}), padding);
    }
    return s.b.concat_in_dim({s.of(type, part), s.of(type, rest)}, d);
  };
  Instruction* x = beside();
  if (s.random.chance(0.3)) x = s.b.select(s.of(DType::kPred, sizes), x, s.of(type, sizes));
  x = s.b.reshape(x, in_factors(s, x->shape.element_count()));
  for (int64_t k = s.random.between(1, 3); k > 0; --k) {
    Instruction* bits = s.random.chance(0.4) ? bits_of(s, x) : nullptr;
    if (bits) x = bits;
    const DType now = x->shape.type;
    const Ints at = x->shape.dims;
    Instruction* y = s.random.chance(0.4)                  ? s.splat(now, 3, at)
                     : s.random.chance(0.5) || now != type ? s.of(now, at)
                                                           : s.b.reshape(beside(), at);
    x = s.random.chance(0.6) ? s.b.select(s.of(DType::kPred, s.random.chance(0.4) ? Ints{} : at), x, y)
        : is_pred(now)       ? s.b.binary(kXor, x, y)
                             : s.b.binary(kAdd, x, y);
  }
  return x;
}

// Short rows that change places, so many and so far apart that the lines of the cache are lost which hold several; as
// they are or a part of them, turned round, computed with, beside another dim.
Instruction* rows_change_places(Draft& s) {
  using enum DType;
  const DType t = s.random.pick(std::vector{kF32, kF32, kF64, kBF16, kS8, kS32});
  const int64_t row = s.random.between(2, 8), beside = s.random.pick(Ints{64, 128, 256, 512, 250, 251});
  const int64_t steps = std::min(s.random.between(7, 60), 8 * s.draw.most_elements / (beside * row));
  Ints sizes = {steps, beside, row}, order = {1, 0, 2};
  if (s.random.chance(0.2)) sizes.insert(sizes.begin(), 2), order = {0, 2, 1, 3};
  const auto d = static_cast<int64_t>(order.size()) - 2;
  Instruction* x = s.b.transpose(s.of(t, sizes), order);
  if (s.random.chance(0.3)) x = s.b.rev(x, {s.random.between(d - 1, d + 1)});
  if (s.random.chance(0.3)) x = s.b.slice_in_dim(x, 1, x->shape.dims[static_cast<size_t>(d)], 1, d);
  if (s.random.chance(0.4)) x = s.b.op(kAdd, {x, s.of(x->shape)});
  return x;
}

}  // namespace

Family places_of_rows_family() { return {"rows that change places", {{rows_change_places, 14}}, 0.03}; }
Family parts_family() { return {"parts in other sizes", {{parts_in_other_sizes, 10}}, 0.04}; }
Family short_row_family() { return {"short rows", {{short_rows, 14}}, 0.06}; }
Family long_row_family() { return {"long rows", {{long_rows, 8}}, 0.04}; }
Family stack_family() { return {"stacks", {{stack, 20}}, 0.05}; }
Family repeats_family() { return {"stacks of repeats", {{stack_of_repeats, 10}}, 0.04}; }
Family movement_family() {
  return {"movement",
          {{broadcast, 4},
           {reshape, 4},
           {transpose, 5},
           {reverse, 2},
           {concatenate, 3},
           {slice, 4},
           {pad, 3},
           {copy, 1},
           {bitcast, 1},
           {iota, 1}},
          0.7};
}

}  // namespace hlojit::tools::fuzz

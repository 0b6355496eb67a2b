// Ops whose indices are values: dynamic slices and their updates, gather, scatter.
#include <algorithm>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

DType index_type(Draft& s) {
  return s.random.pick(std::vector{DType::kS32, DType::kS32, DType::kS32, DType::kS64, DType::kU32, DType::kS8});
}

// One scalar a dimension or, the older form, one vector.
std::vector<Instruction*> starts(Draft& s, const Ints& sizes) {
  DType t = index_type(s);
  if (!sizes.empty() && s.random.chance(0.1)) return {s.of(t, {std::ssize(sizes)})};
  std::vector<Instruction*> indices;
  for (int64_t size : sizes) indices.push_back(s.index(t, size));
  return indices;
}

Ints part(Draft& s, const Ints& sizes) {
  Ints sub;
  for (int64_t size : sizes) {
    sub.push_back(s.random.chance(0.4)   ? size
                  : s.random.chance(0.4) ? std::min<int64_t>(1, size)
                                         : s.random.between(0, size));
  }
  return sub;
}

Instruction* dynamic_slice(Draft& s) {
  Instruction* x = s.any();
  return s.b.dynamic_slice(x, starts(s, x->shape.dims), part(s, x->shape.dims));
}

Instruction* dynamic_update_slice(Draft& s) {
  Instruction* x = s.any();
  Ints sizes = part(s, x->shape.dims);
  Instruction* update = s.of(x->shape.type, sizes);
  return s.b.dynamic_update_slice(x, update, starts(s, x->shape.dims));
}

// What a part of an array is replaced by is made of that part: in place, or of other elements of it.
Instruction* update_of_part(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && v.element_count() > 0; });
  if (!x) return nullptr;
  Ints sizes = part(s, x->shape.dims), begin, end;
  std::vector<Instruction*> starts;
  const DType index = index_type(s);
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t room = std::min<int64_t>(x->shape.dims[d] - sizes[d], 100);
    begin.push_back(s.random.between(0, room));
    end.push_back(begin.back() + sizes[d]);
    starts.push_back(s.b.constant(index, static_cast<double>(begin.back())));
  }
  Instruction* taken = s.b.slice(x, begin, end, Ints(sizes.size(), 1));
  auto changed = [&](Instruction* u) {
    for (int64_t n = s.random.between(0, 3); n > 0; --n) {
      switch (s.random.below(4)) {
        case 0: u = s.b.rev(u, {s.random.below(u->shape.rank())}); break;
        case 1: {
          Ints order = s.permutation(u->shape.rank());
          Instruction* turned = s.b.transpose(u, order);
          if (turned->shape.dims == sizes) u = turned;
          break;
        }
        case 2:
          u = is_pred(u->shape.type) ? s.b.unary(kNot, u) : s.b.binary(kAdd, u, s.of(u->shape.type, sizes));
          break;
        default: {  // by one to the side
          const int64_t d = s.random.below(u->shape.rank());
          std::vector<PadDim> padding(sizes.size());
          padding[static_cast<size_t>(d)] = {1, -1, 0};
          if (sizes[static_cast<size_t>(d)] > 0) u = s.b.pad(u, s.of(u->shape.type, {}), padding);
        }
      }
    }
    return u;
  };
  if (s.random.chance(0.3)) s.keep(changed(taken));
  return s.b.dynamic_update_slice(x, changed(taken), starts);
}

// Rows within longer ones, replaced by what much is done to their elements for: the last vector of each must leave what
// follows it as it is.
Instruction* rows_in_place(Draft& s) {
  const DType type = s.type();
  const int64_t rows = s.random.between(1, 6), columns = s.random.between(3, 70);
  const int64_t before = s.random.below(3), behind = s.random.below(4);
  Instruction* x = s.of(type, {rows, before + columns + behind});
  Instruction* u = s.b.slice(x, {0, before}, {rows, before + columns}, {1, 1});
  for (int64_t n = s.random.between(1, 6); n > 0; --n) {
    if (is_pred(type))
      u = s.b.unary(kNot, u);
    else if (is_integral(type))
      u = s.b.binary(n % 2 ? kMultiply : kDivide, u, n % 3 ? u : s.splat(type, 3, u->shape.dims));
    else if (is_float(type) && s.random.chance(0.5))
      u = s.b.unary(s.random.chance(0.5) ? kTanh : kLogistic, u);
    else
      u = s.b.binary(n % 2 ? kAdd : kSubtract, u, s.splat(type, 0.75, u->shape.dims));
  }
  return s.b.dynamic_update_slice(
      x, u, {s.b.constant(DType::kS32, 0), s.b.constant(DType::kS32, static_cast<double>(before))});
}

// Each dimension of the operand plays a part: batching, collapsed, or windowed; some are indexed.
Instruction* gather_from(Draft& s, Instruction* x, double batching, double collapsed, int64_t most_further) {
  GatherDims g;
  Ints index_sizes, window;
  int64_t rank = x->shape.rank();
  for (int64_t d = 0; d < rank; ++d) {
    int64_t size = x->shape.dims[static_cast<size_t>(d)];
    if (size > 0 && s.random.chance(batching)) {
      g.operand_batching_dims.push_back(d);
      g.slice_sizes.push_back(1);
    } else if (size > 0 && s.random.chance(collapsed)) {
      g.collapsed_slice_dims.push_back(d);
      g.slice_sizes.push_back(1);
      g.start_index_map.push_back(d);
    } else {
      g.slice_sizes.push_back(s.random.chance(0.5) ? size : s.random.between(0, size));
      window.push_back(g.slice_sizes.back());
      if (s.random.chance(0.4)) g.start_index_map.push_back(d);
    }
  }
  s.random.shuffle(g.start_index_map);
  // Batch dimensions of the indices: the batching ones anywhere among others.
  std::vector<std::pair<int64_t, int64_t>> batch;  // size, operand batching dim or -1
  for (int64_t d : g.operand_batching_dims) batch.emplace_back(x->shape.dims[static_cast<size_t>(d)], d);
  for (int64_t n = s.random.between(0, most_further); n > 0; --n) batch.emplace_back(s.random.pick(s.draw.sizes), -1);
  s.random.shuffle(batch);
  for (auto& [size, d] : batch) index_sizes.push_back(size);
  bool implied = g.start_index_map.size() == 1 && s.random.chance(0.3);
  g.index_vector_dim = implied ? std::ssize(index_sizes) : s.random.between(0, std::ssize(index_sizes));
  if (!implied) index_sizes.insert(index_sizes.begin() + g.index_vector_dim, std::ssize(g.start_index_map));
  for (int64_t d : g.operand_batching_dims) {
    for (size_t k = 0; k < batch.size(); ++k) {
      if (batch[k].second != d) continue;
      int64_t at = static_cast<int64_t>(k);
      g.start_indices_batching_dims.push_back(at + (!implied && at >= g.index_vector_dim));
    }
  }
  Ints result;
  int64_t out_rank = std::ssize(batch) + std::ssize(window);
  Ints order = s.permutation(out_rank);
  g.offset_dims.assign(order.begin(), order.begin() + std::ssize(window));
  std::ranges::sort(g.offset_dims);
  for (auto& [size, d] : batch) result.push_back(size);
  result.insert(result.end(), window.begin(), window.end());
  if (out_rank > 6 || !s.fits(result)) return nullptr;
  return s.b.gather(x, s.of(index_type(s), index_sizes), std::move(g));
}

Instruction* gather(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1; });
  return x ? gather_from(s, x, 0.15, 0.4, 2) : nullptr;
}

// Of most dimensions one element: each element of the result has an index of its own, whatever the order it is made in.
Instruction* batched_gather(Draft& s) {
  using enum DType;
  DType t = s.random.chance(0.6) ? s.random.pick(std::vector{kBF16, kF16, kS16, kS8}) : s.type();
  int64_t size = s.random.pick(Ints{2, 2, 4, 8, 17});
  Ints sizes = {s.random.between(1, 4), size, s.random.chance(0.7) ? size : s.random.pick(Ints{1, 2, 3, 16})};
  Instruction* made = gather_from(s, s.of(t, sizes), 0.9, 0.9, s.random.chance(0.2));
  if (!made || s.random.chance(0.3)) return made;
  Ints turned;
  for (int64_t d = made->shape.rank() - 1; d >= 0; --d) turned.push_back(d);
  return s.b.transpose(made, turned);
}

// Of each batch a window, whole rows of which stand beside another operand, written across: the lanes are batches, each
// at an index of its own, and what follows in a row is at hand.
Instruction* transposed_gather(Draft& s) {
  DType t = s.random.chance(0.7) ? DType::kF32 : s.type();
  int64_t batches = s.random.pick(Ints{2, 4, 8, 16}), length = s.random.pick(Ints{2, 2, 4, 8, 3});
  GatherDims g;
  g.operand_batching_dims = {1};
  g.start_indices_batching_dims = {0};
  g.collapsed_slice_dims = g.start_index_map = {0};
  g.offset_dims = {1};
  g.slice_sizes = {1, 1, length};
  g.index_vector_dim = 1;
  Instruction* x = s.of(t, {s.random.between(1, 4), batches, length});
  Instruction* rows = s.b.gather(x, s.of(index_type(s), {batches}), std::move(g));
  Instruction* y = s.of(t, {batches, length});
  return s.b.transpose(s.b.binary(is_pred(t) ? kXor : kAdd, rows, y), {1, 0});
}

// Rows of few elements, each where an index says, the last one at the end of the array: as they are, beside rows found
// by other indices, scaled, turned, or reduced. Enough of them for the lanes.
Instruction* found_rows(Draft& s) {
  const DType t = s.random.chance(0.7) ? DType::kF32 : s.type();
  const int64_t wanted = s.random.pick(Ints{8, 16, 17, 33, 40}),
                length = s.random.pick(Ints{1, 2, 3, 4, 5, 7, 8, 9, 17});
  Instruction* array = s.of(t, {s.random.between(1, 9), length});
  auto find = [&](Instruction* at) {
    GatherDims g;
    g.offset_dims = {1};
    g.collapsed_slice_dims = g.start_index_map = {0};
    g.index_vector_dim = 1;
    g.slice_sizes = {1, length};
    return s.b.gather(array, at, std::move(g));
  };
  const Opcode combined = is_pred(t) ? kXor : kAdd;
  Instruction* at = s.of(index_type(s), {wanted});
  Instruction* rows = find(at);
  if (s.random.chance(0.4)) {
    const bool same = s.random.chance(0.5);  // as another type negative ones are large, or the reverse
    rows = s.b.binary(combined, rows, find(same ? s.b.convert(at, DType::kU32) : s.of(index_type(s), {wanted})));
  }
  if (s.random.chance(0.4)) {
    Instruction* scale = s.b.broadcast_in_dim(s.of(t, {wanted}), {wanted, length}, {0});
    rows = s.b.binary(combined, rows, scale);
  }
  if (s.random.chance(0.4)) {
    rows = s.b.transpose(rows, {1, 0});
    return s.random.chance(0.3) ? rows : s.b.binary(combined, rows, s.of(t, {length, wanted}));
  }
  if (is_complex(t) || s.random.chance(0.5)) return rows;
  const bool adds = dtype_bits(t) >= 16 && s.random.chance(0.6);
  const Opcode reduced = is_pred(t) ? kXor : adds ? kAdd : kMaximum;
  if (is_float(t)) rows = s.small(rows, 4);
  return reduce_by(s, reduced, rows, {s.random.chance(0.8) ? 1 : 0});
}

// Rows of a few bytes, each where several numbers say, in any order of these: as many as fill no whole vector of lanes,
// the last one at the end of the array.
Instruction* rows_by_numbers(Draft& s) {
  using enum DType;
  const DType t = s.random.chance(0.8) ? s.random.pick(std::vector{kS8, kU8, kBF16, kS16, kF32, kS32}) : s.type();
  const int64_t numbers = s.random.pick(Ints{1, 2, 3, 3}), length = s.random.pick(Ints{1, 2, 2, 2, 3, 5, 7});
  Ints sizes, wanted;
  GatherDims g;
  for (int64_t d = 0; d < numbers; ++d) {
    sizes.push_back(s.random.between(1, 5));
    g.collapsed_slice_dims.push_back(d);
  }
  g.start_index_map = g.collapsed_slice_dims;
  s.random.shuffle(g.start_index_map);
  g.slice_sizes = Ints(sizes.size(), 1);
  sizes.push_back(length);
  g.slice_sizes.push_back(length);
  for (int64_t n = s.random.chance(0.7) ? 1 : 2; n > 0; --n) wanted.push_back(s.random.pick(Ints{3, 6, 6, 10, 17, 18}));
  g.offset_dims = {std::ssize(wanted)};
  Ints result = wanted;
  result.push_back(length);
  g.index_vector_dim = s.random.chance(0.7) ? std::ssize(wanted) : 0;
  wanted.insert(wanted.begin() + g.index_vector_dim, numbers);
  Instruction* at = s.of(s.random.chance(0.6) ? kS32 : index_type(s), wanted);
  Instruction* rows = s.b.gather(s.of(t, sizes), at, std::move(g));
  return s.random.chance(0.5) ? rows : s.b.binary(is_pred(t) ? kXor : kAdd, rows, s.of(t, result));
}

// What is done where updates meet: anything that two scalars give, first what stands there.
Computation* update_rule(Draft& s, DType t) {
  if (s.random.chance(s.draw.rules_loop ? 0 : 0.6)) {
    Opcode op = s.random.pick(std::vector{kAdd, kAdd, kMaximum, kMinimum, kMultiply});
    if (is_complex(t)) op = kAdd;
    if (is_pred(t)) op = s.random.chance(0.5) ? kOr : kAnd;
    return combiner(s, op, t);
  }
  const double loops = s.draw.rules_loop ? 1 : 0.02;
  if (s.random.chance(s.draw.rules_loop ? 1 : 0.3)) return applied_rule(s, {t}, loops);
  Builder b(s.draw.module, "rule");
  Instruction* old = b.parameter(Shape::scalar(t));
  Instruction* now = b.parameter(Shape::scalar(t));
  if (s.random.chance(0.5)) return b.build(now);
  if (is_pred(t)) return b.build(b.op(kXor, {b.unary(kNot, old), now}));
  return b.build(b.op(kSubtract, {now, old}));
}

}  // namespace

// A gather's mirror: which part of the operand each window of the updates lands on.
Instruction* scatter_into(Draft& s, Instruction* x) {
  ScatterDims g;
  Ints window;
  for (int64_t d = 0; d < x->shape.rank(); ++d) {
    int64_t size = x->shape.dims[static_cast<size_t>(d)];
    if (size > 0 && s.random.chance(0.15)) {
      g.input_batching_dims.push_back(d);
    } else if (size > 0 && s.random.chance(0.4)) {
      g.inserted_window_dims.push_back(d);
      g.scatter_dims_to_operand_dims.push_back(d);
    } else {
      window.push_back(s.random.chance(0.6) ? size : s.random.between(0, size));
      if (s.random.chance(0.3)) g.scatter_dims_to_operand_dims.push_back(d);
    }
  }
  s.random.shuffle(g.scatter_dims_to_operand_dims);
  std::vector<std::pair<int64_t, int64_t>> batch;  // size, operand batching dim or -1
  for (int64_t d : g.input_batching_dims) batch.emplace_back(x->shape.dims[static_cast<size_t>(d)], d);
  for (int64_t n = s.random.between(0, 2); n > 0; --n) batch.emplace_back(s.random.pick(s.draw.sizes), -1);
  s.random.shuffle(batch);
  Ints index_sizes, result;
  for (auto& [size, d] : batch) index_sizes.push_back(size);
  bool implied = g.scatter_dims_to_operand_dims.size() == 1 && s.random.chance(0.3);
  g.index_vector_dim = implied ? std::ssize(batch) : s.random.between(0, std::ssize(batch));
  if (!implied) {
    index_sizes.insert(index_sizes.begin() + g.index_vector_dim, std::ssize(g.scatter_dims_to_operand_dims));
  }
  for (int64_t d : g.input_batching_dims) {
    for (int64_t k = 0; k < std::ssize(batch); ++k) {
      if (batch[static_cast<size_t>(k)].second != d) continue;
      g.scatter_indices_batching_dims.push_back(k + (!implied && k >= g.index_vector_dim));
    }
  }
  int64_t rank = std::ssize(batch) + std::ssize(window);
  Ints order = s.permutation(rank);
  g.update_window_dims.assign(order.begin(), order.begin() + std::ssize(window));
  std::ranges::sort(g.update_window_dims);
  size_t w = 0, k = 0;
  for (int64_t d = 0; d < rank; ++d) {
    bool in_window = std::ranges::find(g.update_window_dims, d) != g.update_window_dims.end();
    result.push_back(in_window ? window[w++] : batch[k++].first);
  }
  if (rank > 6 || !s.fits(result) || !s.fits(index_sizes)) return nullptr;
  auto summable = [&](Instruction* v) { return is_float(v->shape.type) && s.random.chance(0.8) ? s.small(v, 4) : v; };
  Instruction* indices = s.of(index_type(s), index_sizes);
  Attributes a;
  a.scatter = g;
  if (s.random.chance(0.8)) {
    Computation* rule = update_rule(s, x->shape.type);
    return s.b.op(kScatter, {summable(x), indices, summable(s.of(x->shape.type, result))}, std::move(a), {rule});
  }
  // Two operands at once, the second updated by both.
  Instruction* y = s.of(s.type(), x->shape.dims);
  DType t = x->shape.type, u = y->shape.type;
  Builder b(s.draw.module, "rules");
  Builder::Values p;
  for (DType type : {t, u, t, u}) p.push_back(b.parameter(Shape::scalar(type)));
  Instruction* bigger = b.compare(is_complex(t) ? Direction::kNe : Direction::kGt, p[2], p[0]);
  b.build(b.tuple({b.op(kSelect, {bigger, p[2], p[0]}), b.op(kSelect, {bigger, p[3], p[1]})}));
  return s.b.op(kScatter, {x, y, indices, s.of(t, result), s.of(u, result)}, std::move(a), {b.computation()});
}

namespace {

Instruction* scatter(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1; });
  return x ? scatter_into(s, x) : nullptr;
}

// Rows of a small array that lies turned in memory, several added to one.
Instruction* rows_added_up(Draft& s) {
  const DType t = s.type();
  if (is_pred(t) || is_complex(t)) return nullptr;
  const int64_t rows = s.random.between(3, 12), columns = s.random.between(2, 20), count = s.random.between(2, 12);
  auto summable = [&](Instruction* v) { return is_float(t) ? s.small(v, 4) : v; };
  Instruction* x = s.b.transpose(summable(s.of(t, {columns, rows})), {1, 0});
  Instruction* numbers = s.of(DType::kS32, {count, 1});
  numbers = s.b.binary(kAnd, numbers, s.splat(DType::kS32, s.random.pick(std::vector{3.0, 7.0}), {count, 1}));
  Attributes a;
  ScatterDims& g = a.scatter.edit();
  g.update_window_dims = {1};
  g.inserted_window_dims = g.scatter_dims_to_operand_dims = {0};
  g.index_vector_dim = 1;
  Instruction* updates = summable(s.of(t, {count, columns}));
  return s.b.op(kScatter, {x, numbers, updates}, std::move(a), {combiner(s, kAdd, t)});
}

// So many elements of an array of two dims that vectors find their places, of which some lie outside.
Instruction* elements_at_places(Draft& s) {
  const DType t = s.type(), type = index_type(s);
  const int64_t rows = s.random.between(4, 12), columns = s.random.between(2, 19), count = s.random.between(256, 300);
  auto summable = [&](Instruction* v) { return is_float(t) ? s.small(v, 4) : v; };
  const Ints sizes = {count, 2};
  auto everywhere = [&](double v) { return s.splat(type, v, sizes); };
  Instruction* places = s.b.binary(kAnd, s.of(type, sizes), everywhere(s.random.pick(std::vector{7.0, 15.0})));
  if (s.random.chance(0.5)) places = s.b.binary(kSubtract, places, everywhere(1));
  Attributes a;
  ScatterDims& g = a.scatter.edit();
  g.inserted_window_dims = g.scatter_dims_to_operand_dims = {0, 1};
  s.random.shuffle(g.scatter_dims_to_operand_dims);
  g.index_vector_dim = 1;
  Instruction* x = summable(s.of(t, {rows, columns}));
  return s.b.op(kScatter, {x, places, summable(s.of(t, {count}))}, std::move(a), {update_rule(s, t)});
}

// Pieces of columns, side by side in the updates or not, that lie over each other: which one is first is seen.
Instruction* pieces_of_columns(Draft& s) {
  const DType t = s.type();
  const int64_t rows = s.random.between(4, 12), columns = s.random.between(2, 9), count = s.random.between(2, 40);
  const int64_t length = s.random.between(2, rows - 1);
  auto summable = [&](Instruction* v) { return is_float(t) ? s.small(v, 4) : v; };
  Instruction* places = s.of(DType::kS32, {count, 2});
  places = s.b.binary(kAnd, places, s.splat(DType::kS32, s.random.pick(std::vector{3.0, 7.0}), {count, 2}));
  Attributes a;
  ScatterDims& g = a.scatter.edit();
  const bool together = s.random.chance(0.6);
  g.update_window_dims = {together ? 0 : 1};
  g.inserted_window_dims = {1};
  g.scatter_dims_to_operand_dims = {0, 1};
  g.index_vector_dim = 1;
  Instruction* x = summable(s.of(t, {rows, columns}));
  Instruction* updates = summable(s.of(t, together ? Ints{length, count} : Ints{count, length}));
  return s.b.op(kScatter, {x, places, updates}, std::move(a), {update_rule(s, t)});
}

// Indices that depend on where they stand alone: steps along two dims from anywhere, maybe divided or masked, with the
// branch for negative ones that frontends write; inside of the array mostly, not always.
Instruction* known_gather(Draft& s) {
  DType t = index_type(s);
  const Ints sizes = {s.random.between(1, 9), s.random.between(1, 20)};
  auto everywhere = [&](int64_t n) { return s.splat(t, static_cast<double>(n), sizes); };
  Instruction* at = everywhere(s.random.between(is_signed(t) ? -4 : 0, 8));
  for (int64_t d : {0, 1}) {
    Instruction* number = s.b.iota(Shape::array(t, sizes), d);
    Instruction* steps = s.b.binary(kMultiply, number, everywhere(s.random.pick(Ints{0, 1, 1, 1, 2, 3, 7})));
    at = s.b.binary(s.random.chance(0.75) ? kAdd : kSubtract, at, steps);
  }
  if (s.random.chance(0.4)) {
    const Opcode op = s.random.pick(std::vector{kDivide, kRemainder, kShiftRightArithmetic, kAnd, kXor});
    const bool shifts = op == kShiftRightArithmetic;
    const Ints numbers = shifts ? Ints{1, 2, 3, 15, dtype_bits(t) - 1} : Ints{0, 1, 1, 2, 3, 5, 7, 15};
    at = s.b.binary(op, at, everywhere(s.random.pick(numbers)));
  }
  Ints array = {s.random.pick(Ints{1, 9, 30, 60, 100})};
  if (s.random.chance(0.4)) array.push_back(s.random.between(1, 9));
  if (s.random.chance(0.5)) {
    Instruction* turned = s.b.binary(kAdd, at, everywhere(array[0]));
    at = s.b.select(s.b.compare(Direction::kLt, at, everywhere(0)), turned, at);
  }
  // Not known any more.
  if (Instruction* placed = s.random.chance(0.1) ? scatter_into(s, at) : nullptr; placed && placed->shape.is_array())
    at = placed;
  GatherDims g;
  if (array.size() > 1) g.offset_dims = {s.random.between(0, 2)};
  g.collapsed_slice_dims = g.start_index_map = {0};
  g.index_vector_dim = 2;
  g.slice_sizes = array;
  g.slice_sizes[0] = 1;
  return s.b.gather(s.of(s.type(), array), at, std::move(g));
}

}  // namespace

Family indexing_family() { return {"indexing", {{dynamic_slice, 4}, {dynamic_update_slice, 5}, {gather, 4}}, 0.4}; }
Family batched_gather_family() { return {"batched gathers", {{batched_gather, 20}}, 0.05}; }
Family transposed_gather_family() { return {"transposed gathers", {{transposed_gather, 10}, {found_rows, 10}}, 0.05}; }
Family row_number_family() { return {"rows by numbers", {{rows_by_numbers, 20}}, 0.05}; }
Family known_gather_family() { return {"known indices", {{known_gather, 20}}, 0.05}; }
Family part_update_family() { return {"updates of parts", {{update_of_part, 12}}, 0.05}; }
Family part_row_family() { return {"rows in place", {{rows_in_place, 20}}, 0.05}; }
Family element_places_family() { return {"elements at places", {{elements_at_places, 10}}, 0.02}; }
Family scatter_family() { return {"scatter", {{scatter, 6}, {rows_added_up, 3}, {pieces_of_columns, 3}}, 0.08}; }

}  // namespace hlojit::tools::fuzz

// Loops of a known number of rounds over arrays large enough for a second buffer: every element from neighbours in the
// state, its own old array among them, which is then read at places that are written.
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

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

Instruction* counted_loop(Draft& s) {
  using enum DType;
  if (s.draw.depth > 0) return nullptr;
  const DType t = s.random.pick(std::vector{kF32, kF32, kF64, kBF16, kS32, kS8, kU8});
  const Ints sizes = s.random.chance(0.85) ? large(s, t) : Ints{s.random.between(1, 9), s.random.between(1, 9)};
  auto number = [](Builder& b, int64_t n) { return b.constant(kS32, static_cast<double>(n)); };
  Builder::Values init = {number(s.b, s.random.between(0, 1))};
  for (int64_t n = s.random.between(1, 3); n > 0; --n) {
    Instruction* x = s.of(t, sizes);
    init.push_back(is_float(t) ? s.small(x, 8) : x);
  }
  Instruction* start = s.b.tuple(init);
  Builder c(s.draw.module, "condition");
  Instruction* count = c.get_tuple_element(c.parameter(start->shape), 0);
  c.build(c.compare(Direction::kLt, count, number(c, s.random.between(0, 6))));
  ++s.draw.depth;
  Draft inner(s.draw, "round");
  --s.draw.depth;
  std::vector<Instruction*> state, next;
  Instruction* p = inner.b.parameter(start->shape);
  for (size_t k = 0; k < init.size(); ++k) state.push_back(inner.b.get_tuple_element(p, static_cast<int64_t>(k)));
  next.push_back(inner.b.op(kAdd, {state[0], number(inner.b, s.random.chance(0.8) ? 1 : 2)}));
  for (size_t k = 1; k < state.size(); ++k) {
    next.push_back(s.random.chance(0.75) ? next_array(inner, state) : array_of(s, state));
  }
  inner.b.build(inner.b.tuple(next));
  return s.b.while_loop(c.computation(), inner.b.computation(), start);
}

}  // namespace

Family counted_loop_family() { return {"counted loops", {{counted_loop, 20}}, 0.04}; }

}  // namespace hlojit::tools::fuzz

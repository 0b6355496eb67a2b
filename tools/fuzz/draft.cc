// Operands for the next op: mostly values at hand, so that graphs are dense, else new ones made of them.
#include "tools/fuzz/draft.h"

#include <algorithm>
#include <numeric>

namespace hlojit::tools::fuzz {

Instruction* Draft::keep(Instruction* value) {
  if (!value->shape.is_tuple()) {
    values.push_back(value);
    return value;
  }
  for (int64_t i = 0; i < std::ssize(value->shape.elements); ++i) {
    if (value->shape.elements[static_cast<size_t>(i)].is_token()) continue;
    keep(b.get_tuple_element(value, i));
  }
  return value;
}

void Draft::step() {
  for (int tries = 0; tries < 20; ++tries) {
    Instruction* made = random.pick(draw.ops)(*this);
    if (!made) continue;
    keep(made);
    return;
  }
}

Instruction* Draft::any() {
  int64_t n = std::ssize(values);
  if (random.chance(0.5)) return values[static_cast<size_t>(n - 1 - random.below(std::min<int64_t>(n, 3)))];
  return random.pick(values);
}

bool Draft::fits(const Ints& sizes) const {
  int64_t n = 1;
  for (int64_t size : sizes) n *= std::max<int64_t>(size, 1);
  return n <= draw.most_elements;
}

Ints Draft::shape(int64_t least_rank, int64_t most_rank) {
  Ints sizes;
  int64_t rank = random.between(least_rank, most_rank);
  for (int64_t d = 0; d < rank; ++d) sizes.push_back(random.pick(draw.sizes));
  while (!fits(sizes)) *std::ranges::max_element(sizes) = random.between(1, 3);
  return sizes;
}

Ints Draft::some(int64_t n, double chance) {
  Ints chosen;
  for (int64_t d = 0; d < n; ++d) {
    if (random.chance(chance)) chosen.push_back(d);
  }
  return chosen;
}

Ints Draft::permutation(int64_t n) {
  Ints p(static_cast<size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  random.shuffle(p);
  return p;
}

Instruction* Draft::splat(DType type, double value, const Ints& sizes) {
  Instruction* scalar = b.constant(type, value);
  if (sizes.empty()) return scalar;
  return b.broadcast(scalar, sizes);
}

Instruction* Draft::of(DType type, const Ints& sizes) {
  if (random.chance(0.7)) {
    Instruction* same = any([&](const Shape& s) { return s.type == type && s.dims == sizes; });
    if (same) return same;
  }
  // Something of fewer dimensions, stretched.
  if (random.chance(0.6) && !sizes.empty()) {
    std::vector<std::pair<Instruction*, Ints>> found;
    for (Instruction* v : values) {
      if (v->shape.type != type || v->shape.rank() >= std::ssize(sizes)) continue;
      Ints dims;
      size_t from = 0;
      for (int64_t size : v->shape.dims) {
        while (from < sizes.size() && sizes[from] != size) ++from;
        if (from == sizes.size()) break;
        dims.push_back(static_cast<int64_t>(from++));
      }
      if (std::ssize(dims) == v->shape.rank()) found.emplace_back(v, dims);
    }
    if (!found.empty()) {
      auto& [v, dims] = random.pick(found);
      return keep(b.broadcast_in_dim(v, sizes, dims));
    }
  }
  if (random.chance(0.4)) {
    Instruction* other = any(
        [&](const Shape& s) { return s.dims == sizes && s.type != type && !is_complex(s.type) && !is_complex(type); });
    if (other && type != DType::kPred) return keep(b.convert(other, type));
    if (other && !is_pred(other->shape.type)) {
      return keep(b.compare(Direction::kGt, other, splat(other->shape.type, 0, sizes)));
    }
  }
  return keep(fresh(type, sizes));
}

Instruction* Draft::fresh(DType type, const Ints& sizes) {
  if (entry_ && random.chance(0.75)) return b.parameter(Shape::array(type, sizes));
  if (!sizes.empty() && !is_pred(type) && !is_complex(type) && random.chance(0.4)) {
    return b.iota(Shape::array(type, sizes), random.below(std::ssize(sizes)));
  }
  Literal literal(Shape::array(type, sizes));
  int64_t n = literal.shape().element_count();
  if (n > 200 || random.chance(0.3)) {
    return splat(type, is_pred(type) ? static_cast<double>(random.below(2)) : static_cast<double>(random.between(0, 3)),
                 sizes);
  }
  for (int64_t i = 0; i < n; ++i) {
    if (is_float(type))
      literal.set_double(i, random.chance(0.5) ? random.unit() : random.between(-3, 3));
    else if (is_complex(type))
      literal.set_complex(i, {random.unit(), random.unit()});
    else
      literal.set_int(
          i, is_pred(type) ? random.below(2) : random.between(is_signed(type) ? -2 : 0, dtype_bits(type) > 1 ? 1 : 0));
  }
  return b.constant(std::move(literal));
}

Instruction* Draft::index(DType type, int64_t size) {
  Instruction* have = any([&](const Shape& s) { return s.type == type && s.dims.empty(); });
  if (have && random.chance(0.5)) return have;
  if (entry_ && random.chance(0.5)) return keep(b.parameter(Shape::scalar(type)));
  int64_t value = random.chance(0.2) ? random.between(-3, size + 3) : random.between(0, size);
  if (!is_signed(type)) value = std::max<int64_t>(value, 0);
  Literal literal{Shape::scalar(type)};
  literal.set_int(0, std::min<int64_t>(value, 100));
  return b.constant(std::move(literal));
}

Instruction* Draft::limited(Instruction* x, double limit) {
  DType type = x->shape.type;
  return b.op(Opcode::kClamp, {b.constant(type, -limit), x, b.constant(type, limit)});
}

Instruction* Draft::small(Instruction* x, double limit) {
  Instruction* scaled = b.binary(Opcode::kMultiply, x, splat(x->shape.type, 4, x->shape.dims));
  return b.unary(Opcode::kRoundEven, limited(scaled, limit));
}

Computation* combiner(Draft& s, Opcode op, DType type) {
  Builder b(s.draw.module, std::string(op_name(op)));
  Instruction* x = b.parameter(Shape::scalar(type));
  Instruction* y = b.parameter(Shape::scalar(type));
  return b.build(b.op(op, s.random.chance(0.8) ? Builder::Values{x, y} : Builder::Values{y, x}));
}

Computation* function(Draft& s, std::string_view name, const std::vector<Instruction*>& arguments, int steps,
                      bool tuple) {
  ++s.draw.depth;
  Draft inner(s.draw, name);
  for (Instruction* a : arguments) {
    Instruction* p = inner.b.parameter(a->shape);
    p->shape = a->shape;
    inner.keep(p);
  }
  for (int i = 0; i < steps; ++i) inner.step();
  --s.draw.depth;
  if (!tuple) return inner.b.build(inner.any());
  std::vector<Instruction*> results;
  for (int64_t i = s.random.between(1, 3); i > 0; --i) results.push_back(inner.any());
  return inner.b.build(inner.b.tuple(results));
}

}  // namespace hlojit::tools::fuzz

// Computations that call others: calls, fusions, maps, loops whose state is swapped and kept, branches.
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

constexpr int kDeepest = 2;

std::vector<Instruction*> arguments(Draft& s, int64_t least, int64_t most) {
  std::vector<Instruction*> chosen;
  for (int64_t n = s.random.between(least, most); n > 0; --n) chosen.push_back(s.any());
  return chosen;
}

// Ops that foreign fusions hold: anything that is not control.
Instruction* fusion(Draft& s) {
  if (s.draw.depth >= kDeepest) return nullptr;
  std::vector<Instruction*> in = arguments(s, 1, 3);
  Attributes a;
  a.fusion_kind = static_cast<FusionKind>(s.random.below(3));
  Computation* c = function(s, "fused", in, static_cast<int>(s.random.between(1, 5)), s.random.chance(0.3));
  return s.b.op(kFusion, c->root()->shape, in, std::move(a), {c});
}

Instruction* call(Draft& s) {
  if (s.draw.depth >= kDeepest) return nullptr;
  std::vector<Instruction*> in = arguments(s, 0, 3);
  if (in.empty()) in.push_back(s.any());
  Computation* c = function(s, "called", in, static_cast<int>(s.random.between(0, 5)), s.random.chance(0.4));
  if (s.random.chance(0.2)) s.keep(s.b.call(c, in));
  return s.b.call(c, in);
}

Instruction* map(Draft& s) {
  Instruction* x = s.any();
  if (is_complex(x->shape.type)) return nullptr;
  Instruction* y = s.of(x->shape);
  Builder b(s.draw.module, "mapped");
  Instruction* p = b.parameter(Shape::scalar(x->shape.type));
  Instruction* q = b.parameter(Shape::scalar(x->shape.type));
  DType t = x->shape.type;
  if (is_pred(t))
    b.build(b.op(kXor, {p, q}));
  else if (s.random.chance(0.5))
    b.build(b.op(kAdd, {b.op(kMultiply, {p, q}), b.constant(t, 3)}));
  else
    b.build(b.op(kSelect, {b.compare(Direction::kLt, p, q), p, q}));
  Attributes a;
  for (int64_t d = 0; d < x->shape.rank(); ++d) a.dimensions.push_back(d);
  a.has_dimensions = true;
  return s.b.op(kMap, {x, y}, std::move(a), {b.computation()});
}

// What becomes of one part of a loop's state: kept, swapped with its like, or computed.
Instruction* next_state(Draft& s, size_t i, const std::vector<Instruction*>& state) {
  Instruction* x = state[i];
  switch (s.random.below(5)) {
    case 0: return x;
    case 1: {
      std::vector<Instruction*> like;
      for (Instruction* other : state) {
        if (other->shape == x->shape) like.push_back(other);
      }
      return s.random.pick(like);
    }
    case 2: {
      if (x->shape.rank() == 0 || x->shape.element_count() == 0) return x;
      Ints one(x->shape.dims.size(), 1);
      std::vector<Instruction*> at;
      for (int64_t size : x->shape.dims) at.push_back(s.random.chance(0.7) ? state[0] : s.index(DType::kS32, size));
      return s.b.dynamic_update_slice(x, s.of(x->shape.type, one), at);
    }
    default: {
      Instruction* made = s.any([&](const Shape& v) { return v.type == x->shape.type && v.dims == x->shape.dims; });
      if (is_float(x->shape.type)) return s.limited(made, 8);
      return made;
    }
  }
}

Instruction* while_loop(Draft& s) {
  if (s.draw.depth >= kDeepest) return nullptr;
  std::vector<Instruction*> init = {s.b.constant(DType::kS32, static_cast<double>(s.random.between(0, 1)))};
  for (int64_t n = s.random.between(1, 3); n > 0; --n) init.push_back(s.any());
  if (s.random.chance(0.4)) init.push_back(s.of(init.back()->shape));
  bool nested = s.random.chance(0.2);
  Instruction* start = s.b.tuple(init);
  Shape shape = start->shape;
  if (nested) {
    shape = Shape::tuple({start->shape, init[1]->shape});
    start = s.b.tuple({start, init[1]});
  }
  ++s.draw.depth;
  auto open = [&](Draft& inner) {
    Instruction* p = inner.b.parameter(shape);
    std::vector<Instruction*> state;
    Instruction* flat = nested ? inner.b.get_tuple_element(p, 0) : p;
    for (int64_t i = 0; i < std::ssize(init); ++i) state.push_back(inner.b.get_tuple_element(flat, i));
    if (nested) state.push_back(inner.b.get_tuple_element(p, 1));
    for (Instruction* v : state) inner.keep(v);
    return state;
  };
  Draft condition(s.draw, "condition");
  Instruction* counter = open(condition)[0];
  Instruction* limit = condition.b.constant(DType::kS32, static_cast<double>(s.random.between(0, 5)));
  condition.b.build(condition.b.compare(Direction::kLt, counter, limit));
  Draft body(s.draw, "body");
  std::vector<Instruction*> state = open(body), next;
  for (int64_t n = s.random.between(0, 4); n > 0; --n) body.step();
  next.push_back(body.b.op(kAdd, {state[0], body.b.constant(DType::kS32, 1)}));
  for (size_t i = 1; i < state.size(); ++i) next.push_back(next_state(body, i, state));
  --s.draw.depth;
  if (nested) {
    Instruction* last = next.back();
    next.pop_back();
    body.b.build(body.b.tuple({body.b.tuple(next), last}));
  } else {
    body.b.build(body.b.tuple(next));
  }
  return s.b.while_loop(condition.b.computation(), body.b.computation(), start);
}

// Branches that take a tuple each and give results of one shape.
Instruction* conditional(Draft& s) {
  if (s.draw.depth >= kDeepest) return nullptr;
  bool two = s.random.chance(0.5);
  Instruction* which = two ? s.of(DType::kPred, {}) : s.index(DType::kS32, 3);
  std::vector<Instruction*> in;
  std::vector<Computation*> branches;
  std::vector<Shape> results;
  for (int64_t n = s.random.between(1, 2); n > 0; --n) results.push_back(s.any()->shape);
  bool tuple = results.size() > 1 || s.random.chance(0.3);
  ++s.draw.depth;
  for (int64_t n = two ? 2 : s.random.between(1, 4); n > 0; --n) {
    bool bare = s.random.chance(0.4);
    Instruction* argument = bare ? s.any() : s.b.tuple(arguments(s, 1, 3));
    in.push_back(argument);
    Draft branch(s.draw, "branch");
    Instruction* p = branch.b.parameter(argument->shape);
    branch.keep(p);
    for (int64_t k = s.random.between(0, 4); k > 0; --k) branch.step();
    std::vector<Instruction*> out;
    for (const Shape& shape : results) out.push_back(branch.of(shape));
    branches.push_back(branch.b.build(tuple ? branch.b.tuple(out) : out[0]));
  }
  --s.draw.depth;
  return s.b.conditional(which, branches, in);
}

// A constant that is a tuple, maybe of tuples.
Instruction* constant(Draft& s) {
  auto leaf = [&](auto&& self, int depth) -> Literal {
    if (depth > 0) {
      std::vector<Literal> elements;
      for (int64_t n = s.random.between(1, 3); n > 0; --n) {
        elements.push_back(self(self, s.random.chance(0.3) ? depth - 1 : 0));
      }
      return Literal::tuple(std::move(elements));
    }
    Literal l(Shape::array(s.type(), Ints(static_cast<size_t>(s.random.below(3)), s.random.between(1, 3))));
    for (int64_t k = 0; k < l.shape().element_count() && !is_complex(l.shape().type); ++k) {
      l.set_double(k, static_cast<double>(s.random.below(2)));
    }
    return l;
  };
  Instruction* made = s.b.constant(leaf(leaf, s.random.chance(0.3) ? 2 : 1));
  return s.random.chance(0.3) ? s.b.tuple({made, s.any()}) : made;
}

Instruction* barrier(Draft& s) {
  if (s.random.chance(0.5)) return s.b.unary(kOptBarrier, s.any());
  return s.b.unary(kOptBarrier, s.b.tuple(arguments(s, 1, 3)));
}

}  // namespace

Family control_family() {
  return {"control",
          {{fusion, 4}, {call, 2}, {map, 1}, {while_loop, 3}, {conditional, 2}, {barrier, 1}, {constant, 1}},
          0.5};
}

}  // namespace hlojit::tools::fuzz

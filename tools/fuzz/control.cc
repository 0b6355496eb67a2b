// Computations that call others: calls, fusions, loops whose state is swapped and kept, branches.
#include <utility>

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

// One of ours, as it is printed, but its tuple says layouts that are not the results'.
Instruction* kept_fusion(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  DType t = s.type();
  if (is_pred(t)) return nullptr;
  const Shape plain = Shape::array(t, s.shape(2, 3));  // what it was planned for
  Instruction* x = s.b.parameter(plain);
  Builder b(s.draw.module, "kept");
  Instruction* p = b.parameter(plain);
  Instruction* root = b.tuple({b.unary(kNegate, p), b.op(kMultiply, {p, p})});
  for (Shape& e : root->shape.elements) e.layout = draw_layout(e, s.random, 0.5);
  Computation* c = b.build(root);
  s.draw.pinned.insert({x, p, root, root->operand(0), root->operand(1)});
  Attributes a;
  a.fusion_kind = FusionKind::kLoop;
  a.backend_config = R"({"hlojit":{"kernel":"nest"}})";
  return s.b.op(kFusion, root->shape, {x}, std::move(a), {c});
}

// One of ours that reads or writes a part where a vector of indices says.
Instruction* kept_part(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  const DType t = s.type(), index = s.random.pick(std::vector{DType::kS32, DType::kS64, DType::kU8});
  const Shape whole = Shape::array(t, s.shape(1, 3));
  if (!s.fits(whole.dims)) return nullptr;
  Shape part = whole;
  Builder::Values starts;
  for (int64_t& n : part.dims) {
    starts.push_back(s.b.reshape(s.index(index, n), {1}));
    n = s.random.between(0, n);
  }
  const Builder::Values in = {s.of(whole), s.b.concat_in_dim(starts, 0), s.of(part)};
  Builder b(s.draw.module, "kept");
  Instruction* x = b.parameter(whole);
  Instruction* at = b.parameter(in[1]->shape);
  Instruction* y = b.parameter(part);
  if (s.random.chance(0.5)) {
    Attributes sizes;
    sizes.dynamic_slice_sizes = part.dims;
    x = b.op(kDynamicSlice, {x, at}, std::move(sizes));
    if (s.random.chance(0.7)) x = is_pred(t) ? b.binary(kXor, x, y) : b.binary(kSubtract, x, y);
  } else {
    if (s.random.chance(0.5)) {  // what stands in a part of the whole comes in
      Instruction* first = b.slice(x, Ints(part.dims.size(), 0), part.dims);
      y = is_pred(t) ? b.binary(kXor, y, first) : b.binary(kAdd, y, first);
    }
    if (s.random.chance(0.3)) at = b.constant(Literal(at->shape));
    x = b.op(kDynamicUpdateSlice, {x, y, at});
    if (s.random.chance(0.3)) x = is_pred(t) ? b.unary(kNot, x) : b.binary(kAdd, x, x);
  }
  Computation* c = b.build(x);
  for (const auto& i : c->instructions()) s.draw.pinned.insert(i.get());
  Attributes a;
  a.fusion_kind = FusionKind::kLoop;
  a.backend_config = R"({"hlojit":{"kernel":"nest"}})";
  return s.b.op(kFusion, x->shape, in, std::move(a), {c});
}

// A value of any shape, of what is at hand; its first array is `first`, if there is one.
Instruction* argument(Draft& s, const Shape& shape, Instruction* first) {
  if (!shape.is_tuple()) return first ? first : s.of(shape);
  Builder::Values elements;
  for (const Shape& e : shape.elements) elements.push_back(argument(s, e, elements.empty() ? first : nullptr));
  return s.b.tuple(elements);
}

void remember(Draft& s, std::vector<Computation*> computations) {
  s.draw.called.push_back({std::move(computations), s.draw.depth, s.draw.may_meet});
}

// Calls what was called before: from elsewhere, and a loop's body maybe without its loop.
Instruction* again(Draft& s) {
  std::vector<std::vector<Computation*>> fit;
  for (const Draw::Called& c : s.draw.called) {
    if (s.draw.depth <= c.depth && s.draw.may_meet == c.met) fit.push_back(c.computations);
  }
  if (fit.empty()) return nullptr;
  std::vector<Computation*> computations = s.random.pick(fit);
  Instruction* counter = s.b.constant(DType::kS32, static_cast<double>(s.random.between(0, 1)));
  bool loops = computations.size() == 2;
  Builder::Values in;
  for (const Instruction* p : computations.back()->parameters()) {
    in.push_back(argument(s, p->shape, loops ? counter : nullptr));
  }
  if (!loops || s.random.chance(0.3)) return s.b.call(computations.back(), in);
  return s.b.while_loop(computations[0], computations[1], in[0]);
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

}  // namespace

Instruction* calling_op(Draft& s) {
  if (s.draw.depth >= kDeepest) return nullptr;
  std::vector<Instruction*> in = arguments(s, 0, 3);
  if (in.empty()) in.push_back(s.any());
  Computation* c = function(s, "called", in, static_cast<int>(s.random.between(0, 5)), s.random.chance(0.4));
  remember(s, {c});
  if (s.random.chance(0.2)) s.keep(s.b.call(c, in));
  return s.b.call(c, in);
}

namespace {

// How a loop's state is put together: a counter and arrays, in a tuple; that tuple beside one more array; or the
// counter alone.
enum class State { kTuple, kNested, kBare };

struct Loop {
  State form;
  std::vector<Instruction*> init;

  Instruction* assembled(Builder& b, Builder::Values parts) const {
    if (form == State::kBare) return parts[0];
    if (form == State::kTuple) return b.tuple(parts);
    Instruction* last = parts.back();
    parts.pop_back();
    return b.tuple({b.tuple(parts), last});
  }
  // The parameter of the condition and of the body, taken apart; all parts are at hand.
  std::vector<Instruction*> open(Draft& inner, const Shape& shape) const {
    Instruction* p = inner.b.parameter(shape);
    std::vector<Instruction*> state;
    if (form == State::kBare) state = {p};
    if (form == State::kTuple) state = elements(inner, p);
    if (form == State::kNested) {
      state = elements(inner, inner.b.get_tuple_element(p, 0));
      state.push_back(inner.b.get_tuple_element(p, 1));
    }
    for (Instruction* v : state) inner.keep(v);
    return state;
  }
  static std::vector<Instruction*> elements(Draft& inner, Instruction* tuple) {
    std::vector<Instruction*> all;
    for (int64_t i = 0; i < std::ssize(tuple->shape.elements); ++i) all.push_back(inner.b.get_tuple_element(tuple, i));
    return all;
  }
};

Loop draw_loop(Draft& s) {
  Loop loop{State::kTuple, {s.b.constant(DType::kS32, static_cast<double>(s.random.between(0, 1)))}};
  if (s.random.chance(0.06)) loop.form = State::kBare;
  if (loop.form == State::kBare) return loop;
  for (int64_t n = s.random.between(1, 3); n > 0; --n) loop.init.push_back(s.any());
  if (s.random.chance(0.4)) loop.init.push_back(s.of(loop.init.back()->shape));
  if (s.random.chance(0.2)) {
    loop.form = State::kNested;
    loop.init.push_back(loop.init[1]);
  }
  return loop;
}

// A few rounds, or fewer if what else is in the state says so: then devices would part.
Computation* condition(Draft& s, const Loop& loop, const Shape& shape) {
  Draft f(s.draw, "condition");
  Instruction* counter = loop.open(f, shape)[0];
  Instruction* limit = f.b.constant(DType::kS32, static_cast<double>(s.random.between(0, 5)));
  bool asks = s.draw.devices == 1 && s.random.chance(0.3);
  if (asks) f.step();
  Instruction* more = f.b.compare(Direction::kLt, counter, limit);
  return f.b.build(asks ? f.b.op(kAnd, {more, f.of(DType::kPred, {})}) : more);
}

Computation* body(Draft& s, const Loop& loop, const Shape& shape) {
  Draft f(s.draw, "body");
  std::vector<Instruction*> state = loop.open(f, shape), next;
  for (int64_t n = s.random.between(0, 4); n > 0; --n) f.step();
  next.push_back(f.b.op(kAdd, {state[0], f.b.constant(DType::kS32, 1)}));
  for (size_t i = 1; i < state.size(); ++i) next.push_back(next_state(f, i, state));
  return f.b.build(loop.assembled(f.b, next));
}

}  // namespace

Instruction* looping_op(Draft& s) {
  if (s.draw.depth >= kDeepest) return nullptr;
  Loop loop = draw_loop(s);
  Instruction* start = loop.assembled(s.b, loop.init);
  ++s.draw.depth;
  Computation* go_on = condition(s, loop, start->shape);
  Computation* step = body(s, loop, start->shape);
  --s.draw.depth;
  remember(s, {go_on, step});
  return s.b.while_loop(go_on, step, start);
}

// Branches that take a tuple each and give results of one shape.
Instruction* branching_op(Draft& s) {
  if (s.draw.depth >= kDeepest) return nullptr;
  bool two = s.random.chance(0.5);
  Instruction* which = two ? s.of(DType::kPred, {}) : s.index(DType::kS32, 3);
  std::vector<Instruction*> in;
  std::vector<Computation*> branches;
  std::vector<Shape> results;
  for (int64_t n = s.random.between(1, 2); n > 0; --n) results.push_back(s.any()->shape);
  bool tuple = results.size() > 1 || s.random.chance(0.3);
  ++s.draw.depth;
  bool met = std::exchange(s.draw.may_meet, false);
  for (int64_t n = two ? 2 : s.random.between(1, 4); n > 0; --n) {
    if (!branches.empty() && s.random.chance(0.1)) {
      branches.push_back(branches.back());
      in.push_back(in.back());
      continue;
    }
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
  s.draw.may_meet = met;
  --s.draw.depth;
  return s.b.conditional(which, branches, in);
}

namespace {

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

Family kept_part_family() { return {"kept parts", {{kept_part, 6}}, 0.03}; }
Family kept_fusion_family() { return {"kept fusions", {{kept_fusion, 20}}, 0.03}; }
Family control_family() {
  return {"control",
          {{fusion, 4}, {calling_op, 2}, {looping_op, 3}, {branching_op, 2}, {again, 2}, {barrier, 1}, {constant, 1}},
          0.5};
}

}  // namespace hlojit::tools::fuzz

// Computations that others apply to elements (reduce, map, scatter, windows, comparisons), being more than one op:
// arithmetic on scalars, choices among branches, calls and short loops. The families draw from them; only what takes
// such computations first of all stands here.
//
// What they compute is exact whatever is contracted: nothing is multiplied but by a power of two.
#include <utility>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* logic(Draft& f, Instruction* x, Instruction* y) {
  if (f.random.chance(0.2)) return f.b.unary(kNot, x);
  return f.b.op(f.random.pick(std::vector{kAnd, kOr, kXor}), {x, y});
}

Instruction* compared(Draft& f) {
  Instruction* x = f.any([](const Shape& v) { return !is_complex(v.type) && !is_pred(v.type); });
  if (!x) return nullptr;
  using enum Direction;
  return f.b.compare(f.random.pick(std::vector{kLt, kLe, kGt, kGe, kEq, kNe}), x, f.of(x->shape));
}

Instruction* arithmetic(Draft& f) {
  Instruction* x = f.any();
  Instruction* y = f.of(x->shape);
  DType t = x->shape.type;
  if (is_pred(t)) return logic(f, x, y);
  switch (f.random.below(6)) {
    case 0: return f.b.op(kMultiply, {x, f.b.constant(t, is_float(t) && f.random.chance(0.5) ? -1 : 1)});
    case 1: return f.b.op(kAdd, {x, y});
    case 2: return f.b.op(kSubtract, {x, y});
    case 3: return f.b.op(kSelect, {f.of(DType::kPred, {}), x, y});
    case 4: return is_integral(t) ? logic(f, x, y) : f.b.unary(kNegate, x);
    default: return is_complex(t) ? nullptr : f.b.op(f.random.chance(0.5) ? kMaximum : kMinimum, {x, y});
  }
}

// Draws with other ops than the module's, until it goes.
class Instead {
 public:
  Instead(Draw& draw, std::vector<Op> ops) : draw_(draw), kept_(std::exchange(draw.ops, std::move(ops))) {}
  ~Instead() { draw_.ops = std::move(kept_); }
  Instead(const Instead&) = delete;
  Instead& operator=(const Instead&) = delete;

 private:
  Draw& draw_;
  std::vector<Op> kept_;
};

std::vector<Op> scalar_ops(bool loops) {
  std::vector<Op> ops = {arithmetic, arithmetic, arithmetic, compared, branching_op, branching_op, calling_op};
  if (loops) ops.insert(ops.end(), {looping_op, looping_op});
  return ops;
}

}  // namespace

Computation* applied(Draft& s, const std::vector<DType>& parameters, const std::vector<DType>& results, Loops loops) {
  Instead scalars(s.draw, scalar_ops(loops == Loops::kMaybe));
  ++s.draw.depth;
  Draft f(s.draw, "applied");
  for (DType t : parameters) f.keep(f.b.parameter(Shape::scalar(t)));
  for (int64_t n = s.random.between(1, 5); n > 0; --n) f.step();
  if (loops == Loops::kOne) f.keep(looping_op(f));
  std::vector<Instruction*> chosen;
  for (DType t : results) {
    Instruction* young = f.values.back();
    chosen.push_back(young->shape.type == t && f.random.chance(0.6) ? young : f.of(t, {}));
  }
  --s.draw.depth;
  return f.b.build(chosen.size() == 1 ? chosen[0] : f.b.tuple(chosen));
}

Computation* applied_rule(Draft& s, const std::vector<DType>& types, double loops) {
  std::vector<DType> twice = types;
  twice.insert(twice.end(), types.begin(), types.end());
  return applied(s, twice, types, s.random.chance(loops) ? Loops::kMaybe : Loops::kNone);
}

namespace {

// One loop an element is as much as the evaluator should be asked for.
bool few(const Shape& s) { return s.element_count() <= 1500; }

Instruction* applied_reduce(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && few(v); });
  if (!x) return nullptr;
  Builder::Values arrays = {x}, starts;
  if (s.random.chance(0.4)) arrays.push_back(s.of(s.type(), x->shape.dims));
  std::vector<DType> types;
  for (Instruction* a : arrays) {
    types.push_back(a->shape.type);
    starts.push_back(s.of(types.back(), {}));
  }
  Ints dims = s.some(x->shape.rank());
  if (dims.empty()) dims = {s.random.below(x->shape.rank())};
  return s.b.reduce(arrays, starts, applied_rule(s, types, 0.4), dims);
}

Instruction* applied_map(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return few(v); });
  if (!x) return nullptr;
  Builder::Values in = {x};
  std::vector<DType> types = {x->shape.type};
  for (int64_t n = s.random.between(0, 2); n > 0; --n) {
    in.push_back(s.of(s.type(), x->shape.dims));
    types.push_back(in.back()->shape.type);
  }
  Attributes a;
  for (int64_t d = 0; d < x->shape.rank(); ++d) a.dimensions.push_back(d);
  a.has_dimensions = true;
  Computation* f = applied(s, types, {s.type()}, s.random.chance(0.5) ? Loops::kMaybe : Loops::kNone);
  Instruction* made = s.b.op(kMap, in, a, {f});
  if (s.random.chance(0.5)) return made;
  s.keep(made);  // one computation, two that apply it
  for (Instruction*& x : in) x = s.random.chance(0.5) ? s.of(x->shape) : s.fresh(x->shape.type, x->shape.dims);
  return s.b.op(kMap, in, a, {f});
}

// One computation that loops, applied in several places to what the one before gave: where it is written out, what it
// calls must not be shared.
Instruction* applied_twice(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && v.element_count() <= 300; });
  if (!x || s.draw.depth > 0) return nullptr;
  DType t = x->shape.type;
  Computation* f = applied(s, {t, t}, {t}, Loops::kOne);
  Attributes a;
  for (int64_t d = 0; d < x->shape.rank(); ++d) a.dimensions.push_back(d);
  a.has_dimensions = true;
  Instruction* last = s.b.op(kMap, {x, s.of(x->shape)}, a, {f});
  for (int64_t n = s.random.between(1, 2); n > 0; --n) {
    s.keep(last);
    last = s.b.op(kMap, {last, s.random.chance(0.5) ? x : s.of(x->shape)}, a, {f});
  }
  if (s.random.chance(0.6)) return last;
  s.keep(last);
  return s.b.reduce({last}, {s.of(t, {})}, f, {s.random.below(x->shape.rank())});
}

// Computations with loops where kernels apply none: each element for itself.
Instruction* applied_in_turn(Draft& s) {
  if (s.draw.depth > 0) return nullptr;
  Ints sizes = {s.random.between(1, 9)};
  if (s.random.chance(0.6)) sizes.push_back(s.random.between(1, 7));
  Instruction* x = s.of(s.type(), sizes);
  const bool kept = std::exchange(s.draw.rules_loop, true);
  using OfArray = Instruction* (*)(Draft&, Instruction*);
  const OfArray op =
      s.random.pick(std::vector<OfArray>{windows_of, windows_of, picked_of, scatter_into, scatter_into, sort_of});
  Instruction* made = op(s, x);
  s.draw.rules_loop = kept;
  return made;
}

}  // namespace

Family applied_in_turn_family() { return {"loops in windows and orders", {{applied_in_turn, 20}}, 0.03}; }
Family applied_twice_family() { return {"computations applied twice", {{applied_twice, 20}}, 0.05}; }
Family applied_family() { return {"applied computations", {{applied_reduce, 3}, {applied_map, 2}}, 0.08}; }

}  // namespace hlojit::tools::fuzz

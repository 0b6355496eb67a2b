// Ops that order elements: sort by comparisons of all kinds, topk.
#include <limits>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

// Zeros are one, and so are all that are no numbers: as JAX compares.
Instruction* canonical(Builder& b, Instruction* v) {
  Instruction* zero = b.constant(v->shape.type, 0);
  Instruction* nan = b.constant(v->shape.type, std::numeric_limits<double>::quiet_NaN());
  Instruction* number = b.select(b.compare(Direction::kEq, v, zero), zero, v);
  return b.select(b.compare(Direction::kNe, v, v), nan, number);
}

// Whether p stands before q, by one key: itself, a part of it or what is computed from it.
Instruction* before(Draft& s, Builder& b, Instruction* p, Instruction* q) {
  DType t = p->shape.type;
  Direction d = s.random.chance(0.6) ? Direction::kLt : Direction::kGt;
  if (s.random.chance(s.draw.rules_loop ? 1 : 0.15)) {
    t = is_complex(t) ? DType::kS32 : s.random.pick(std::vector{t, DType::kS32});
    Computation* key =
        applied(s, {p->shape.type}, {t}, s.random.chance(s.draw.rules_loop ? 1 : 0.02) ? Loops::kMaybe : Loops::kNone);
    p = b.call(key, {p}), q = b.call(key, {q});
  }
  if (is_complex(t)) {
    p = b.unary(kReal, p), q = b.unary(kReal, q);
    return b.compare(d, p, q, CompareType::kTotalOrder);
  }
  if (is_float(t)) {
    if (s.random.chance(0.2))
      p = b.unary(kAbs, p), q = b.unary(kAbs, q);
    else if (dtype_bits(t) >= 16 && s.random.chance(0.4))
      p = canonical(b, p), q = canonical(b, q);
    return b.compare(d, p, q, CompareType::kTotalOrder);
  }
  if (is_integral(t) && s.random.chance(0.25)) {
    Instruction* mask = b.constant(t, 1);
    p = b.op(kAnd, {p, mask}), q = b.op(kAnd, {q, mask});
  }
  return s.random.chance(0.8) ? b.compare(d, p, q)
                              : b.compare(d == Direction::kLt ? Direction::kGt : Direction::kLt, q, p);
}

}  // namespace

// By the first operand, then maybe by the second among equals.
Instruction* sort_of(Draft& s, Instruction* x) {
  std::vector<Instruction*> in = {x};
  for (int64_t n = s.random.between(0, 2); n > 0; --n) in.push_back(s.of(s.type(), x->shape.dims));
  Builder b(s.draw.module, "before");
  std::vector<Instruction*> p;
  for (Instruction* v : in) {
    p.push_back(b.parameter(Shape::scalar(v->shape.type)));
    p.push_back(b.parameter(Shape::scalar(v->shape.type)));
  }
  Instruction* first = before(s, b, p[0], p[1]);
  if (in.size() > 1 && s.random.chance(0.4) && !is_complex(x->shape.type)) {
    bool total = is_float(x->shape.type);
    Instruction* equal =
        b.compare(Direction::kEq, p[0], p[1], total ? CompareType::kTotalOrder : CompareType::kDefault);
    Direction d = s.random.chance(0.5) ? Direction::kLt : Direction::kGt;
    Instruction* less = b.compare(d, p[0], p[1], total ? CompareType::kTotalOrder : CompareType::kDefault);
    Instruction* next = before(s, b, p[2], p[3]);
    b.build(s.random.chance(0.5) ? b.op(kSelect, {equal, next, less}) : b.op(kOr, {less, b.op(kAnd, {equal, next})}));
  } else {
    b.build(first);
  }
  return s.b.sort(in, b.computation(), s.random.below(x->shape.rank()), true);
}

namespace {

Instruction* sort(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1; });
  return x ? sort_of(s, x) : nullptr;
}

// Many short rows, of equal numbers, zeros of both signs and what is no number.
Instruction* short_sort(Draft& s) {
  const Ints sizes = {s.random.between(2, 12), s.random.between(16, 40)};
  const DType t = s.random.chance(0.5) ? DType::kF32 : s.type();
  Instruction* x = s.fresh(t, sizes);
  if (is_float(t) && dtype_bits(t) >= 16) {
    x = s.b.unary(kRoundEven, x);
    Instruction* none = s.b.unary(kRoundEven, s.fresh(t, sizes));
    auto everywhere = [&](double v) { return s.b.broadcast(s.b.constant(t, v), sizes); };
    none = s.b.compare(Direction::kEq, none, everywhere(0));
    x = s.b.select(none, everywhere(std::numeric_limits<double>::quiet_NaN()), x);
  }
  return sort_of(s, x);
}

Instruction* top_k(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && !is_complex(v.type); });
  if (!x) return nullptr;
  Attributes a;
  a.k = s.random.between(0, x->shape.dims.back());
  a.largest = s.random.chance(0.7);
  return s.b.op(kTopK, {x}, std::move(a));
}

// The best of many short rows, equal elements among them.
Instruction* few_best(Draft& s) {
  const DType t = s.type();
  if (is_complex(t)) return nullptr;
  const int64_t n = s.random.pick(Ints{1, 2, 7, 8, 33, 64});
  Instruction* x = s.of(t, {s.random.between(12, 40), n});
  Attributes a;
  a.k = s.random.between(1, std::min<int64_t>(n, 5));
  a.largest = s.random.chance(0.7);
  return s.b.op(kTopK, {is_float(t) && s.random.chance(0.5) ? s.small(x, 8) : x}, std::move(a));
}

// Rows in order of which the first elements alone are read, maybe with the places where they stood.
Instruction* first_in_order(Draft& s) {
  const DType t = s.type();
  const int64_t n = s.random.pick(Ints{40, 64, 65, 130, 257, 300}), rows = s.random.between(0, 5);
  if (is_complex(t)) return nullptr;
  const Ints sizes = rows == 0 ? Ints{n} : Ints{rows, n};
  const int64_t dim = std::ssize(sizes) - 1;
  Instruction* x = s.of(t, sizes);
  Builder::Values in = {is_float(t) && s.random.chance(0.5) ? s.small(x, 8) : x};
  if (s.random.chance(0.6)) in.push_back(s.b.iota(Shape::array(DType::kS32, sizes), dim));
  Builder b(s.draw.module, "before");
  Instruction* p = b.parameter(Shape::scalar(t));
  Instruction* q = b.parameter(Shape::scalar(t));
  for (int k = 0; in.size() > 1 && k < 2; ++k) b.parameter(Shape::scalar(DType::kS32));
  b.build(b.compare(s.random.chance(0.5) ? Direction::kLt : Direction::kGt, p, q,
                    is_float(t) ? CompareType::kTotalOrder : CompareType::kDefault));
  Instruction* sorted = s.b.sort(in, b.computation(), dim, true);
  auto first = [&](Instruction* all) {
    return s.b.slice_in_dim(all, 0, s.random.between(1, s.random.chance(0.8) ? n / 16 : n), 1, dim);
  };
  if (in.size() == 1) return first(sorted);
  return s.b.tuple({first(s.b.get_tuple_element(sorted, 0)), first(s.b.get_tuple_element(sorted, 1))});
}

// XLA's own custom call, with an order, which says which are the best, or with none.
Instruction* top_k_custom_call(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && !is_complex(v.type); });
  if (!x) return nullptr;
  const DType t = x->shape.type;
  Ints best = x->shape.dims;
  best.back() = s.random.between(0, best.back());
  Attributes a;
  a.custom_call_target = "TopK";
  Instruction* call =
      s.b.op(kCustomCall, Shape::tuple({Shape::array(t, best), Shape::array(DType::kS32, best)}), {x}, std::move(a));
  if (s.random.chance(0.2)) return call;
  Builder b(s.draw.module, "better");
  Builder::Values p = {b.parameter(Shape::scalar(t)), b.parameter(Shape::scalar(t))};
  for (int k = 0; k < 2; ++k) b.parameter(Shape::scalar(DType::kS32));
  b.build(b.compare(s.random.chance(0.5) ? Direction::kLt : Direction::kGt, p[0], p[1],
                    is_float(t) ? CompareType::kTotalOrder : CompareType::kDefault));
  call->called = {b.computation()};
  return call;
}

}  // namespace

Family top_k_call_family() { return {"calls for the best", {{top_k_custom_call, 20}}, 0.02}; }
Family first_family() { return {"first in order", {{first_in_order, 20}}, 0.04}; }
Family order_family() { return {"order", {{sort, 4}, {short_sort, 3}, {top_k, 2}, {few_best, 2}}, 0.08}; }

}  // namespace hlojit::tools::fuzz

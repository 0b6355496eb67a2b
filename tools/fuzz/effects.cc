// Ops that hand on what they are given: tokens, domains, annotations, asynchronous pairs.
#include "compiler/ir/async.h"
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* ordered(Draft& s) {
  Instruction* token = s.b.op(kAfterAll, s.random.chance(0.5) ? Builder::Values{} : Builder::Values{s.any()});
  if (s.random.chance(0.3)) token = s.b.op(kAfterAll, {token, token});
  return s.b.op(kAddDependency, {s.any(), token});
}

Instruction* domain(Draft& s) {
  Attributes a;
  a.other.emplace_back("domain", "{kind=\"sharding\", entry={replicated}, exit={maximal device=0}}");
  return s.b.op(kDomain, {s.any()}, std::move(a));
}

Instruction* annotation(Draft& s) {
  Instruction* x = s.any();
  Attributes a;
  static const std::vector<std::string> kTargets = {
      "Sharding",         "SPMDFullToShardShape", "SPMDShardToFullShape", "ShardBarrierFrom",          "ShardBarrierTo",
      "LayoutConstraint", "MoveToHost",           "MoveToDevice",         "xla.sdy.FuncResultSharding"};
  a.custom_call_target = s.random.pick(kTargets);
  a.sharding = std::string("{replicated}");
  return s.b.op(kCustomCall, x->shape, {x}, std::move(a));
}

// Two values said to lie alike among devices, by annotations that give nothing.
Instruction* alike(Draft& s) {
  Instruction *x = s.any(), *y = s.any();
  Attributes a;
  a.custom_call_target = "xla.sdy.ShardingGroup";
  a.custom_call_has_side_effect = true;
  for (Instruction* v : {x, y}) s.b.op(kCustomCall, Shape::tuple({}), {v}, a);
  return y;
}

Instruction* copy_pair(Draft& s) { return s.b.op(kCopyDone, {s.b.op(kCopyStart, {s.any()})}); }

// A computation started, maybe asked how it is getting on, and awaited.
Instruction* started(Draft& s) {
  Instruction* x = s.any();
  Instruction* y = s.of(x->shape);
  Computation* c = function(s, "started", {x, y}, static_cast<int>(s.random.between(1, 3)), false);
  Shape state = Shape::tuple({Shape::tuple({x->shape, y->shape}), c->root()->shape, Shape::scalar(DType::kS32)});
  Instruction* at = s.b.op(kAsyncStart, state, {x, y}, {}, {c});
  if (s.random.chance(0.4)) at = s.b.op(kAsyncUpdate, state, {at}, {}, {});
  return s.b.op(kAsyncDone, c->root()->shape, {at});
}

// The same in sugar: negate-start.
Instruction* started_op(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return is_float(v.type); });
  if (!x) return nullptr;
  Attributes a;
  a.other.emplace_back(std::string(kWrappedOp), s.random.pick(std::vector<std::string>{"negate", "abs", "floor"}));
  Instruction* start = s.b.op(kAsyncStart, Shape::tuple({Shape::tuple({x->shape}), x->shape}), {x}, a);
  return s.b.op(kAsyncDone, x->shape, {start}, a);
}

Instruction* size_of(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1; });
  if (!x) return nullptr;
  Attributes a;
  a.dimensions = {s.random.below(x->shape.rank())};
  a.has_dimensions = true;
  return s.b.op(kGetDimensionSize, {x}, std::move(a));
}

}  // namespace

Family effect_family() {
  return {"tokens and pairs",
          {{ordered, 2}, {domain, 1}, {annotation, 1}, {copy_pair, 1}, {started, 2}, {started_op, 1}, {size_of, 1}},
          0.08};
}

Family alike_family() { return {"values that lie alike", {{alike, 1}}, 0.03}; }

}  // namespace hlojit::tools::fuzz

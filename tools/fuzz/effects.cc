// Ops that hand on what they are given: tokens, domains, annotations, asynchronous pairs, and collectives,
// which among several devices do more.
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
  a.custom_call_target = s.random.chance(0.5) ? "Sharding" : "SPMDFullToShardShape";
  a.sharding = "{replicated}";
  return s.b.op(kCustomCall, x->shape, {x}, std::move(a));
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

namespace {

std::string text(const std::vector<Ints>& groups) {
  std::string out = "{";
  for (const Ints& g : groups) {
    out += out.size() > 1 ? ",{" : "{";
    for (size_t k = 0; k < g.size(); ++k) out += (k ? "," : "") + std::to_string(g[k]);
    out += "}";
  }
  return out + "}";
}

// All devices, shuffled, in groups of equal size; or one group of all, said in the short form.
int64_t groups(Draft& s, Attributes& a) {
  int64_t n = s.draw.devices, size = n;
  std::vector<Ints> groups;
  if (s.random.chance(0.7)) {
    if (n % 2 == 0 && s.random.chance(0.5)) size = n / 2;
    Ints order = s.permutation(n);
    for (int64_t k = 0; k < n; k += size) groups.emplace_back(order.begin() + k, order.begin() + k + size);
  }
  a.other.emplace_back("replica_groups", text(groups));
  return size;
}

// Devices only meet where all of them come by equally often: not in a branch, a fusion or a reducer.
bool may_meet(const Draft& s) { return s.draw.depth == 0; }

Instruction* summable(Draft& s, Instruction* x) { return is_float(x->shape.type) ? s.small(x, 4) : x; }

Opcode combining(Draft& s, DType t) {
  if (is_pred(t)) return s.random.pick(std::vector{kAnd, kOr});
  return is_complex(t) ? kAdd : s.random.pick(std::vector{kAdd, kAdd, kMaximum, kMinimum});
}

Instruction* all_reduce(Draft& s) {
  if (!may_meet(s)) return nullptr;
  Instruction* x = summable(s, s.any());
  Attributes a;
  groups(s, a);
  Computation* c = combiner(s, combining(s, x->shape.type), x->shape.type);
  if (s.random.chance(0.3)) return s.b.op(kAllReduceDone, {s.b.op(kAllReduceStart, {x}, a, {c})});
  Builder::Values in = {x};
  if (s.random.chance(0.2)) in.push_back(summable(s, s.of(x->shape.type, s.shape())));
  return s.b.op(kAllReduce, in, a, {c});
}

Instruction* all_gather(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1; });
  if (!may_meet(s) || !x) return nullptr;
  Attributes a;
  int64_t size = groups(s, a), d = s.random.below(x->shape.rank());
  a.dimensions = {d};
  a.has_dimensions = true;
  Shape shape = Shape::array(x->shape.type, x->shape.dims);
  shape.dims[static_cast<size_t>(d)] *= size;
  if (!s.fits(shape.dims)) return nullptr;
  if (s.random.chance(0.7)) return s.b.op(kAllGather, shape, {x}, a);
  return s.b.op(kAllGatherDone, shape, {s.b.op(kAllGatherStart, Shape::tuple({x->shape, shape}), {x}, a)});
}

// A value whose dimension `d` divides among `size`.
Instruction* divisible(Draft& s, int64_t size, int64_t& d) {
  Ints sizes = s.shape(1, 3);
  d = s.random.below(std::ssize(sizes));
  sizes[static_cast<size_t>(d)] *= size;
  return s.fits(sizes) ? s.of(s.type(), sizes) : nullptr;
}

Instruction* reduce_scatter(Draft& s) {
  if (!may_meet(s)) return nullptr;
  Attributes a;
  int64_t size = groups(s, a), d = 0;
  Instruction* x = divisible(s, size, d);
  if (!x) return nullptr;
  a.dimensions = {d};
  a.has_dimensions = true;
  Shape shape = Shape::array(x->shape.type, x->shape.dims);
  shape.dims[static_cast<size_t>(d)] /= size;
  return s.b.op(kReduceScatter, shape, {summable(s, x)}, a, {combiner(s, combining(s, shape.type), shape.type)});
}

Instruction* all_to_all(Draft& s) {
  if (!may_meet(s)) return nullptr;
  Attributes a;
  int64_t size = groups(s, a), d = 0;
  if (s.random.chance(0.4)) {
    Instruction* x = s.any();
    Builder::Values in = {x};
    while (std::ssize(in) < size) in.push_back(s.of(x->shape));
    std::vector<Shape> shapes(in.size(), Shape::array(x->shape.type, x->shape.dims));
    return s.b.op(kAllToAll, Shape::tuple(shapes), in, a);
  }
  Instruction* x = divisible(s, size, d);
  if (!x) return nullptr;
  a.dimensions = {d};
  a.has_dimensions = true;
  return s.b.op(kAllToAll, Shape::array(x->shape.type, x->shape.dims), {x}, a);
}

Instruction* permute(Draft& s) {
  if (!may_meet(s)) return nullptr;
  Ints from = s.permutation(s.draw.devices), to = s.permutation(s.draw.devices);
  std::vector<Ints> pairs;
  for (size_t k = 0; k < from.size(); ++k) {
    if (s.random.chance(0.8)) pairs.push_back({from[k], to[k]});
  }
  Attributes a;
  a.other.emplace_back("source_target_pairs", text(pairs));
  Instruction* x = s.any();
  Shape shape = Shape::array(x->shape.type, x->shape.dims);
  if (s.random.chance(0.7)) return s.b.op(kCollectivePermute, shape, {x}, a);
  return s.b.op(kCollectivePermuteDone, shape, {s.b.op(kCollectivePermuteStart, Shape::tuple({shape, shape}), {x}, a)});
}

Instruction* broadcast(Draft& s) {
  if (!may_meet(s)) return nullptr;
  Attributes a;
  groups(s, a);
  Instruction* x = s.any();
  return s.b.op(kCollectiveBroadcast, Shape::array(x->shape.type, x->shape.dims), {x}, std::move(a));
}

// Slice k of the first dimension goes to member k; each starts where it started.
Instruction* ragged(Draft& s) {
  if (!may_meet(s)) return nullptr;
  Attributes a;
  Ints sizes = s.shape(1, 2);
  int64_t n = groups(s, a), each = s.random.between(0, 3);
  sizes[0] = n * each + s.random.between(0, 2);
  DType t = s.type();
  if (!s.fits(sizes)) return nullptr;
  Literal offsets(Shape::array(DType::kS32, {n})), counts(offsets.shape());
  for (int64_t k = 0; k < n; ++k) offsets.set_int(k, k * each), counts.set_int(k, each);
  // What device k sends to member j lands in slice k there: the same place for all of k's slices.
  Instruction* id = s.b.convert(s.b.op(kReplicaId, {}), DType::kS32);
  Instruction *from = s.b.constant(offsets), *size = s.b.constant(counts);
  bool listed = a.other.back().second != "{}" || n != s.draw.devices;
  if (listed && n > 1) return nullptr;
  Instruction* at = s.b.op(kMultiply, {s.b.broadcast(id, {n}), s.splat(DType::kS32, static_cast<double>(each), {n})});
  return s.b.op(kRaggedAllToAll, Shape::array(t, sizes), {s.of(t, sizes), s.of(t, sizes), from, size, at, size}, a);
}

Instruction* own_number(Draft& s) { return s.b.op(s.random.chance(0.7) ? kReplicaId : kPartitionId, {}); }

}  // namespace

Family collective_family() {
  return {"collectives",
          {{all_reduce, 3},
           {all_gather, 2},
           {reduce_scatter, 2},
           {all_to_all, 2},
           {permute, 2},
           {broadcast, 1},
           {ragged, 1},
           {own_number, 1}},
          0.06};
}

}  // namespace hlojit::tools::fuzz

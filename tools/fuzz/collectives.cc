// Collectives: what devices hand each other, in groups that name them in each of the four ways (replicas, partitions,
// both, all devices by number), listed, as a pattern or all at once.
#include <algorithm>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

std::string text(const std::vector<Ints>& groups) {
  std::string out = "{";
  for (const Ints& g : groups) {
    out += out.size() > 1 ? ",{" : "{";
    for (size_t k = 0; k < g.size(); ++k) out += (k ? "," : "") + std::to_string(g[k]);
    out += "}";
  }
  return out + "}";
}

// What the ids in groups stand for.
struct Named {
  int64_t ids;   ///< that there are
  int64_t each;  ///< devices that one stands for in its group
};

// `both`: an op for which a channel means that a replica's id stands for all its partitions.
Named naming(Draft& s, Attributes& a, bool both) {
  int64_t replicas = s.draw.devices / s.draw.partitions;
  if (s.random.chance(s.draw.partitions > 1 ? 0.3 : 0.7)) return {replicas, 1};
  a.other.emplace_back("channel_id", std::to_string(s.random.between(1, 9)));
  return both ? Named{replicas, s.draw.partitions} : Named{s.draw.partitions, 1};
}

// n ids in groups of `size`, by a pattern: [2,2]<=[2,2]T(1,0).
std::string pattern(Draft& s, int64_t n, int64_t size) {
  std::string text = "[" + std::to_string(n / size) + "," + std::to_string(size) + "]<=[";
  if (n % 2 != 0 || n == 2 || s.random.chance(0.5)) return text + std::to_string(n) + "]";
  return text + "2," + std::to_string(n / 2) + "]" + (s.random.chance(0.7) ? "T(1,0)" : "");
}

// All ids, shuffled, in groups of equal size; or one group of all, said in the short form. How many devices a group
// has.
int64_t groups(Draft& s, Attributes& a, bool both = false) {
  Named named = naming(s, a, both);
  bool listed = s.random.chance(0.7);
  if (!a.other.empty() && s.random.chance(0.5)) {
    a.other.emplace_back("use_global_device_ids", "true");
    named = {s.draw.devices, 1};
    listed = true;
  }
  int64_t n = named.ids, size = n;
  if (!listed) {
    a.other.emplace_back("replica_groups", "{}");
    return size * named.each;
  }
  if (n % 2 == 0 && s.random.chance(0.5)) size = n / 2;
  std::vector<Ints> groups;
  Ints order = s.permutation(n);
  for (int64_t k = 0; k < n; k += size) groups.emplace_back(order.begin() + k, order.begin() + k + size);
  a.other.emplace_back("replica_groups", s.random.chance(0.25) ? pattern(s, n, size) : text(groups));
  return size * named.each;
}

// Groups of any sizes, for what gives each device an array of the size it had.
void uneven_groups(Draft& s, Attributes& a) {
  int64_t n = s.draw.devices / s.draw.partitions;
  Ints order = s.permutation(n);
  std::vector<Ints> groups;
  for (int64_t id : order) {
    if (groups.empty() || s.random.chance(0.4)) groups.emplace_back();
    groups.back().push_back(id);
  }
  a.other.emplace_back("replica_groups", text(groups));
}

// Devices only meet where all of them come by equally often: not in a branch or a reducer.
bool may_meet(const Draft& s) { return s.draw.devices == 1 || s.draw.may_meet; }

Instruction* summable(Draft& s, Instruction* x) { return is_float(x->shape.type) ? s.small(x, 4) : x; }

Opcode combining(Draft& s, DType t) {
  if (is_pred(t)) return s.random.pick(std::vector{kAnd, kOr});
  return is_complex(t) ? kAdd : s.random.pick(std::vector{kAdd, kAdd, kMaximum, kMinimum});
}

Instruction* all_reduce(Draft& s) {
  if (!may_meet(s)) return nullptr;
  Instruction* x = summable(s, s.any());
  Attributes a;
  if (s.random.chance(0.2))
    uneven_groups(s, a);
  else
    groups(s, a, true);
  DType t = x->shape.type;
  Opcode op = combining(s, t);
  if (is_narrow_float(t) && s.random.chance(0.2)) t = DType::kF32;
  Computation* c = combiner(s, op, t);
  if (s.random.chance(0.3)) return s.b.op(kAllReduceDone, {s.b.op(kAllReduceStart, {x}, a, {c})});
  Builder::Values in = {x};
  if (s.random.chance(0.2)) in.push_back(summable(s, s.of(x->shape.type, s.shape())));
  return s.b.op(kAllReduce, in, a, {c});
}

Instruction* all_gather(Draft& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1; });
  if (!may_meet(s) || !x) return nullptr;
  Attributes a;
  int64_t size = groups(s, a, true), d = s.random.below(x->shape.rank());
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
  int64_t size = groups(s, a, true), d = 0;
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
  Attributes a;
  int64_t ids = naming(s, a, false).ids;
  Ints from = s.permutation(ids), to = s.permutation(ids);
  std::vector<Ints> pairs;
  for (size_t k = 0; k < from.size(); ++k) {
    if (s.random.chance(0.8)) pairs.push_back({from[k], to[k]});
  }
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

// Several slices of rows from each member to each, of any places and sizes, also such as lie outside of the arrays.
Instruction* ragged(Draft& s) {
  if (!may_meet(s)) return nullptr;
  Attributes a;
  const DType t = s.type(), count = s.random.chance(0.5) ? DType::kS32 : DType::kS64;
  Ints from = s.shape(1, 2), to = from;
  to[0] = s.random.between(0, 8);
  if (!s.fits(from) || !s.fits(to)) return nullptr;
  a.other.emplace_back("replica_groups", "{}");
  const int64_t members = s.draw.devices / s.draw.partitions, n = members * s.random.between(0, 3);
  Instruction *own = s.b.op(kReplicaId, {}), *zero = s.b.constant(DType::kU32, 0);
  auto table = [&](int64_t rows) {
    Literal places(Shape::array(count, {members, n}));
    for (int64_t k = 0; k < members * n; ++k) {
      const int64_t beyond = s.random.chance(0.3) ? 3 : 0;
      places.set_int(k, s.random.between(-beyond, rows + beyond));
    }
    return s.b.reshape(s.b.dynamic_slice(s.b.constant(places), {own, zero}, {1, n}), {n});
  };
  Instruction *in = table(from[0]), *size = table(from[0] / 2), *out = table(to[0]);
  return s.b.op(kRaggedAllToAll, Shape::array(t, to), {s.of(t, from), s.of(t, to), in, size, out, size}, a);
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

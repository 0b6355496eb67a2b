// See meet.h. Each op is a rule for one group: the members' arrays in, the members' arrays out.
#include "tools/meet.h"

#include <algorithm>

#include "compiler/analysis/device_groups.h"
#include "compiler/builder.h"
#include "compiler/eval/evaluator.h"

namespace hlojit::tools {
namespace {

using enum Opcode;
using Literals = std::vector<Literal>;

// One op on arrays, by the evaluator.
template <class Make>
Literal computed(const Literals& in, Make make) {
  Module scratch("scratch");
  Builder b(scratch, "scratch");
  Builder::Values operands;
  for (const Literal& l : in) operands.push_back(b.parameter(Shape::array(l.shape().type, l.shape().dims)));
  return *evaluate_instruction(*make(b, operands), in);
}

Literal combined(const Computation& f, const Literal& x, const Literal& y) {
  return computed({x, y}, [&](Builder& b, const Builder::Values& v) {
    return b.op(kMap, Shape::array(x.shape().type, x.shape().dims), v, {}, {const_cast<Computation*>(&f)});
  });
}

Literal joined(const Literals& blocks, int64_t d) {
  return computed(blocks, [&](Builder& b, const Builder::Values& v) { return b.concat_in_dim(v, d); });
}

Literal cut(const Literal& x, int64_t d, int64_t start, int64_t size) {
  Ints starts(x.shape().dims.size()), limits = x.shape().dims;
  starts[static_cast<size_t>(d)] = start;
  limits[static_cast<size_t>(d)] = start + size;
  return computed({x}, [&](Builder& b, const Builder::Values& v) { return b.slice(v[0], starts, limits); });
}

Literal zeros(const Literal& like) { return Literal(Shape::array(like.shape().type, like.shape().dims)); }

Literal as(DType type, const Literal& x) {
  if (x.shape().type == type) return x;
  return computed({x}, [&](Builder& b, const Builder::Values& v) { return b.convert(v[0], type); });
}

// In the type that f computes in, rounded at the end.
Literal sum(const Computation& f, const Literals& group) {
  const DType wide = f.root()->shape.type;
  Literal total = as(wide, group[0]);
  for (size_t k = 1; k < group.size(); ++k) total = combined(f, total, as(wide, group[k]));
  return as(group[0].shape().type, total);
}

// n rows of x from `from` on, zeros behind its end.
Literal rows(const Literal& x, int64_t from, int64_t n) {
  const int64_t there = std::clamp<int64_t>(x.shape().dims[0] - from, 0, n);
  Shape missing = Shape::array(x.shape().type, x.shape().dims);
  missing.dims[0] = n - there;
  return joined({cut(x, 0, there > 0 ? from : 0, there), Literal(missing)}, 0);
}

// Rows of what member k has, [from, from + size) of each other member's slices, written where it says: as far as there
// are such places in the result. Places in front of an array are its first.
Literals ragged(const std::vector<const Literals*>& group) {
  Literals out;
  for (const Literals* own : group) out.push_back((*own)[1]);
  const int64_t updates = (*group[0])[2].shape().element_count() / std::ssize(group);
  for (const Literals* sender : group) {
    const Literals& own = *sender;
    for (int64_t at = 0; at < updates * std::ssize(group); ++at) {
      Literal& to = out[static_cast<size_t>(at / updates)];
      const int64_t all = to.shape().dims[0], place = own[4].as_int(at), begin = std::clamp<int64_t>(place, 0, all);
      const int64_t end = place > all ? all : std::clamp<int64_t>(place + own[3].as_int(at), begin, all);
      Literal block = rows(own[0], std::max<int64_t>(own[2].as_int(at), 0), end - begin);
      to = joined({cut(to, 0, 0, begin), block, cut(to, 0, end, all - end)}, 0);
    }
  }
  return out;
}

Opcode plain(Opcode op) {
  if (op == kAllReduceStart) return kAllReduce;
  if (op == kAllGatherStart) return kAllGather;
  return op == kCollectivePermuteStart ? kCollectivePermute : op;
}

}  // namespace

bool is_collective(const Instruction& i) { return has_trait(i, op_trait::kCollective); }

std::vector<Literal> meet(const Instruction& i, const std::vector<Literals>& in) {
  Opcode op = plain(i.opcode);
  std::vector<Literals> out(in.size());
  int64_t d = i.attrs.dimensions.empty() ? 0 : i.attrs.dimensions[0];
  if (op == kCollectivePermute || op == kCollectiveBroadcast) {
    std::vector<int64_t> from = device_sources(i);
    for (size_t to = 0; to < in.size(); ++to) {
      for (const Literal& own : in[to]) out[to].push_back(zeros(own));
      if (from[to] >= 0) out[to] = in[static_cast<size_t>(from[to])];
    }
  } else {
    for (const std::vector<int64_t>& members : device_groups(i)) {
      std::vector<const Literals*> group;
      for (int64_t m : members) group.push_back(&in[static_cast<size_t>(m)]);
      auto n = std::ssize(members);
      Literals moved = op == kRaggedAllToAll ? ragged(group) : Literals{};
      for (int64_t k = 0; k < n; ++k) {
        Literals& own = out[static_cast<size_t>(members[static_cast<size_t>(k)])];
        if (op == kRaggedAllToAll) {
          own = {moved[static_cast<size_t>(k)]};
          continue;
        }
        if (op == kAllToAll && !i.attrs.has_dimensions) {
          for (const Literals* other : group) own.push_back((*other)[static_cast<size_t>(k)]);
          continue;
        }
        for (size_t operand = 0; operand < group[0]->size(); ++operand) {
          Literals all;
          for (const Literals* other : group) all.push_back((*other)[operand]);
          int64_t share = all[0].shape().dims.empty() ? 0 : all[0].shape().dims[static_cast<size_t>(d)] / n;
          if (op == kAllGather) own.push_back(joined(all, d));
          if (op == kAllReduce) own.push_back(sum(*i.to_apply(), all));
          if (op == kReduceScatter) own.push_back(cut(sum(*i.to_apply(), all), d, k * share, share));
          if (op == kAllToAll) {
            for (Literal& other : all) other = cut(other, d, k * share, share);
            own.push_back(joined(all, d));
          }
        }
      }
    }
  }
  std::vector<Literal> results;
  bool start = i.is(kAllGatherStart) || i.is(kCollectivePermuteStart);
  for (size_t k = 0; k < in.size(); ++k) {
    auto whole = [](const Literals& l, bool tuple) { return tuple ? Literal::tuple(l) : l[0]; };
    bool several = out[k].size() > 1 || (op == kAllToAll && i.shape.is_tuple());
    Literal result = whole(out[k], several);
    if (start) {
      Literals pair = {whole(in[k], several), result};
      for (size_t e = 2; e < i.shape.elements.size(); ++e) pair.emplace_back(i.shape.elements[e]);
      result = Literal::tuple(pair);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace hlojit::tools

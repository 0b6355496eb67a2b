// See devices.h.
#include "compiler/passes/devices.h"

#include <algorithm>
#include <numeric>

#include "compiler/analysis/device_groups.h"
#include "compiler/builder.h"
#include "compiler/ir/annotation.h"
#include "compiler/ir/text_attributes.h"
#include "compiler/passes/expansions.h"
#include "compiler/passes/replace_ops.h"

namespace hlojit {
namespace {

using enum Opcode;
using Values = Builder::Values;

Ints with(Ints dims, size_t at, int64_t n) {
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), n);
  return dims;
}

Instruction* zeros(Builder& b, const Shape& shape) {
  return b.broadcast(b.constant(Literal(Shape::scalar(shape.type))), shape.dims);
}

class Collective {
 public:
  Collective(Builder& b, const Instruction& op) : b_(b), op_(op) {}

  // What stands for the op, or nullptr if it stays as it is.
  Instruction* run() {
    switch (op_.opcode) {
      case kReplicaId: return config().replica_count == 1 ? b_.constant(DType::kU32, 0) : nullptr;
      case kPartitionId: return config().num_partitions == 1 ? b_.constant(DType::kU32, 0) : nullptr;
      case kCollectivePermute:
      case kCollectiveBroadcast: return each(&Collective::moved);
      case kAllReduce:
        groups_ = device_groups(op_);
        return each(equal_groups() ? &Collective::reduced : &Collective::reduced_among_some);
      case kAllGather: groups_ = device_groups(op_); return each(&Collective::gathered);
      case kReduceScatter: groups_ = device_groups(op_); return each(&Collective::reduce_scattered);
      case kAllToAll: groups_ = device_groups(op_); return all_to_all();
      case kRaggedAllToAll: groups_ = device_groups(op_); return ragged_all_to_all();
      case kCustomCall: return is_annotation(op_) ? op_.operand(0) : nullptr;
      default: return nullptr;
    }
  }

 private:
  const ModuleConfig& config() const { return b_.computation()->parent()->config; }
  int64_t members() const { return std::ssize(groups_[0]); }
  bool equal_groups() const {
    return std::ranges::all_of(groups_, [&](const auto& g) { return g.size() == groups_[0].size(); });
  }

  // One operand at a time; the results of several are a tuple.
  Instruction* each(Instruction* (Collective::*one)(Instruction*)) {
    if (!other("slice_sizes").empty() || is_primitive()) return nullptr;
    Values results;
    for (Instruction* o : op_.operands()) {
      results.push_back((this->*one)(o));
    }
    return op_.shape.is_tuple() ? b_.tuple(results) : results.at(0);
  }

  std::string_view other(std::string_view name) const { return text_attribute(op_.attrs, name); }

  // ---- the four that remain ----

  // Marks what this pass has made, so that it is stable on its own output.
  static constexpr std::string_view kMark = "mode";
  static constexpr std::string_view kBlocks = "blocks";
  bool is_primitive() const { return other(kMark) == kBlocks; }

  Instruction* primitive(Opcode opcode, Instruction* x, Shape shape, std::string_view who, std::string text) {
    Attributes a;
    if (opcode == kAllGather || opcode == kAllToAll) {
      a.dimensions = {0};
      a.has_dimensions = true;
    }
    a.other = {{"channel_id", "1"},
               {std::string(who), std::move(text)},
               {"use_global_device_ids", "true"},
               {std::string(kMark), std::string(kBlocks)}};
    return b_.op(opcode, std::move(shape), {x}, std::move(a));
  }

  // [n, dims]: row k is x of member k.
  Instruction* gather_rows(Instruction* x) {
    Instruction* row = b_.reshape(x, with(x->shape.dims, 0, 1));
    if (members() == 1) return row;
    Shape shape = Shape::array(x->shape.type, with(x->shape.dims, 0, members()));
    return primitive(kAllGather, row, shape, "replica_groups", groups_to_text(groups_));
  }

  // [n, dims] of rows for the members to rows from them.
  Instruction* exchange_rows(Instruction* rows) {
    if (members() == 1) return rows;
    Shape shape = Shape::array(rows->shape.type, rows->shape.dims);
    return primitive(kAllToAll, rows, shape, "replica_groups", groups_to_text(groups_));
  }

  Instruction* row(Instruction* rows, int64_t k) {
    Ints dims(rows->shape.dims.begin() + 1, rows->shape.dims.end());
    return b_.reshape(b_.slice_in_dim(rows, k, k + 1, 1, 0), dims);
  }

  // Cuts dimension d into one part a member, in a new leading dimension; and back.
  Instruction* split(Instruction* x, int64_t d) {
    Ints dims = x->shape.dims;
    dims[d] /= members();
    return moved_dim(b_.reshape(x, with(dims, d, members())), d, 0);
  }
  Instruction* joined(Instruction* rows, int64_t d) {
    Ints dims(rows->shape.dims.begin() + 1, rows->shape.dims.end());
    dims[d] *= members();
    return b_.reshape(moved_dim(rows, 0, d), dims);
  }
  Instruction* moved_dim(Instruction* x, int64_t from, int64_t to) {
    if (from == to) return x;
    Ints order;
    for (int64_t k = 0; k < x->shape.rank(); ++k) {
      if (k != from) order.push_back(k);
    }
    order.insert(order.begin() + to, from);
    return b_.transpose(x, order);
  }

  // ---- one operand ----

  Instruction* moved(Instruction* x) {
    std::vector<int64_t> source = device_sources(op_);
    if (std::ranges::all_of(source, [](int64_t s) { return s < 0; })) return zeros(b_, x->shape);
    bool stays = true;
    DeviceGroups pairs;
    for (int64_t d = 0; d < std::ssize(source); ++d) {
      stays = stays && source[d] == d;
      if (source[d] >= 0) pairs.push_back({source[d], d});
    }
    if (stays) return x;
    Shape shape = Shape::array(x->shape.type, x->shape.dims);
    if (op_.is(kCollectivePermute)) {
      return primitive(kCollectivePermute, x, shape, "source_target_pairs", groups_to_text(pairs));
    }
    return primitive(kCollectiveBroadcast, x, shape, "replica_groups", broadcast_groups(source));
  }

  static std::string broadcast_groups(const std::vector<int64_t>& source) {
    DeviceGroups groups;
    for (int64_t d = 0; d < std::ssize(source); ++d) {
      if (source[d] != d) continue;
      std::vector<int64_t>& group = groups.emplace_back(1, d);
      for (int64_t t = 0; t < std::ssize(source); ++t) {
        if (t != d && source[t] == d) group.push_back(t);
      }
    }
    return groups_to_text(groups);
  }

  Instruction* gathered(Instruction* x) { return joined(gather_rows(x), op_.attrs.dimensions.at(0)); }

  // f of two values, in the type that f computes in.
  Instruction* combine(Instruction* x, Instruction* y) {
    Values values = {x, y};
    if (Instruction* made = apply_elementwise(b_, *op_.to_apply(), values, x->shape.dims)) return made;
    Attributes all;
    for (int64_t d = 0; d < x->shape.rank(); ++d) all.dimensions.push_back(d);
    return b_.op(kMap, values, std::move(all), {op_.to_apply()});
  }

  // These rows combined from the first to the last, rounded to their type at the end.
  Instruction* combined(Instruction* rows, const Ints& which) {
    const DType type = rows->shape.type, wide = op_.to_apply()->root()->shape.type;
    Instruction* sum = nullptr;
    for (int64_t k : which) {
      Instruction* r = row(rows, k);
      if (wide != type) r = b_.convert(r, wide);
      sum = sum ? combine(sum, r) : r;
    }
    return wide == type ? sum : b_.convert(sum, type);
  }
  Instruction* combined(Instruction* rows) {
    Ints all(members());
    std::iota(all.begin(), all.end(), 0);
    return combined(rows, all);
  }

  Instruction* reduced(Instruction* x) { return combined(gather_rows(x)); }
  Instruction* reduce_scattered(Instruction* x) {
    return combined(exchange_rows(split(x, op_.attrs.dimensions.at(0))));
  }

  // Groups of different sizes: everyone gets all contributions and takes those of its own group.
  Instruction* reduced_among_some(Instruction* x) {
    std::vector<int64_t> group_of(config().replica_count * config().num_partitions);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (int64_t d : groups_[g]) group_of[d] = static_cast<int64_t>(g);
    }
    DeviceGroups own = std::move(groups_);
    groups_ = {std::vector<int64_t>(group_of.size())};
    for (size_t d = 0; d < group_of.size(); ++d) groups_[0][d] = static_cast<int64_t>(d);
    Instruction* rows = gather_rows(x);
    Instruction* mine = lookup(group_of);
    Instruction* result = nullptr;
    for (size_t g = 0; g < own.size(); ++g) {
      Instruction* sum = combined(rows, own[g]);
      if (!result) {
        result = sum;
        continue;
      }
      Instruction* in_group = b_.compare(Direction::kEq, mine, b_.constant(DType::kS32, static_cast<double>(g)));
      result = b_.select(b_.broadcast(in_group, x->shape.dims), sum, result);
    }
    groups_ = std::move(own);
    return result;
  }

  // This device's entry of a table, an s32[].
  Instruction* lookup(const std::vector<int64_t>& table) {
    Literal values(Shape::array(DType::kS32, {std::ssize(table)}));
    for (size_t d = 0; d < table.size(); ++d) values.set_int(static_cast<int64_t>(d), table[d]);
    Instruction* entry = b_.dynamic_slice(b_.constant(std::move(values)), {device()}, {1});
    return b_.reshape(entry, {});
  }
  Instruction* device() {
    Instruction* replica = b_.convert(id(kReplicaId, config().replica_count), DType::kS32);
    Instruction* partition = b_.convert(id(kPartitionId, config().num_partitions), DType::kS32);
    Instruction* stride = b_.constant(DType::kS32, static_cast<double>(config().num_partitions));
    return b_.binary(kAdd, b_.binary(kMultiply, replica, stride), partition);
  }
  Instruction* id(Opcode opcode, int64_t count) {
    return count == 1 ? b_.constant(DType::kU32, 0) : b_.op(opcode, Values{});
  }

  // ---- those whose operands belong together ----

  Instruction* all_to_all() {
    if (is_primitive()) return nullptr;
    if (op_.attrs.has_dimensions) {
      int64_t d = op_.attrs.dimensions.at(0);
      return joined(exchange_rows(split(op_.operand(0), d)), d);
    }
    Values rows, results;
    for (Instruction* o : op_.operands()) rows.push_back(b_.reshape(o, with(o->shape.dims, 0, 1)));
    Instruction* all = exchange_rows(b_.concat_in_dim(rows, 0));
    for (int64_t k = 0; k < members(); ++k) results.push_back(row(all, k));
    return b_.tuple(results);
  }

  // Member j's update u for me is rows [in, in + size) of its input, to stand at [out, out + size)
  // of my result. Row r of the result is looked up in each of them in turn; later ones win. As XLA's decomposition has
  // it, places in front of an array are its first, what is read behind the input is zero (as is the row added to it),
  // and what lies outside of the result is left out.
  Instruction* ragged_all_to_all() {
    Instruction* input = op_.operand(0);
    std::vector<PadDim> behind(input->shape.dims.size());
    behind[0].high = 1;
    Instruction* zero = b_.constant(Literal(Shape::scalar(input->shape.type)));
    Values all = {gather_rows(b_.pad(input, zero, behind))};
    for (size_t k : {2, 3, 4}) all.push_back(gather_rows(op_.operand(k)));
    Instruction* result = op_.operand(1);
    const int64_t updates = op_.operand(2)->shape.dims[0] / members();
    Instruction* rank = my_rank();
    Instruction* r = b_.iota(Shape::array(DType::kS64, {result->shape.dims[0]}), 0);
    for (int64_t j = 0; j < members(); ++j) {
      for (int64_t u = 0; u < updates; ++u) {
        Instruction* at = b_.binary(kAdd, b_.binary(kMultiply, rank, s64(updates)), s64(u));
        Instruction *in = entry(all[1], j, at), *size = entry(all[2], j, at), *out = entry(all[3], j, at);
        Instruction* from = b_.binary(kSubtract, r, out);
        Instruction* taken =
            b_.binary(kAnd, b_.compare(Direction::kGe, from, s64(0)), b_.compare(Direction::kLt, from, size));
        Instruction* first = b_.binary(kMaximum, in, s64(0));
        Instruction* start = b_.binary(kAdd, b_.binary(kMinimum, out, s64(0)), first);
        Instruction* rows = rows_at(row(all[0], j), b_.binary(kAdd, from, start));
        result = b_.select(b_.broadcast_in_dim(taken, result->shape.dims, {0}), rows, result);
      }
    }
    return result;
  }

  Instruction* s64(int64_t value) { return b_.constant(DType::kS64, static_cast<double>(value)); }
  Instruction* entry(Instruction* table, int64_t member, Instruction* at) {
    Instruction* one = b_.dynamic_slice(row(table, member), {at}, {1});
    return b_.convert(b_.reshape(one, {}), DType::kS64);
  }
  Instruction* rows_at(Instruction* x, Instruction* indices) {
    GatherDims g;
    g.collapsed_slice_dims = g.start_index_map = {0};
    g.index_vector_dim = 1;
    g.slice_sizes = x->shape.dims;
    g.slice_sizes[0] = 1;
    for (int64_t d = 1; d < x->shape.rank(); ++d) g.offset_dims.push_back(d);
    return b_.gather(x, indices, std::move(g));
  }
  Instruction* my_rank() {
    std::vector<int64_t> rank(config().replica_count * config().num_partitions);
    for (const auto& group : groups_) {
      for (size_t k = 0; k < group.size(); ++k) rank[group[k]] = static_cast<int64_t>(k);
    }
    if (rank.size() == 1) return s64(0);
    return b_.convert(lookup(rank), DType::kS64);
  }

  Builder& b_;
  const Instruction& op_;
  DeviceGroups groups_;
};

bool devices_in(Computation& c, const PipelineOptions& options) {
  Builder b(&c);
  return replace_ops(c, "devices", options, [&](const Instruction& i) {
    bool may_talk = i.info().op_class == OpClass::kEffect || i.is(kCustomCall);
    return may_talk ? Collective(b, i).run() : nullptr;
  });
}

}  // namespace

bool devices(Module& module, const PipelineOptions& options) {
  std::vector<Computation*> computations;
  for (const auto& c : module.computations()) computations.push_back(c.get());
  bool changed = false;
  for (Computation* c : computations) changed |= devices_in(*c, options);
  if (changed) module.remove_unreachable();
  return changed;
}

}  // namespace hlojit

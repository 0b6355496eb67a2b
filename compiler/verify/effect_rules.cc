// Tokens, channels, asynchronous pairs and collectives.
//
// How many devices take part is the caller's business, not the module's: where replica_groups is
// `{}` (all devices in one group) the group's size is read from the declared shapes.
#include <algorithm>
#include <set>

#include "compiler/verify/rules.h"

namespace hlojit::rules {
namespace {

using Groups = std::vector<std::vector<int64_t>>;

int64_t checked_product(std::span<const int64_t> factors) {
  int64_t n = 1;
  for (int64_t f : factors) n = mul(n, f);
  return n;
}

// `[2,2]<=[4]` or `[2,2]<=[2,2]T(1,0)`: the ids 0..n-1, reshaped, transposed, cut into groups. They
// name each id once by construction; only the sizes matter here. Returns the size of a group.
int64_t iota_group_size(std::string_view text) {
  size_t arrow = text.find("<=");
  need(arrow != text.npos, "replica-groups", "replica_groups {} are not understood", text);
  std::vector<int64_t> cut = numbers_in(text.substr(0, arrow));
  std::string_view rest = text.substr(arrow + 2);
  size_t close = rest.find(']');
  std::vector<int64_t> dims = numbers_in(rest.substr(0, close));
  need(cut.size() == 2 && cut[0] > 0 && cut[1] > 0, "replica-groups", "replica_groups {} must cut into [groups,size]",
       text);
  need(checked_product(cut) == checked_product(dims), "replica-groups", "replica_groups {} name {} ids for {} places",
       text, checked_product(dims), checked_product(cut));
  if (close != rest.npos) {
    std::vector<int64_t> permutation = numbers_in(rest.substr(close));
    need(permutation.empty() || permutation.size() == dims.size(), "replica-groups",
         "replica_groups {} transpose {} dimensions of {}", text, permutation.size(), dims.size());
    need_dimensions(permutation, static_cast<int64_t>(dims.size()), "replica_groups");
  }
  return cut[1];
}

// The inner lists of `{{0,1},{2,3}}`.
Groups listed_groups(std::string_view text) {
  Groups groups;
  text.remove_prefix(1);
  while (true) {
    size_t open = text.find('{');
    if (open == text.npos) break;
    size_t close = text.find('}', open);
    groups.push_back(numbers_in(text.substr(open, close - open)));
    if (close == text.npos) break;
    text.remove_prefix(close + 1);
  }
  return groups;
}

// Checks replica_groups. Returns the size of a group: 0 if that is not said (`{}`) or differs.
int64_t group_size(const Use& use, bool equal_sizes) {
  bool global = text_attribute(use.attrs, "use_global_device_ids") == "true";
  need(!global || !text_attribute(use.attrs, "channel_id").empty(), "global-device-ids",
       "use_global_device_ids needs a channel_id");
  std::string_view text = text_attribute(use.attrs, "replica_groups");
  if (text.starts_with('[')) return iota_group_size(text);
  need(text.empty() || text.starts_with('{'), "replica-groups", "replica_groups {} are not understood", text);
  Groups groups = text.empty() ? Groups{} : listed_groups(text);
  need(!global || !groups.empty(), "global-device-ids",
       "use_global_device_ids needs replica_groups that name the devices");
  if (groups.empty()) return 0;
  size_t total = 0;
  for (const auto& g : groups) total += g.size();
  std::vector<bool> seen(total);
  for (const auto& g : groups) {
    need(!g.empty(), "replica-groups", "replica_groups {} have an empty group", text);
    for (int64_t id : g) {
      need(id >= 0 && id < static_cast<int64_t>(total), "replica-groups",
           "replica_groups {} name id {} among {} ids: 0 to {} are expected", text, id, total, total - 1);
      need(!seen[id], "replica-groups", "replica_groups {} name id {} twice", text, id);
      seen[id] = true;
    }
  }
  bool equal = std::ranges::all_of(groups, [&](const auto& g) { return g.size() == groups[0].size(); });
  need(equal || !equal_sizes, "replica-groups", "the groups of {} must have equal sizes: {}", op_name(use.opcode),
       text);
  return equal ? static_cast<int64_t>(groups[0].size()) : 0;
}

// The size of a group of all-gather and reduce-scatter. With a channel a replica stands for all its
// partitions, whose number the caller knows: then 0, as where the groups do not say it.
int64_t shard_count(const Use& use) {
  int64_t size = group_size(use, true);
  bool partitions =
      !text_attribute(use.attrs, "channel_id").empty() && text_attribute(use.attrs, "use_global_device_ids") != "true";
  return partitions ? 0 : size;
}

std::vector<Shape> operand_shapes(const Use& use) {
  need(use.count() >= 1, "operand-count", "{} takes at least one operand", op_name(use.opcode));
  need_arrays(use);
  std::vector<Shape> shapes;
  for (const Shape* s : use.operands) shapes.push_back(*s);
  return shapes;
}

// to_apply combines two scalars of the operands' type; floats of any precision may be combined in
// another.
void need_combiner(const Use& use) {
  need_called(use, 1);
  const auto& parameters = use.called[0]->parameters();
  DType type = use.operand(0).type;
  if (!parameters.empty() && same_type_ignoring_precision(parameters[0]->shape.type, type)) {
    type = parameters[0]->shape.type;
  }
  need_reducer(*use.called[0], {&type, 1}, "to_apply", true);
  for (size_t i = 1; i < use.operands.size(); ++i) need_same_type_ignoring_precision(use, 0, i);
}

// The declared result split into one shape an operand; null where it does not split so.
const Shape* declared_part(const Shape& declared, size_t i, size_t count) {
  if (count == 1) return &declared;
  if (!declared.is_tuple() || declared.elements.size() != count) return nullptr;
  return &declared.elements[i];
}

// Shapes after all-gather (each dimension d times the group size), read off `declared` where the
// groups do not say the size.
Shape gathered(const Use& use, const Shape& declared, int64_t size) {
  std::vector<Shape> shapes = operand_shapes(use);
  for (size_t i = 0; i < shapes.size(); ++i) {
    int64_t d = single_dimension(use, shapes[i].rank());
    int64_t n = shapes[i].dims[d], factor = size;
    const Shape* part = declared_part(declared, i, shapes.size());
    if (factor == 0 && part && part->is_array() && part->rank() == shapes[i].rank()) {
      factor = n > 0 && part->dims[d] % n == 0 ? part->dims[d] / n : 1;
    }
    shapes[i] = Shape::array(shapes[i].type, shapes[i].dims);
    shapes[i].dims[d] = mul(n, std::max<int64_t>(factor, 1));
  }
  return one_or_tuple(std::move(shapes));
}

void need_tuple_of(const Use& use, size_t at_least, std::string_view parts) {
  need(use.declared->is_tuple() && use.declared->elements.size() >= at_least, "async-shape", "{} gives {}, not {}",
       op_name(use.opcode), parts, *use.declared);
}

void need_part(const Use& use, size_t i, const Shape& want) {
  const Shape& have = use.declared->elements[i];
  need(compatible(have, want), "async-shape", "element {} of {} is {}, not {}", i, op_name(use.opcode), have, want);
}

const Shape& element(const Use& use, size_t i) {
  need_count(use, 1);
  const Shape& state = use.operand(0);
  need(state.is_tuple() && state.elements.size() > i, "async-shape",
       "the operand of {} must be the tuple its start gives, not {}", op_name(use.opcode), state);
  return state.elements[i];
}

void need_pairs(const Use& use) {
  std::string_view text = text_attribute(use.attrs, "source_target_pairs");
  std::set<int64_t> sources, targets;
  for (const auto& pair : text.empty() ? Groups{} : listed_groups(text)) {
    need(pair.size() == 2, "source-target-pairs", "{} is not a list of pairs", text);
    int64_t source = pair[0], target = pair[1];
    need(source >= 0 && target >= 0, "source-target-pairs", "the pair {} has a negative id", list(pair));
    need(sources.insert(source).second, "source-target-pairs", "{} is a source twice", source);
    need(targets.insert(target).second, "source-target-pairs", "{} is a target twice", target);
  }
}

// Result of a collective-permute: in the form of four operands it is written into the second one.
Shape permuted(const Use& use) {
  need_pairs(use);
  need(use.count() >= 1, "operand-count", "{} takes at least one operand", op_name(use.opcode));
  bool in_place = !text_attribute(use.attrs, "slice_sizes").empty() && use.count() == 4;
  return in_place ? use.operand(1) : one_or_tuple(operand_shapes(use));
}

Shape channel_state(const Shape& value) { return Shape::tuple({value, Shape::scalar(DType::kU32), Shape::token()}); }

Shape after_all(const Use& use) {
  (void)use;  // of tokens, and as in XLA of anything
  return Shape::token();
}

Shape add_dependency(const Use& use) {
  need_count(use, 2);
  need_token(use, 1);
  return use.operand(0);
}

Shape device_id(const Use& use) {
  need_count(use, 0);
  return Shape::scalar(DType::kU32);
}

Shape all_reduce(const Use& use) {
  std::vector<Shape> shapes = operand_shapes(use);
  group_size(use, false);
  need_combiner(use);
  return one_or_tuple(std::move(shapes));
}

Shape all_gather(const Use& use) {
  operand_shapes(use);
  int64_t size = shard_count(use);
  if (!use.declared) return undetermined();
  return gathered(use, *use.declared, size);
}

Shape all_gather_start(const Use& use) {
  std::vector<Shape> shapes = operand_shapes(use);
  int64_t size = shard_count(use);
  if (!use.declared) return undetermined();
  need_tuple_of(use, 2, "(operand, result)");
  need_part(use, 0, one_or_tuple(std::move(shapes)));
  need_part(use, 1, gathered(use, use.declared->elements[1], size));
  return *use.declared;
}

Shape reduce_scatter(const Use& use) {
  std::vector<Shape> shapes = operand_shapes(use);
  int64_t size = shard_count(use);
  need_combiner(use);
  if (!use.declared) return undetermined();
  for (size_t i = 0; i < shapes.size(); ++i) {
    int64_t d = single_dimension(use, shapes[i].rank());
    int64_t n = shapes[i].dims[d], parts = size;
    const Shape* part = declared_part(*use.declared, i, shapes.size());
    if (parts == 0 && part && part->is_array() && part->rank() == shapes[i].rank()) {
      int64_t m = part->dims[d];
      parts = m > 0 && n % m == 0 ? n / m : 1;
    }
    parts = std::max<int64_t>(parts, 1);
    need(n % parts == 0, "replica-groups", "dimension {} of size {} does not divide among {} members", d, n, parts);
    shapes[i] = Shape::array(shapes[i].type, shapes[i].dims);
    shapes[i].dims[d] = n / parts;
  }
  return one_or_tuple(std::move(shapes));
}

Shape all_to_all(const Use& use) {
  std::vector<Shape> shapes = operand_shapes(use);
  int64_t size = group_size(use, true);
  if (use.attrs.has_dimensions) {
    need_count(use, 1);
    int64_t d = single_dimension(use, shapes[0].rank());
    need(size == 0 || shapes[0].dims[d] % size == 0, "replica-groups",
         "dimension {} of size {} does not divide among {} members", d, shapes[0].dims[d], size);
    return shapes[0];
  }
  for (size_t i = 1; i < shapes.size(); ++i) {
    need_same_type(use, 0, i);
    need_same_sizes(use, 0, i);
  }
  need(size == 0 || size == use.count(), "replica-groups", "all-to-all takes an operand a member: {} for groups of {}",
       use.count(), size);
  return Shape::tuple(std::move(shapes));
}

Shape ragged_all_to_all(const Use& use) {
  need_count(use, 6);
  need_arrays(use);
  need_same_type(use, 0, 1);
  group_size(use, false);
  for (size_t i = 2; i < 6; ++i) {
    need_type(use, i, kInt);
    need(use.operand(i).rank() == 1, "operand-kind",
         "offsets and sizes of ragged-all-to-all are vectors, operand {} is {}", i, use.operand(i));
    need_same_type(use, 2, i);
    need_same_sizes(use, 2, i);
  }
  return use.operand(1);
}

Shape collective_broadcast(const Use& use) {
  group_size(use, false);
  return one_or_tuple(operand_shapes(use));
}

Shape collective_permute(const Use& use) { return permuted(use); }

Shape collective_permute_start(const Use& use) {
  Shape result = permuted(use);
  if (!use.declared) return undetermined();
  need_tuple_of(use, 2, "(operand, result)");
  if (use.count() == 1) need_part(use, 0, use.operand(0));
  need_part(use, 1, result);
  return *use.declared;
}

Shape done_of_second(const Use& use) { return element(use, 1); }

Shape send(const Use& use) {
  need_count(use, 2);
  need_token(use, 1);
  return channel_state(use.operand(0));
}

Shape send_done(const Use& use) {
  element(use, 2);
  return Shape::token();
}

Shape recv(const Use& use) {
  need_count(use, 1);
  need_token(use, 0);
  if (!use.declared) return undetermined();
  need_tuple_of(use, 3, "(value, u32[], token[])");
  return channel_state(use.declared->elements[0]);
}

Shape recv_done(const Use& use) {
  element(use, 2);
  return Shape::tuple({use.operand(0).elements[0], Shape::token()});
}

Shape infeed(const Use& use) {
  need_count(use, 1);
  need_token(use, 0);
  if (!use.declared) return undetermined();
  need_tuple_of(use, 2, "(value, token[])");
  return Shape::tuple({use.declared->elements[0], Shape::token()});
}

Shape outfeed(const Use& use) {
  need_count(use, 2);
  need_token(use, 1);
  std::string_view text = text_attribute(use.attrs, "outfeed_shape");
  if (!text.empty()) {
    Shape shape = Shape::parse(text);
    need(compatible(shape, use.operand(0)), "outfeed-shape", "outfeed_shape is {}, the value is {}", shape,
         use.operand(0));
  }
  return Shape::token();
}

Shape async_start(const Use& use) {
  if (!use.declared) return undetermined();
  need_tuple_of(use, 2, "((operands), result, ...)");
  std::vector<Shape> shapes;
  for (const Shape* s : use.operands) shapes.push_back(*s);
  const Shape& result = use.declared->elements[1];
  // The short form, negate-start(x), wraps an op by name; the long one calls a computation.
  if (std::optional<Opcode> wrapped = op_from_name(text_attribute(use.attrs, "wrapped-op"))) {
    need_part(use, 1, apply({*wrapped, use.operands, use.attrs, use.called, &result}));
  } else {
    need_called(use, 1);
    need_parameters(*use.called[0], shapes, "calls");
    need_part(use, 1, use.called[0]->root()->shape);
    need_aliases(use);  // of the short form, that op's own
  }
  need_part(use, 0, Shape::tuple(std::move(shapes)));
  return *use.declared;
}

Shape async_update(const Use& use) {
  element(use, 1);
  return use.operand(0);
}

Shape copy_start(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  return Shape::tuple({x, x, Shape::scalar(DType::kU32)});
}

Shape copy_done(const Use& use) { return element(use, 0); }

#define HLOJIT_GROUP_ATTRIBUTES "channel_id replica_groups"
#define HLOJIT_COLLECTIVE_ATTRIBUTES "constrain_layout use_global_device_ids mode"
#define HLOJIT_REDUCER_ATTRIBUTES HLOJIT_GROUP_ATTRIBUTES " " HLOJIT_COLLECTIVE_ATTRIBUTES " to_apply!"
#define HLOJIT_GATHERER_ATTRIBUTES HLOJIT_GROUP_ATTRIBUTES " dimensions! " HLOJIT_COLLECTIVE_ATTRIBUTES
#define HLOJIT_PERMUTE_ATTRIBUTES "channel_id source_target_pairs! slice_sizes:permute " HLOJIT_COLLECTIVE_ATTRIBUTES

constexpr Entry kOps[] = {
    {Opcode::kAddDependency, add_dependency},
    {Opcode::kAfterAll, after_all},
    {Opcode::kAsyncDone, done_of_second, "async_execution_thread calls", ResultShape::kDeclare},
    {Opcode::kAsyncStart, async_start, "async_execution_thread output_to_operand_aliasing calls!",
     ResultShape::kDeclare},
    {Opcode::kAsyncUpdate, async_update, "async_execution_thread calls", ResultShape::kDeclare},
    {Opcode::kCopyDone, copy_done, "", ResultShape::kDeclare},
    {Opcode::kCopyStart, copy_start, "cross_program_prefetch_index", ResultShape::kDeclare},
    {Opcode::kInfeed, infeed, "infeed_config", ResultShape::kDeclare},
    {Opcode::kOutfeed, outfeed, "outfeed_shape outfeed_config", ResultShape::kDeclare},
    {Opcode::kRecv, recv, "channel_id is_host_transfer", ResultShape::kDeclare},
    {Opcode::kRecvDone, recv_done, "channel_id is_host_transfer", ResultShape::kDeclare},
    {Opcode::kSend, send, "channel_id is_host_transfer", ResultShape::kDeclare},
    {Opcode::kSendDone, send_done, "channel_id is_host_transfer", ResultShape::kDeclare},
    {Opcode::kAllGather, all_gather, HLOJIT_GATHERER_ATTRIBUTES, ResultShape::kDeclare},
    {Opcode::kAllGatherDone, done_of_second, "", ResultShape::kDeclare},
    {Opcode::kAllGatherStart, all_gather_start, HLOJIT_GATHERER_ATTRIBUTES, ResultShape::kDeclare},
    {Opcode::kAllReduce, all_reduce, HLOJIT_REDUCER_ATTRIBUTES, ResultShape::kDeclare},
    {Opcode::kAllReduceStart, all_reduce, HLOJIT_REDUCER_ATTRIBUTES, ResultShape::kDeclare},
    {Opcode::kAllToAll, all_to_all, HLOJIT_GROUP_ATTRIBUTES " dimensions " HLOJIT_COLLECTIVE_ATTRIBUTES,
     ResultShape::kDeclare},
    {Opcode::kCollectiveBroadcast, collective_broadcast, HLOJIT_GROUP_ATTRIBUTES " " HLOJIT_COLLECTIVE_ATTRIBUTES,
     ResultShape::kDeclare},
    {Opcode::kCollectivePermute, collective_permute, HLOJIT_PERMUTE_ATTRIBUTES, ResultShape::kDeclare},
    {Opcode::kCollectivePermuteDone, done_of_second, "", ResultShape::kDeclare},
    {Opcode::kCollectivePermuteStart, collective_permute_start, HLOJIT_PERMUTE_ATTRIBUTES, ResultShape::kDeclare},
    {Opcode::kPartitionId, device_id},
    {Opcode::kRaggedAllToAll, ragged_all_to_all, HLOJIT_GROUP_ATTRIBUTES " dimensions " HLOJIT_COLLECTIVE_ATTRIBUTES,
     ResultShape::kDeclare},
    {Opcode::kReduceScatter, reduce_scatter, HLOJIT_GATHERER_ATTRIBUTES " to_apply!", ResultShape::kDeclare},
    {Opcode::kReplicaId, device_id},
};

}  // namespace

std::span<const Entry> effect_rules() { return kOps; }

}  // namespace hlojit::rules

// See flow.h.
#include "runtime/pjrt/flow.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "compiler/analysis/access.h"
#include "compiler/ir/annotation.h"
#include "compiler/text/lexer.h"
#include "runtime/pjrt/wire_out.h"

namespace hlojit::pjrt {
namespace {

// Each combination of parts is on some device: no dimension follows the same axis as another.
bool is_cut_fully(const Shards& s) {
  std::set<std::vector<int64_t>> seen(s.of.begin(), s.of.end());
  return std::ssize(seen) == std::accumulate(s.tiles.begin(), s.tiles.end(), int64_t{1}, std::multiplies<>());
}

// Dimension `to` of `out` is cut as dimension `from` of `s` is, if that goes together with what is cut already.
void cut_alike(Shards& out, size_t to, const Shards& s, size_t from) {
  if (out.tiles[to] != 1 || s.tiles.at(from) == 1) return;
  Shards more = out;
  more.tiles[to] = s.tiles[from];
  for (size_t k = 0; k < more.of.size(); ++k) more.of[k][to] = s.of[k][from];
  if (is_cut_fully(more)) out = std::move(more);
}

// The devices of each group have the same part along the dimension.
bool is_alike_within(const std::vector<std::vector<int64_t>>& groups, const Shards& s, size_t d) {
  return std::ranges::all_of(groups, [&](const std::vector<int64_t>& group) {
    auto part = [&](int64_t device) { return s.of[static_cast<size_t>(device)][d]; };
    return std::ranges::all_of(group, [&](int64_t device) { return part(device) == part(group[0]); });
  });
}

// A dimension of the result that an operand is read along by the same index, and is as long.
struct Followed {
  size_t operand, from, to;
};
std::vector<Followed> followed(const Instruction& i) {
  std::vector<Followed> out;
  VarSource vars;
  Coords result, reduced;
  for (int64_t n : i.shape.dims) result.push_back(IndexExpr::var(vars.fresh(), n));
  AccessRelation relation;
  try {
    for (int64_t n : reduction_sizes(i)) reduced.push_back(IndexExpr::var(vars.fresh(), n));
    relation = access_relation(i, result, reduced, vars);
  } catch (const Error&) {  // updates say where they write instead
    return out;
  }
  for (const Read& read : relation.reads) {
    const Ints& dims = i.operand(read.operand)->shape.dims;
    for (size_t from = 0; from < read.coords.size(); ++from) {
      for (size_t to = 0; to < result.size(); ++to) {
        if (dims[from] == i.shape.dims[to] && dims[from] > 1 && read.coords[from].variables() == result[to].variables())
          out.push_back({read.operand, from, to});
      }
    }
  }
  return out;
}

// What the frontend hands over in an InspectSharding call, by its published layout.
struct InspectionArgs {
  char* sharding;
  size_t sharding_size;
  const char* error;
  void* error_owner;
  void (*free_error)(InspectionArgs*);
};
struct Inspection {
  void (*call)(void* data, InspectionArgs* args);
  void* data;
};

}  // namespace

bool enters_region(const Instruction& i) {
  return i.is(Opcode::kCustomCall) && i.attrs.custom_call_target == "xla.sdy.GlobalToLocalShape";
}
bool leaves_region(const Instruction& i) {
  return i.is(Opcode::kCustomCall) && i.attrs.custom_call_target == "xla.sdy.LocalToGlobalShape";
}

ShardFlow::ShardFlow(const Computation& computation, const Meshes& meshes, const std::vector<Shards>& parameters,
                     int64_t devices)
    : devices_(devices) {
  size_t next = 0;
  for (const Instruction* p : computation.parameters()) {
    if (p->shape.is_tuple())
      throw Error(ErrorKind::kUnsupported, p->location, "a tuple as the parameter of a partitioned program");
    known_[p] = {parameters.at(next++)};
  }
  for (const auto& i : computation.instructions()) {
    if (!i->is(Opcode::kParameter)) known_[i.get()] = compute(*i, meshes);
  }
}

const Shards& ShardFlow::of(const Instruction& value, size_t index) const { return known_.at(&value).at(index); }

std::vector<Shards> ShardFlow::compute(const Instruction& i, const Meshes& meshes) const {
  if (enters_region(i) || leaves_region(i)) return at_border(i, meshes);
  if (i.is(Opcode::kTuple)) {
    std::vector<Shards> out;
    for (const Instruction* x : i.operands()) out.push_back(of(*x));
    return out;
  }
  if (i.is(Opcode::kGetTupleElement)) return {of(*i.operand(0), static_cast<size_t>(i.attrs.tuple_index))};
  if (i.is(Opcode::kWhile) && i.shape.is_tuple() == i.operand(0)->shape.is_tuple()) return known_.at(i.operand(0));
  if (!i.shape.is_tuple()) return {combined(i)};
  std::vector<Shards> out;
  for (const Shape& s : i.shape.elements) out.push_back(no_shards(s.dims.size(), devices_));
  return out;
}

Shards ShardFlow::combined(const Instruction& i) const {
  using enum OpClass;
  Shards out = no_shards(i.shape.dims.size(), devices_);
  if (is_annotation(i) && !i.attrs.sharding->empty()) {
    try {
      return read_shards(*i.attrs.sharding, i.shape, devices_);
    } catch (const Error&) {  // unequal parts: the frontend gets whole arrays
      return out;
    }
  }
  if (is_annotation(i)) return of(*i.operand(0));
  const OpClass c = i.info().op_class;
  if (c != kElementwise && c != kMoves && c != kReduces && c != kContracts) return out;
  for (const auto& [operand, from, to] : followed(i)) cut_alike(out, to, of(*i.operand(operand)), from);
  return out;
}

// The region's own axes cut by its attributes; the others go on through its border.
std::vector<Shards> ShardFlow::at_border(const Instruction& i, const Meshes& meshes) const {
  const bool enter = enters_region(i);
  const std::string& text = i.attrs.frontend_attributes;
  std::vector<std::string> axes = read_manual_axes(frontend_attribute(text, "xla.sdy.manual_axes"));
  std::vector<NamedSharding> given = read_named_shardings(
      frontend_attribute(text, enter ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings"), meshes, devices_);
  std::vector<Shards> out;
  for (size_t k = 0; k < given.size() && k < i.operand_count(); ++k) {
    const size_t rank = i.operand(k)->shape.dims.size();
    Shards manual = shards_along(given[k], axes, devices_);
    manual.tiles.resize(rank, 1);
    for (auto& tile : manual.of) tile.resize(rank, 0);
    Shards s = enter ? no_shards(rank, devices_) : manual;
    const auto groups = groups_along(*given[k].mesh, axes);
    const Shards& from = of(*i.operand(k));
    for (size_t d = 0; d < rank; ++d) {
      if (manual.tiles[d] == 1 && is_alike_within(groups, from, d)) cut_alike(s, d, from, d);
    }
    out.push_back(std::move(s));
  }
  return out;
}

Meshes meshes_of(const Module& module) {
  for (const auto& [name, text] : module.config.other) {
    if (name != "frontend_attributes") continue;
    std::string meshes = frontend_attribute(text, "xla.sdy.meshes");
    if (!meshes.empty()) return read_meshes(meshes);
  }
  return {};
}

std::string sharding_proto(const Shards& shards) {
  constexpr int kType = 1, kDimensions = 3, kDevices = 4, kReplicateLast = 6, kLastDimensions = 8;
  constexpr uint64_t kReplicated = 0, kOther = 3, kUnreduced = 6;
  std::string out;
  if (shards.whole()) return out;
  std::vector<size_t> devices(shards.of.size());
  std::iota(devices.begin(), devices.end(), size_t{0});
  std::ranges::stable_sort(devices, {}, [&](size_t d) {
    std::vector<int64_t> key = shards.of[d];
    if (shards.terms > 1) key.push_back(shards.term[d]);
    return key;
  });
  int64_t left = std::ssize(devices);
  std::string tiles, order;
  auto put_tiles = [&](int64_t n) {
    put_varint(tiles, static_cast<uint64_t>(n));
    left /= n;
  };
  for (int64_t n : shards.tiles) put_tiles(n);
  std::string kinds;
  if (shards.terms > 1) {
    if (left == shards.terms && left == std::ssize(devices)) {
      put_integer(out, kType, kUnreduced);
      return out;
    }
    put_tiles(shards.terms);
    put_varint(kinds, kUnreduced);
  }
  const bool copies = left > 1;
  if (copies) {
    put_tiles(left);
    if (!kinds.empty()) put_varint(kinds, kReplicated);
  }
  for (size_t d : devices) put_varint(order, d);
  put_integer(out, kType, kOther);
  put_bytes(out, kDimensions, tiles);
  put_bytes(out, kDevices, order);
  if (copies && kinds.empty()) put_integer(out, kReplicateLast, 1);
  if (!kinds.empty()) put_bytes(out, kLastDimensions, kinds);
  return out;
}

void answer_inspections(Computation& computation, const ShardFlow& flow) {
  for (Instruction* i : computation.snapshot()) {
    if (!i->is(Opcode::kCustomCall) || i->attrs.custom_call_target != "InspectSharding" || i->operand_count() != 1)
      continue;
    Cursor text(i->attrs.backend_config);
    std::string bytes = text.string();
    Inspection inspection;
    if (bytes.size() != sizeof inspection) continue;
    std::memcpy(&inspection, bytes.data(), sizeof inspection);
    std::string proto = sharding_proto(flow.of(*i->operand(0)));
    InspectionArgs args{proto.data(), proto.size(), nullptr, nullptr, nullptr};
    inspection.call(inspection.data, &args);
    if (args.error) {
      std::string why = args.error;
      if (args.free_error) args.free_error(&args);
      throw Error(ErrorKind::kFailed, i->location, why);
    }
    i->replace_all_uses_with(i->operand(0));
    computation.remove(i);
  }
}

}  // namespace hlojit::pjrt

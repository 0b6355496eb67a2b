// See manual.h.
#include "runtime/pjrt/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/analysis/device_groups.h"
#include "compiler/builder.h"
#include "compiler/ir/annotation.h"
#include "compiler/passes/inline_calls.h"
#include "runtime/pjrt/flow.h"
#include "runtime/pjrt/sdy.h"

namespace hlojit::pjrt {
namespace {

using enum Opcode;

bool is_border(const Instruction& i) { return enters_region(i) || leaves_region(i); }

// The value that annotations and tuples pass on.
Instruction* source(Instruction* x) {
  for (;;) {
    if (is_annotation(*x) && !is_border(*x)) {
      x = x->operand(0);
    } else if (x->is(kGetTupleElement) && x->operand(0)->is(kTuple)) {
      x = x->operand(0)->operand(static_cast<size_t>(x->attrs.tuple_index));
    } else {
      return x;
    }
  }
}

// A whole array made of parts, and the parts.
struct Parts {
  Instruction* part;
  Shards shards;
};

class Regions {
 public:
  explicit Regions(Module& module)
      : module_(module), devices_(module.config.num_partitions), meshes_(meshes_of(module)) {
    for (int64_t d = 0; d < devices_; ++d) all_.push_back(d);
  }

  void run(const std::vector<Shards>& parameters, const std::vector<Shards>& results) {
    std::vector<Computation*> computations;
    for (const auto& c : module_.computations()) computations.push_back(c.get());
    for (Computation* c : computations) {
      Builder b(c);
      b_ = &b;
      made_.clear();
      parts_of_.clear();
      const bool entry = c == module_.entry();
      std::vector<Instruction*> order = c->snapshot();
      if (entry) take_parameters(*c, parameters);
      for (Instruction* i : order) {
        if (is_border(*i)) cross(*i);
      }
      if (entry) give_results(*c, results);
      remove_unused(*c);
      bypass_tuples(*c);
      c->sort_topologically();
    }
  }

 private:
  // ---- parts and wholes ----

  // This device's entry of a table, an s32[]; entry(device) makes it.
  template <class F>
  Instruction* lookup(F entry) {
    Literal table(Shape::array(DType::kS32, {devices_}));
    for (int64_t k = 0; k < devices_; ++k) table.set_int(k, entry(static_cast<size_t>(k)));
    Instruction* id = b_->convert(b_->op(kPartitionId, Builder::Values{}), DType::kS32);
    return b_->reshape(b_->dynamic_slice(b_->constant(std::move(table)), {id}, {1}), {});
  }

  // Of an array that is a sum the first addend is all of it, and the others are 0.
  Instruction* part_of(Instruction* whole, const Shards& shards) {
    if (shards.whole()) return whole;
    auto known = parts_of_.find(source(whole));
    if (known != parts_of_.end() && known->second.shards == shards) return known->second.part;
    Shape part = shard_shape(whole->shape, shards);
    Builder::Values starts;
    for (size_t d = 0; d < part.dims.size(); ++d) {
      starts.push_back(shards.tiles[d] == 1 ? b_->constant(DType::kS32, 0)
                                            : lookup([&](size_t k) { return shards.of[k][d] * part.dims[d]; }));
    }
    Instruction* cut = starts.empty() ? whole : b_->dynamic_slice(whole, starts, part.dims);
    if (shards.terms == 1) return cut;
    Instruction* is_first =
        b_->compare(Direction::kEq, lookup([&](size_t k) { return shards.term[k]; }), b_->constant(DType::kS32, 0));
    Instruction* none = b_->broadcast(b_->constant(part.type, 0), part.dims);
    return b_->select(is_first, cut, none);
  }

  // The parts of the group's devices put together, and added up if they are addends. Of devices that have
  // the same part the first gives it.
  Instruction* whole_of(Instruction* part, const Shards& shards, const DeviceGroups& groups) {
    if (shards.whole()) return part;
    const auto rank = part->shape.dims.size();
    Ints one = part->shape.dims, many = one;
    one.insert(one.begin(), 1);
    many.insert(many.begin(), std::ssize(groups[0]));
    Attributes a;
    a.dimensions = {0};
    a.has_dimensions = true;
    a.other = {{"channel_id", "1"}, {"replica_groups", groups_to_text(groups)}, {"use_global_device_ids", "true"}};
    Instruction* rows =
        b_->op(kAllGather, Shape::array(part->shape.type, many), {b_->reshape(part, one)}, std::move(a));
    made_.push_back(rows);
    // Rows in the order of the tiles, then tiles beside each other.
    Builder::Values tiles;
    std::vector<int64_t> tile(rank, 0);
    for (bool more = true; more;) {
      Instruction* sum = nullptr;
      for (int64_t term = 0; term < shards.terms; ++term) {
        auto has = [&](int64_t device) {
          auto k = static_cast<size_t>(device);
          return shards.of[k] == tile && (shards.terms == 1 || shards.term[k] == term);
        };
        int64_t k = std::ranges::find_if(groups[0], has) - groups[0].begin();
        if (k == std::ssize(groups[0]))
          throw Error(ErrorKind::kUnsupported, "a part of a region's result is on no device");
        Instruction* row = b_->slice_in_dim(rows, k, k + 1, 1, 0);
        sum = sum ? b_->binary(kAdd, sum, row) : row;
      }
      tiles.push_back(sum);
      more = false;
      for (size_t d = rank; d-- > 0 && !more;) {
        more = ++tile[d] < shards.tiles[d];
        if (!more) tile[d] = 0;
      }
    }
    Ints sizes = shards.tiles, order, dims;
    for (size_t d = 0; d < rank; ++d) {
      sizes.push_back(part->shape.dims[d]);
      order.push_back(static_cast<int64_t>(d));
      order.push_back(static_cast<int64_t>(rank + d));
      dims.push_back(shards.tiles[d] * part->shape.dims[d]);
    }
    Instruction* joined = tiles.size() == 1 ? tiles[0] : b_->concat_in_dim(tiles, 0);
    Instruction* whole = b_->reshape(b_->transpose(b_->reshape(joined, sizes), order), dims);
    parts_of_[whole] = {part, shards};
    return whole;
  }

  // ---- borders of a region ----

  void cross(Instruction& call) {
    const bool enter = enters_region(call);
    std::vector<std::string> axes =
        read_manual_axes(frontend_attribute(*call.attrs.frontend_attributes, "xla.sdy.manual_axes"));
    std::vector<NamedSharding> shardings = read_named_shardings(
        frontend_attribute(*call.attrs.frontend_attributes, enter ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings"),
        meshes_, devices_);
    if (shardings.size() != call.operand_count()) {
      throw Error(ErrorKind::kUnsupported, call.location, "a region with another number of shardings than of values");
    }
    Builder::Values results;
    for (size_t k = 0; k < shardings.size(); ++k) {
      Instruction* x = call.operand(k);
      const Shape& wanted = call.shape.is_tuple() ? call.shape.elements.at(k) : call.shape;
      if (!x->shape.is_array()) {
        results.push_back(x);
        continue;
      }
      Shards shards = shards_along(shardings[k], axes, devices_);
      shards.tiles.resize(x->shape.dims.size(), 1);
      for (auto& tile : shards.of) tile.resize(x->shape.dims.size(), 0);
      results.push_back(enter ? part_of(x, shards) : whole_of(x, shards, groups_along(*shardings[k].mesh, axes)));
      if (results.back()->shape.dims != wanted.dims) {
        throw Error(ErrorKind::kUnsupported, call.location,
                    fmt::format("{} is cut into parts of {}, not {}", x->shape.to_string(false),
                                wanted.to_string(false), results.back()->shape.to_string(false)));
      }
    }
    Instruction* result = call.shape.is_tuple() ? b_->tuple(results) : results.at(0);
    call.replace_all_uses_with(result);
    made_.push_back(&call);
  }

  // ---- the entry ----

  void take_parameters(Computation& entry, const std::vector<Shards>& shards) {
    size_t leaf = 0;
    for (Instruction* p : std::vector<Instruction*>(entry.parameters())) {
      if (p->shape.is_tuple())
        throw Error(ErrorKind::kUnsupported, p->location, "a tuple as the parameter of a partitioned program");
      const Shards& s = shards.at(leaf++);
      if (!p->shape.is_array() || s.whole()) continue;
      std::vector<Instruction*> users(p->users().begin(), p->users().end());
      p->shape = shard_shape(p->shape, s);
      Instruction* whole = whole_of(p, s, {all_});
      for (Instruction* user : users) {
        for (size_t k = 0; k < user->operand_count(); ++k) {
          if (user->operand(k) == p) user->set_operand(k, whole);
        }
      }
      if (entry.root() == p) entry.set_root(whole);
    }
  }

  void give_results(Computation& entry, const std::vector<Shards>& shards) {
    Instruction* root = entry.root();
    if (!root->shape.is_tuple()) {
      if (root->shape.is_array()) entry.set_root(part_of(root, shards.at(0)));
      return;
    }
    Builder::Values results;
    for (size_t k = 0; k < root->shape.elements.size(); ++k) {
      const Shape& s = root->shape.elements[k];
      if (s.is_tuple())
        throw Error(ErrorKind::kUnsupported, root->location, "a nested tuple as the result of a partitioned program");
      Instruction* x = root->is(kTuple) ? root->operand(k) : b_->get_tuple_element(root, static_cast<int64_t>(k));
      results.push_back(s.is_array() ? part_of(x, shards.at(k)) : x);
    }
    entry.set_root(b_->tuple(results));
  }

  // What was gathered for nobody.
  void remove_unused(Computation& c) {
    c.sort_topologically();
    std::vector<Instruction*> order = c.snapshot();
    for (auto i = order.rbegin(); i != order.rend(); ++i) {
      bool ours = std::ranges::find(made_, *i) != made_.end() || !has_side_effect(**i);
      if (ours && (*i)->users().empty() && c.root() != *i && !(*i)->is(kParameter)) c.remove(*i);
    }
  }

  Module& module_;
  int64_t devices_;
  std::vector<int64_t> all_;
  Meshes meshes_;
  Builder* b_ = nullptr;
  std::map<const Instruction*, Parts> parts_of_;  // by whole array
  std::vector<Instruction*> made_;                // may go if nothing uses them, side effects or not
};

}  // namespace

bool tells_devices_apart(const Module& module) {
  for (const auto& c : module.computations()) {
    for (const auto& i : c->instructions()) {
      bool asks = i->is(kReplicaId) || i->is(kPartitionId);
      if (asks || is_border(*i) || has_trait(*i, op_trait::kCollective)) return true;
    }
  }
  return false;
}

void make_program_of_one_device(Module& module, const std::vector<Shards>& parameters,
                                const std::vector<Shards>& results) {
  Regions(module).run(parameters, results);
  module.remove_unreachable();
}

}  // namespace hlojit::pjrt

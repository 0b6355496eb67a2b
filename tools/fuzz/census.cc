// See census.h. It counts what modules hold, not what the generator says it does: a function that never
// succeeds is found here.
#include "tools/fuzz/census.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "compiler/ir/module.h"
#include "compiler/passes/dynamic.h"
#include "tools/fuzz/generate.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

constexpr std::string_view kEachRun = "gives other values at each run, of which nothing holds for all";

const std::map<Opcode, std::string_view> kUndrawn = {
    {kDynamicReshape, "its meaning is that of reshape, which is drawn with such sizes"},
    {kRngGetAndUpdateState, kEachRun},
};
const std::map<DType, std::string_view> kUndrawnTypes = {
    {DType::kS1, "no op of the seeds has it"},
    {DType::kU1, "no op of the seeds has it"},
};

bool is_control(const Instruction& i) { return i.is(kWhile) || i.is(kConditional) || i.is(kCall); }

struct Census {
  std::map<Opcode, std::pair<int64_t, std::set<DType>>> ops;
  std::map<DType, int64_t> types;
  std::map<std::string, int64_t> layouts, shapes, modules;

  void count(const Shape& s) {
    for (const Shape& e : s.elements) count(e);
    if (!s.is_array()) return;
    ++types[s.type];
    const Layout& l = s.layout;
    bool starred = false;
    for (const Tile& t : l.tiles) {
      for (int64_t d : t.dims) starred |= d == Tile::kCombine;
    }
    layouts["permuted"] += l.minor_to_major != Layout::descending(s.rank()).minor_to_major;
    layouts["tiled"] += l.tiles.size() == 1;
    layouts["tiled again"] += l.tiles.size() > 1;
    layouts["tiled over dimensions made one"] += starred;
    layouts["packed or spread"] += l.element_size_in_bits != 0;
  }

  // What several instructions make up, or an instruction and what it calls.
  void count_shapes(const Instruction& i, std::set<const Computation*>& called) {
    shapes["after others by control predecessors"] += !i.control_predecessors.empty();
    shapes["parameters that are tuples"] +=
        i.is(kParameter) && i.shape.is_tuple() && i.parent() == i.parent()->parent()->entry();
    shapes["collectives outside of the entry"] +=
        has_trait(i, op_trait::kCollective) && i.parent() != i.parent()->parent()->entry();
    bool runs = is_control(i) || i.is(kFusion) || i.is(kAsyncStart);
    for (const Computation* c : i.called) {
      shapes[std::string(op_name(i.opcode)) + " of a computation called before"] += !called.insert(c).second;
      if (runs) continue;
      bool several = c->parameters().size() > 0 && i.operand_count() > 0;
      DType own = several ? c->parameters()[0]->shape.type : i.shape.type;
      shapes[std::string(op_name(i.opcode)) + " in another precision"] +=
          several && i.operand(0)->shape.is_array() && own != i.operand(0)->shape.type;
      for (const auto& inner : c->instructions()) {
        if (is_control(*inner)) ++shapes[fmt::format("{} by a {}", op_name(i.opcode), op_name(inner->opcode))];
      }
    }
  }

  void count(const Module& m) {
    std::set<const Computation*> called;
    for (const auto& c : m.computations()) {
      for (const auto& i : c->instructions()) {
        auto& [times, with] = ops[i->opcode];
        ++times;
        if (i->shape.is_array()) with.insert(i->shape.type);
        for (const Instruction* o : i->operands()) {
          if (o->shape.is_array()) with.insert(o->shape.type);
        }
        count(i->shape);
        count_shapes(*i, called);
      }
    }
    modules["with an entry layout"] += m.config.has_entry_layout;
    modules["with sizes known at run time"] += has_dynamic_sizes(m);
    modules["with aliases"] += !m.config.input_output_alias.empty();
    modules["on several replicas"] += m.config.replica_count > 1;
    modules["on several partitions"] += m.config.num_partitions > 1;
  }
};

}  // namespace

std::string census(uint64_t first, int64_t count, const std::vector<std::string>& always) {
  Census c;
  for (int64_t k = 0; k < count; ++k) c.count(*generate(first + static_cast<uint64_t>(k), always));
  std::string text, undrawn, missing;
  for (int k = 0; k < op_count(); ++k) {
    auto op = static_cast<Opcode>(k);
    if (auto found = c.ops.find(op); found != c.ops.end()) {
      text += fmt::format("{:24} {:6}", op_name(op), found->second.first);
      for (DType t : found->second.second) text += fmt::format(" {}", dtype_name(t));
      text += "\n";
    } else if (auto reason = kUndrawn.find(op); reason != kUndrawn.end()) {
      undrawn += fmt::format("not drawn: {}: {}\n", op_name(op), reason->second);
    } else {
      missing += fmt::format(" {}", op_name(op));
    }
  }
  for (int k = 1; k < 64; ++k) {
    auto t = static_cast<DType>(k);
    if (!is_array_type(t) || c.types[t] > 0) continue;
    auto reason = kUndrawnTypes.find(t);
    if (reason != kUndrawnTypes.end())
      undrawn += fmt::format("not drawn: {}: {}\n", dtype_name(t), reason->second);
    else
      missing += fmt::format(" {}", dtype_name(t));
  }
  for (auto& [what, times] : c.shapes) {
    if (times > 0) text += fmt::format("{}: {}\n", what, times);
  }
  for (auto& [what, times] : c.layouts) text += fmt::format("arrays {}: {}\n", what, times);
  for (auto& [what, times] : c.modules) text += fmt::format("modules {}: {}\n", what, times);
  if (!missing.empty()) {
    throw Error(ErrorKind::kFailed, fmt::format("neither drawn in {} modules nor given a reason:{}", count, missing));
  }
  return text + undrawn;
}

}  // namespace hlojit::tools::fuzz

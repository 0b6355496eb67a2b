// From a frontend's program to a compiled one.
//
// Programs come as "mlir" (StableHLO or VHLO), which the client's decoder turns into an HloModuleProto,
// as "hlo" (the proto) or as "hlo_with_config" (the proto wrapped). What a frontend must be told of its
// program (leaves, donations, layouts, costs) is read off the module here, once.
#include <fmt/format.h>

#include "codegen/digest.h"
#include "compiler/ir/module.h"
#include "compiler/passes/inline_calls.h"
#include "compiler/proto/wire.h"
#include "layout/index.h"
#include "runtime/entry_layouts.h"
#include "runtime/pjrt/brief.h"
#include "runtime/pjrt/flow.h"
#include "runtime/pjrt/layout_modes.h"
#include "runtime/pjrt/manual.h"
#include "runtime/pjrt/objects.h"
#include "runtime/pjrt/part_calls.h"

namespace hlojit::pjrt {
namespace {

void append_leaves(const Shape& shape, std::vector<Leaf>& out) {
  if (shape.is_tuple()) {
    for (const Shape& e : shape.elements) append_leaves(e, out);
    return;
  }
  Shape leaf = shape;
  if (leaf.is_array()) leaf.dynamic.clear();
  out.push_back({leaf, to_pjrt(leaf.type)});
}

int64_t count_leaves(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  int64_t n = 0;
  for (const Shape& e : shape.elements) n += count_leaves(e);
  return n;
}

// Number of the leaf at `index`, tokens counted.
size_t leaf_number(const Shape& shape, std::span<const int64_t> index) {
  int64_t n = 0;
  const Shape* s = &shape;
  for (int64_t at : index) {
    for (int64_t k = 0; k < at; ++k) n += count_leaves(s->elements.at(static_cast<size_t>(k)));
    s = &s->elements.at(static_cast<size_t>(at));
  }
  return static_cast<size_t>(n);
}

size_t parameter_leaf(const Module& module, int64_t parameter, std::span<const int64_t> index) {
  size_t n = 0;
  const auto& all = module.entry()->parameters();
  for (int64_t p = 0; p < parameter; ++p) n += static_cast<size_t>(count_leaves(all.at(static_cast<size_t>(p))->shape));
  return n + leaf_number(all.at(static_cast<size_t>(parameter))->shape, index);
}

// Gives each donated parameter that no result aliases the first result of its shape that is still free.
void pair_donors(Module& module) {
  const Shape& result = module.result_shape();
  std::vector<Ints> places;
  if (result.is_tuple()) {
    for (size_t k = 0; k < result.elements.size(); ++k) places.push_back({static_cast<int64_t>(k)});
  } else {
    places.push_back({});
  }
  auto& aliases = module.config.input_output_alias;
  // Each parameter is named once: as a donor or in an alias.
  std::erase_if(module.config.buffer_donor, [&](const auto& donor) {
    const auto& [parameter, index] = donor;
    if (!index.empty()) return false;
    const Shape& given = module.parameter_shape(static_cast<size_t>(parameter));
    for (const Ints& place : places) {
      const Shape& wanted = place.empty() ? result : result.elements[static_cast<size_t>(place[0])];
      bool taken = std::any_of(aliases.begin(), aliases.end(), [&](const Alias& a) { return a.output_index == place; });
      if (taken || !given.is_array() || wanted != given) continue;
      aliases.push_back({.output_index = place, .operand = parameter, .operand_index = {}, .must = false});
      return true;
    }
    return false;
  });
}

// Whether XLA takes a donated parameter from the caller: one that has no result's size stays the caller's.
bool has_size_of_a_result(const Program& p, size_t parameter) {
  const Shape& given = p.parameters.at(parameter).shape;
  return std::ranges::any_of(p.results, [&](const Leaf& result) {
    return given.is_array() && result.shape.is_array() && physical_size(result.shape) == physical_size(given);
  });
}

// The parameters and results as the frontend knows them: with default layouts, unless the program is HLO, which
// says its own.
void list_leaves(Program& p, const Module& module) {
  for (size_t k = 0; k < module.entry()->parameters().size(); ++k)
    append_leaves(module.parameter_shape(k), p.parameters);
  append_leaves(module.result_shape(), p.results);
  if (!p.default_layouts) return;
  for (auto* leaves : {&p.parameters, &p.results}) {
    for (Leaf& l : *leaves) {
      if (l.shape.is_array()) l.shape.layout = Layout::descending(l.shape.rank());
    }
  }
}

std::vector<Shape> arrays_of(const std::vector<Shape>& shapes) {
  std::vector<Shape> out;
  std::ranges::copy_if(shapes, std::back_inserter(out), &Shape::is_array);
  return out;
}
std::vector<Shape> arrays_of(const std::vector<Leaf>& leaves) {
  std::vector<Shape> shapes;
  for (const Leaf& l : leaves) shapes.push_back(l.shape);
  return arrays_of(shapes);
}

// Tells the module how its arrays lie: whole ones for all devices, or those of one.
void fix_layouts(const Program& p, Module& module) {
  if (p.joint) {
    set_entry_layouts(module, arrays_of(p.whole_parameters), arrays_of(p.whole_results));
  } else {
    set_entry_layouts(module, arrays_of(p.parameters), arrays_of(p.results));
  }
}

// Inlines the calls of a partitioned program, and turns its leaves into those of one device. `apart`: it tells
// devices apart itself.
void cut(Program& p, Module& module, bool inspected, bool apart) {
  const std::string result_sharding = module.entry()->root()->attrs.sharding;
  inline_calls(module, {});
  const int64_t devices = p.options.partitions;
  auto cut_leaf = [&](Leaf& leaf, Shards shards, std::vector<Shape>& whole, std::vector<Shards>& all) {
    whole.push_back(leaf.shape);
    if (!shards.whole() && leaf.shape.layout.tiled())
      fail(PJRT_Error_Code_UNIMPLEMENTED, fmt::format("hlojit: {} is not cut among devices", leaf.shape.to_string()));
    if (leaf.shape.is_array() && !shards.whole()) leaf.shape = shard_shape(leaf.shape, shards);
    all.push_back(std::move(shards));
  };
  auto read = [&](const Leaf& leaf, std::string_view text) {
    return leaf.shape.is_array() ? read_shards(text, leaf.shape, devices) : no_shards(0, devices);
  };
  Computation& entry = *module.entry();
  size_t next = 0;
  for (const Instruction* i : entry.parameters()) {
    for (std::string_view text : split_sharding(*i->attrs.sharding, static_cast<size_t>(count_leaves(i->shape)))) {
      Leaf& leaf = p.parameters.at(next++);
      cut_leaf(leaf, read(leaf, text), p.whole_parameters, p.parameter_shards);
    }
  }
  const ShardFlow flow(entry, meshes_of(module), p.parameter_shards, devices);
  if (inspected) answer_inspections(entry, flow);
  p.result_is_tuple = entry.root()->shape.is_tuple();
  next = 0;
  for (std::string_view text : split_sharding(result_sharding, p.results.size())) {
    Leaf& leaf = p.results.at(next);
    const std::vector<bool>& open = p.options.open_results;
    const bool follows =
        text.empty() || (!open.empty() && open[open.size() == 1 ? 0 : std::min(next, open.size() - 1)]);
    cut_leaf(leaf, follows ? flow.of(*entry.root(), next) : read(leaf, text), p.whole_results, p.result_shards);
    ++next;
  }
  if (!apart) call_for_each_part(entry, flow, devices);
}

void fill_tables(Program& p) {
  for (const Leaf& l : p.parameters)
    p.parameter_layouts.push_back({l.shape.is_array() ? to_string(l.shape.layout) : "{}"});
  for (const Leaf& l : p.results) {
    p.result_layouts.push_back({l.shape.is_array() ? to_string(l.shape.layout) : "{}"});
    p.result_types.push_back(l.type);
    p.result_dims.insert(p.result_dims.end(), l.shape.dims.begin(), l.shape.dims.end());
    p.result_ranks.push_back(l.shape.dims.size());
  }
  for (size_t memory : p.result_memories) {
    p.memory_kinds.push_back(kMemoryKinds[memory]);
    p.memory_kind_sizes.push_back(std::string_view(kMemoryKinds[memory]).size());
  }
  for (auto& l : p.parameter_layouts) p.parameter_layout_pointers.push_back(&l);
  for (auto& l : p.result_layouts) p.result_layout_pointers.push_back(&l);
  p.costs = {named("flops", static_cast<float>(p.code->flops())),
             named("bytes accessed", static_cast<float>(p.code->io_bytes_read() + p.code->io_bytes_written()))};
}

std::string decode(PJRT_Client* client, std::string_view program) {
  if (!client->decoder) {
    fail(PJRT_Error_Code_UNIMPLEMENTED,
         "hlojit: programs in MLIR need a decoder, which this client was made without (client option \"decoder\"; the "
         "Python "
         "package hlojit[jax] brings one); formats \"hlo\" and \"hlo_with_config\" need none");
  }
  std::string out;
  int status = client->decoder(program.data(), program.size(), &out, [](void* sink, const char* bytes, size_t size) {
    static_cast<std::string*>(sink)->assign(bytes, size);
  });
  if (status != 0) fail(PJRT_Error_Code_INVALID_ARGUMENT, "hlojit: the program could not be read: " + out);
  return out;
}

PJRT_Error* Client_Compile(PJRT_Client_Compile_Args* a) {
  return guard([&] {
    std::string_view format(a->program->format, a->program->format_size), code(a->program->code, a->program->code_size);
    std::string hlo;
    bool mlir = format == "mlir";
    if (mlir) {
      hlo = decode(a->client, code);
    } else if (format == "hlo") {
      hlo = code;
    } else if (format == "hlo_with_config") {
      hlo = proto::Message(code).text(1);
    } else {
      fail(PJRT_Error_Code_UNIMPLEMENTED,
           fmt::format("hlojit reads programs in the formats mlir, hlo and hlo_with_config, not {}", format));
    }
    a->executable = load_program(
        make_program(a->client, std::move(hlo), std::string(a->compile_options, a->compile_options_size), mlir, mlir));
  });
}

// A frontend's options by name: XLA's flags and build options change nothing here; others are mistakes.
void check_option(std::string_view name) {
  constexpr std::string_view kKnown[] = {"exec_time_optimization_effort", "memory_fitting_effort", "optimization_level",
                                         "memory_fitting_level",          "num_replicas",          "num_partitions"};
  if (name.starts_with("xla_") || std::ranges::find(kKnown, name) != std::end(kKnown)) return;
  fail(PJRT_Error_Code_INVALID_ARGUMENT, fmt::format("No such compile option: '{}'", name));
}

// A folder's name, whatever the program is called.
std::string dump_name(int number, const std::string& program) {
  std::string name = fmt::format("{:04}_{}", number, program);
  std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '-'; }, '_');
  return name;
}

}  // namespace

CompileOptions read_compile_options(std::string_view bytes) {
  proto::Message all(bytes);
  proto::Message build = all.message(3);
  CompileOptions o;
  o.portable = all.boolean(4);
  o.replicas = std::max<int64_t>(build.integer(4), 1);
  o.partitions = std::max<int64_t>(build.integer(5), 1);
  o.spmd = build.boolean(6);
  for (int64_t open : build.integers(12)) o.open_results.push_back(open != 0);
  for (const proto::Message& option : all.messages(7)) check_option(option.text(1));
  proto::Message assignment = build.message(9);
  std::vector<std::vector<int64_t>> by_partition;
  for (const proto::Message& c : assignment.messages(3)) by_partition.push_back(c.integers(1));
  for (int64_t r = 0; r < o.replicas; ++r) {
    for (const auto& ids : by_partition) {
      if (static_cast<size_t>(r) < ids.size()) o.devices.push_back(ids[static_cast<size_t>(r)]);
    }
  }
  return o;
}

std::shared_ptr<Program> make_program(PJRT_Client* client, std::string hlo, std::string options_proto,
                                      bool default_layouts, bool inspected, std::string_view code) {
  auto p = std::make_shared<Program>();
  p->client = client;
  p->proto = std::move(hlo);
  p->options_proto = std::move(options_proto);
  p->options = read_compile_options(p->options_proto);
  ModulePtr parsed = parse(p->proto);
  std::unique_ptr<Module> module = parsed->clone();
  p->partitioned = p->options.partitions > 1 && p->options.spmd;
  const bool apart = tells_devices_apart(*module);
  p->default_layouts = default_layouts;
  list_leaves(*p, *module);
  apply_layout_modes(*module, p->parameters, p->results);
  p->result_memories = read_memory_kinds(*module, p->results.size());
  if (p->partitioned) cut(*p, *module, inspected, apart);
  auto sums = [](const std::vector<Shards>& all) {
    return std::ranges::any_of(all, [](const Shards& s) { return s.terms > 1; });
  };
  p->joint = p->partitioned && !apart && !sums(p->parameter_shards) && !sums(p->result_shards);
  module->config.replica_count = p->options.replicas;
  module->config.num_partitions = p->joint ? 1 : p->options.partitions;
  if (p->partitioned && !p->joint) {
    make_program_of_one_device(*module, p->parameter_shards, p->result_shards);
    module->config.has_entry_layout = false;  // it spoke of whole arrays
  }
  fix_layouts(*p, *module);
  const ModuleConfig& config = module->config;
  pair_donors(*module);
  p->donated.resize(p->parameters.size());
  for (const Alias& a : config.input_output_alias)
    p->donated.at(parameter_leaf(*module, a.operand, a.operand_index)) = true;
  for (const auto& [parameter, index] : config.buffer_donor) {
    const size_t leaf = parameter_leaf(*module, parameter, index);
    p->donated.at(leaf) = has_size_of_a_result(*p, leaf);
  }
  p->name = module->name;
  if (p->options.replicas * p->options.partitions == 1) {
    p->brief = is_brief(*module);
    p->calls_python = calls_python(*module);
  }
  p->fingerprint = codegen::digest(codegen::digest(p->proto) + p->options_proto);
  Options options = client->options;
  if (!options.dump_dir.empty()) options.dump_dir += "/" + dump_name(client->dumped.fetch_add(1), p->name);
  p->code.emplace(code.empty() ? compile(ModulePtr(std::move(module)), options) : load(code, options));
  fill_tables(*p);
  return p;
}

PJRT_LoadedExecutable* load_program(std::shared_ptr<Program> program) {
  auto loaded = std::make_unique<PJRT_LoadedExecutable>();
  const CompileOptions& o = program->options;
  auto count = static_cast<size_t>(o.replicas * o.partitions);
  if (o.devices.size() >= count) {
    for (size_t k = 0; k < count; ++k) loaded->devices.push_back(program->client->device(o.devices[k]));
  } else if (!o.portable) {
    for (size_t k = 0; k < count; ++k) loaded->devices.push_back(program->client->device(static_cast<int64_t>(k)));
  }
  for (size_t k = 0; k < loaded->devices.size(); ++k) {
    auto at = static_cast<int>(k), width = static_cast<int>(o.partitions);
    loaded->logical_ids.push_back({at / width, at % width});
  }
  loaded->program = std::move(program);
  return loaded.release();
}

void add_program_functions(PJRT_Api& api) { HLOJIT_PJRT_SET(api, Client_Compile); }

}  // namespace hlojit::pjrt

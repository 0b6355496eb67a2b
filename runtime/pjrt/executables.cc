// Questions about compiled programs; serialised ones.
//
// A serialised program is what it was made from (options and HLO) and its compiled code, behind a line that
// names the version.
#include <fmt/format.h>

#include <cstring>

#include "compiler/proto/wire.h"
#include "hlojit/version.h"
#include "layout/index.h"
#include "runtime/pjrt/flow.h"
#include "runtime/pjrt/objects.h"
#include "runtime/pjrt/wire_out.h"

namespace hlojit::pjrt {
namespace {

namespace wire = hlojit::proto;

constexpr std::string_view kSerializedMark = "hlojit-program " HLOJIT_VERSION "\n";

template <class Opaque>
void give_bytes(std::string bytes, const char*& data, size_t& size, Opaque*& owner, void (*&deleter)(Opaque*)) {
  auto* kept = new std::string(std::move(bytes));
  data = kept->data();
  size = kept->size();
  owner = reinterpret_cast<Opaque*>(kept);
  deleter = [](Opaque* p) { delete reinterpret_cast<std::string*>(p); };
}

// What HloModuleProto says of a partitioned program: the result's sharding (12) and the parameters' (14),
// a tuple's as those of its elements. XLA's rule gives the empty tuple one element.
std::string shardings(const Program& program) {
  if (!program.partitioned) return {};
  constexpr int kTupleElement = 5, kResult = 12, kParameter = 14;
  constexpr std::string_view kTupleType("\x08\x02", 2);
  std::string out, result;
  if (program.result_is_tuple) {
    result = kTupleType;
    for (const Shards& s : program.result_shards) put_bytes(result, kTupleElement, sharding_proto(s));
    if (program.result_shards.empty()) put_bytes(result, kTupleElement, "");
  } else {
    result = sharding_proto(program.result_shards.at(0));
  }
  put_bytes(out, kResult, result);
  for (const Shards& s : program.parameter_shards) put_bytes(out, kParameter, sharding_proto(s));
  return out;
}

std::string device_assignment(const PJRT_LoadedExecutable& e) {
  const CompileOptions& o = e.program->options;
  std::string out = "\x08";
  put_varint(out, static_cast<uint64_t>(o.replicas));
  out += "\x10";
  put_varint(out, static_cast<uint64_t>(o.partitions));
  for (size_t p = 0; p < static_cast<size_t>(o.partitions); ++p) {
    std::string ids;
    for (size_t r = 0; r < static_cast<size_t>(o.replicas); ++r) {
      size_t k = r * static_cast<size_t>(o.partitions) + p;
      put_varint(ids, k < e.devices.size() ? static_cast<uint64_t>(e.devices[k]->description.id) : 0);
    }
    std::string one;
    put_bytes(one, 1, ids);
    put_bytes(out, 3, one);
  }
  return out;
}

PJRT_Error* Executable_Destroy(PJRT_Executable_Destroy_Args* a) {
  return guard([&] { delete a->executable; });
}
PJRT_Error* Executable_Name(PJRT_Executable_Name_Args* a) {
  a->executable_name = a->executable->program->name.data();
  a->executable_name_size = a->executable->program->name.size();
  return nullptr;
}
PJRT_Error* Executable_NumReplicas(PJRT_Executable_NumReplicas_Args* a) {
  a->num_replicas = static_cast<size_t>(a->executable->program->options.replicas);
  return nullptr;
}
PJRT_Error* Executable_NumPartitions(PJRT_Executable_NumPartitions_Args* a) {
  a->num_partitions = static_cast<size_t>(a->executable->program->options.partitions);
  return nullptr;
}
PJRT_Error* Executable_NumOutputs(PJRT_Executable_NumOutputs_Args* a) {
  a->num_outputs = a->executable->program->results.size();
  return nullptr;
}
PJRT_Error* Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args* a) {
  a->size_in_bytes = 0;  // not known
  return nullptr;
}
PJRT_Error* Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args* a) {
  a->properties = a->executable->program->costs.data();
  a->num_properties = a->executable->program->costs.size();
  return nullptr;
}
PJRT_Error* Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args* a) {
  const Program& p = *a->executable->program;
  a->num_outputs = p.results.size();
  a->memory_kinds = p.memory_kinds.data();
  a->memory_kind_sizes = p.memory_kind_sizes.data();
  return nullptr;
}
PJRT_Error* Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args* a) {
  a->output_types = a->executable->program->result_types.data();
  a->num_output_types = a->executable->program->result_types.size();
  return nullptr;
}
PJRT_Error* Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args* a) {
  const Program& p = *a->executable->program;
  a->num_outputs = p.results.size();
  a->dims = p.result_dims.data();
  a->dim_sizes = p.result_ranks.data();
  return nullptr;
}
// The program as it came: HLO has no binary writer here.
PJRT_Error* Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args* a) {
  return guard([&] {
    // HloModuleProtoWithConfig: the module (1) and its HloModuleConfigProto (2), of which the program's
    // shape (1), field 4 of the module, must be there; without replicas (4) and partitions (5) its text says 0 of each,
    // which no parser takes.
    const Program& program = *a->executable->program;
    std::string module = program.proto + shardings(program);
    std::string config, proto;
    put_bytes(config, 1, wire::Message(module).text(4));
    put_integer(config, 4, static_cast<uint64_t>(program.options.replicas));
    put_integer(config, 5, static_cast<uint64_t>(program.options.partitions));
    put_bytes(proto, 1, module);
    put_bytes(proto, 2, config);
    static constexpr std::string_view kFormat = "hlo_with_config";
    a->program->format = kFormat.data();
    a->program->format_size = kFormat.size();
    if (a->program->code) {
      if (a->program->code_size < proto.size())
        fail(PJRT_Error_Code_INVALID_ARGUMENT, fmt::format("the program needs {} bytes", proto.size()));
      std::memcpy(a->program->code, proto.data(), proto.size());
    }
    a->program->code_size = proto.size();
  });
}
PJRT_Error* Executable_Fingerprint(PJRT_Executable_Fingerprint_Args* a) {
  a->executable_fingerprint = a->executable->program->fingerprint.data();
  a->executable_fingerprint_size = a->executable->program->fingerprint.size();
  return nullptr;
}
PJRT_Error* LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args* a) {
  a->executable_fingerprint = a->executable->program->fingerprint.data();
  a->executable_fingerprint_size = a->executable->program->fingerprint.size();
  return nullptr;
}

int64_t total_bytes(const std::vector<Leaf>& leaves) {
  int64_t n = 0;
  for (const Leaf& l : leaves) n += l.shape.is_array() ? physical_size(l.shape) : 0;
  return n;
}
PJRT_Error* Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args* a) {
  return guard([&] {
    const Program& p = *a->executable->program;
    a->generated_code_size_in_bytes = 0;
    a->argument_size_in_bytes = total_bytes(p.parameters);
    a->output_size_in_bytes = total_bytes(p.results);
    a->alias_size_in_bytes = 0;
    for (size_t k = 0; k < p.code->donors().size(); ++k) {
      if (p.code->donors()[k] >= 0) a->alias_size_in_bytes += physical_size(p.code->result_shapes()[k]);
    }
    a->temp_size_in_bytes = p.code->arena_bytes();
    a->host_generated_code_size_in_bytes = a->host_argument_size_in_bytes = a->host_output_size_in_bytes = 0;
    a->host_alias_size_in_bytes = a->host_temp_size_in_bytes = 0;
    int64_t all = a->argument_size_in_bytes + a->output_size_in_bytes - a->alias_size_in_bytes + a->temp_size_in_bytes;
    if (a->struct_size >= offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, total_size_in_bytes))
      a->peak_memory_in_bytes = all;
    if (a->struct_size >= sizeof *a) a->total_size_in_bytes = all;
  });
}

PJRT_Error* Executable_Serialize(PJRT_Executable_Serialize_Args* a) {
  return guard([&] {
    const Program& p = *a->executable->program;
    std::string bytes(kSerializedMark);
    bytes.push_back(p.default_layouts ? 1 : 0);
    for (const std::string& part : {p.options_proto, p.code->serialize(), p.proto}) put_bytes(bytes, 1, part);
    give_bytes(std::move(bytes), a->serialized_bytes, a->serialized_bytes_size, a->serialized_executable,
               a->serialized_executable_deleter);
  });
}

PJRT_Error* Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args* a) {
  return guard([&] {
    std::string_view bytes(a->serialized_executable, a->serialized_executable_size);
    if (!bytes.starts_with(kSerializedMark))
      fail(PJRT_Error_Code_INVALID_ARGUMENT, "not a program that hlojit " HLOJIT_VERSION " serialised");
    bytes.remove_prefix(kSerializedMark.size());
    bool default_layouts = wire::take_varint(bytes) != 0;
    auto part = [&] {
      if (bytes.empty()) fail(PJRT_Error_Code_INVALID_ARGUMENT, "the serialised program is damaged");
      return std::string(wire::take_field(bytes).bytes);
    };
    std::string options = part(), code = part(), proto = part();
    if (a->overridden_serialized_compile_options_size > 0) {
      std::string_view given(a->overridden_serialized_compile_options, a->overridden_serialized_compile_options_size);
      if (!read_compile_options(given).makes_same_code(read_compile_options(options))) code.clear();
      options = given;
    }
    a->loaded_executable =
        load_program(make_program(a->client, std::move(proto), std::move(options), default_layouts, false, code));
  });
}

PJRT_Error* LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args* a) {
  return guard([&] { delete a->executable; });
}
PJRT_Error* LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args* a) {
  return guard([&] { a->executable = new PJRT_Executable{a->loaded_executable->program}; });
}
PJRT_Error* LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args* a) {
  a->addressable_devices = a->executable->devices.data();
  a->num_addressable_devices = a->executable->devices.size();
  return nullptr;
}
PJRT_Error* LoadedExecutable_AddressableDeviceLogicalIds(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args* a) {
  a->addressable_device_logical_ids = a->executable->logical_ids.data();
  a->num_addressable_device_logical_ids = a->executable->logical_ids.size();
  return nullptr;
}
PJRT_Error* LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args* a) {
  return guard([&] {
    give_bytes(device_assignment(*a->executable), a->serialized_bytes, a->serialized_bytes_size,
               a->serialized_device_assignment, a->serialized_device_assignment_deleter);
  });
}
PJRT_Error* LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args* a) {
  a->executable->deleted = true;
  return nullptr;
}
PJRT_Error* LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args* a) {
  a->is_deleted = a->executable->deleted;
  return nullptr;
}

}  // namespace

void add_executable_functions(PJRT_Api& api) {
  HLOJIT_PJRT_SET(api, Executable_Destroy);
  HLOJIT_PJRT_SET(api, Executable_Name);
  HLOJIT_PJRT_SET(api, Executable_NumReplicas);
  HLOJIT_PJRT_SET(api, Executable_NumPartitions);
  HLOJIT_PJRT_SET(api, Executable_NumOutputs);
  HLOJIT_PJRT_SET(api, Executable_SizeOfGeneratedCodeInBytes);
  HLOJIT_PJRT_SET(api, Executable_GetCostAnalysis);
  HLOJIT_PJRT_SET(api, Executable_OutputMemoryKinds);
  HLOJIT_PJRT_SET(api, Executable_OutputElementTypes);
  HLOJIT_PJRT_SET(api, Executable_OutputDimensions);
  HLOJIT_PJRT_SET(api, Executable_OptimizedProgram);
  HLOJIT_PJRT_SET(api, Executable_Fingerprint);
  HLOJIT_PJRT_SET(api, LoadedExecutable_Fingerprint);
  HLOJIT_PJRT_SET(api, Executable_GetCompiledMemoryStats);
  HLOJIT_PJRT_SET(api, Executable_Serialize);
  HLOJIT_PJRT_SET(api, Executable_DeserializeAndLoad);
  HLOJIT_PJRT_SET(api, LoadedExecutable_Destroy);
  HLOJIT_PJRT_SET(api, LoadedExecutable_GetExecutable);
  HLOJIT_PJRT_SET(api, LoadedExecutable_AddressableDevices);
  HLOJIT_PJRT_SET(api, LoadedExecutable_AddressableDeviceLogicalIds);
  HLOJIT_PJRT_SET(api, LoadedExecutable_GetDeviceAssignment);
  HLOJIT_PJRT_SET(api, LoadedExecutable_Delete);
  HLOJIT_PJRT_SET(api, LoadedExecutable_IsDeleted);
}

}  // namespace hlojit::pjrt

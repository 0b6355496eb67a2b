// Clients, devices and memories: this machine's cores as one device, or as several that share them.
//
// Options of Client_Create: "device_count" (int, default 1), "platform_name" (text, default "hlojit"),
// "decoder" (int: the address of a Decoder), "threads" (int), "keep_subnormals" (int, default 0), "cache_dir" (text),
// "dump_dir" (text: programs are dumped into folders NUMBER_NAME in it).
#include <fmt/format.h>

#include "hlojit/version.h"
#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

void give(const std::string& text, const char*& data, size_t& size) {
  data = text.data();
  size = text.size();
}

int64_t integer(const PJRT_NamedValue& v) {
  if (v.type == PJRT_NamedValue::kInt64) return v.int64_value;
  if (v.type == PJRT_NamedValue::kString) {
    try {
      return std::stoll(std::string(v.string_value, v.value_size));
    } catch (const std::exception&) {
    }
  }
  fail(PJRT_Error_Code_INVALID_ARGUMENT,
       fmt::format("client option '{}' must be an integer", std::string_view(v.name, v.name_size)));
}

std::string text(const PJRT_NamedValue& v) {
  if (v.type == PJRT_NamedValue::kString) return std::string(v.string_value, v.value_size);
  fail(PJRT_Error_Code_INVALID_ARGUMENT,
       fmt::format("client option '{}' must be text", std::string_view(v.name, v.name_size)));
}

PJRT_Error* Client_Create(PJRT_Client_Create_Args* a) {
  return guard([&] {
    auto client = std::make_unique<PJRT_Client>();
    client->platform_name = "hlojit";
    client->platform_version = "hlojit " HLOJIT_VERSION;
    client->options.scatter_oob_window = true;  // what JAX's scatter expects
    int64_t count = 1;
    for (size_t k = 0; k < a->num_options; ++k) {
      const PJRT_NamedValue& v = a->create_options[k];
      std::string_view name(v.name, v.name_size);
      if (name == "device_count") count = integer(v);
      if (name == "platform_name") client->platform_name = text(v);
      if (name == "decoder") client->decoder = reinterpret_cast<Decoder*>(static_cast<uintptr_t>(integer(v)));
      if (name == "keep_subnormals") client->options.keep_subnormals = integer(v) != 0;
      if (name == "threads") client->options.threads = static_cast<int>(integer(v));
      if (name == "cache_dir") client->options.cache_dir = text(v);
      if (name == "dump_dir") client->options.dump_dir = text(v);
    }
    if (count < 1 || count > 1024)
      fail(PJRT_Error_Code_INVALID_ARGUMENT, fmt::format("device_count is {}; 1 to 1024 are possible", count));
    for (int id = 0; id < count; ++id) {
      auto d = std::make_unique<PJRT_Device>();
      d->client = client.get();
      d->description = {id, "cpu", fmt::format("HlojitDevice(id={})", id)};
      for (size_t k = 0; k < kMemories; ++k) {
        int number = id * static_cast<int>(kMemories) + static_cast<int>(k);
        PJRT_Memory& m = d->memory[k];
        m.device = d.get();
        m.id = number;
        m.kind_id = static_cast<int>(k);
        m.kind = kMemoryKinds[k];
        m.text = fmt::format("HlojitMemory(id={}, kind={})", number, m.kind);
        d->memories[k] = &d->memory[k];
        client->memories.push_back(&d->memory[k]);
      }
      client->devices.push_back(d.get());
      client->descriptions.push_back(&d->description);
      client->owned.push_back(std::move(d));
    }
    client->topology.client = client.get();
    a->client = client.release();
  });
}
PJRT_Error* Client_Destroy(PJRT_Client_Destroy_Args* a) {
  return guard([&] { delete a->client; });
}
PJRT_Error* Client_PlatformName(PJRT_Client_PlatformName_Args* a) {
  give(a->client->platform_name, a->platform_name, a->platform_name_size);
  return nullptr;
}
PJRT_Error* Client_PlatformVersion(PJRT_Client_PlatformVersion_Args* a) {
  give(a->client->platform_version, a->platform_version, a->platform_version_size);
  return nullptr;
}
PJRT_Error* Client_ProcessIndex(PJRT_Client_ProcessIndex_Args* a) {
  a->process_index = 0;
  return nullptr;
}
PJRT_Error* Client_Devices(PJRT_Client_Devices_Args* a) {
  a->devices = a->client->devices.data();
  a->num_devices = a->client->devices.size();
  return nullptr;
}
PJRT_Error* Client_AddressableDevices(PJRT_Client_AddressableDevices_Args* a) {
  a->addressable_devices = a->client->devices.data();
  a->num_addressable_devices = a->client->devices.size();
  return nullptr;
}
PJRT_Error* Client_LookupDevice(PJRT_Client_LookupDevice_Args* a) {
  return guard([&] { a->device = a->client->device(a->id); });
}
PJRT_Error* Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args* a) {
  return guard([&] { a->addressable_device = a->client->device(a->local_hardware_id); });
}
PJRT_Error* Client_AddressableMemories(PJRT_Client_AddressableMemories_Args* a) {
  a->addressable_memories = a->client->memories.data();
  a->num_addressable_memories = a->client->memories.size();
  return nullptr;
}
PJRT_Error* Client_TopologyDescription(PJRT_Client_TopologyDescription_Args* a) {
  a->topology = &a->client->topology;
  return nullptr;
}
PJRT_Error* Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args* a) {
  return guard([&] {
    auto wanted = static_cast<size_t>(a->num_replicas) * static_cast<size_t>(a->num_partitions);
    if (wanted > a->client->devices.size() || wanted > a->default_assignment_size) {
      fail(PJRT_Error_Code_INVALID_ARGUMENT,
           fmt::format("{} replicas of {} partitions do not fit {} devices", a->num_replicas, a->num_partitions,
                       a->client->devices.size()));
    }
    for (size_t k = 0; k < wanted; ++k) a->default_assignment[k] = static_cast<int>(k);
  });
}

PJRT_Error* TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args* a) {
  give(a->topology->client->platform_name, a->platform_name, a->platform_name_size);
  return nullptr;
}
PJRT_Error* TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args* a) {
  give(a->topology->client->platform_version, a->platform_version, a->platform_version_size);
  return nullptr;
}
PJRT_Error* TopologyDescription_GetDeviceDescriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args* a) {
  a->descriptions = a->topology->client->descriptions.data();
  a->num_descriptions = a->topology->client->descriptions.size();
  return nullptr;
}
PJRT_Error* TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args* a) {
  a->attributes = nullptr;
  a->num_attributes = 0;
  return nullptr;
}
// Part of the key of JAX's compilation cache: machines that run each other's programs give the same.
PJRT_Error* TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args* a) {
  return guard([&] {
    auto* bytes =
        new std::string(fmt::format("hlojit {} x{} threads={}", HLOJIT_VERSION, a->topology->client->devices.size(),
                                    a->topology->client->options.threads));
    give(*bytes, a->serialized_bytes, a->serialized_bytes_size);
    a->serialized_topology = reinterpret_cast<PJRT_SerializedTopology*>(bytes);
    a->serialized_topology_deleter = [](PJRT_SerializedTopology* p) { delete reinterpret_cast<std::string*>(p); };
  });
}

PJRT_Error* Device_GetDescription(PJRT_Device_GetDescription_Args* a) {
  a->device_description = &a->device->description;
  return nullptr;
}
PJRT_Error* Device_IsAddressable(PJRT_Device_IsAddressable_Args* a) {
  a->is_addressable = true;
  return nullptr;
}
PJRT_Error* Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args* a) {
  a->local_hardware_id = a->device->description.id;
  return nullptr;
}
PJRT_Error* Device_AddressableMemories(PJRT_Device_AddressableMemories_Args* a) {
  a->memories = a->device->memories;
  a->num_memories = kMemories;
  return nullptr;
}
PJRT_Error* Device_DefaultMemory(PJRT_Device_DefaultMemory_Args* a) {
  a->memory = &a->device->memory[0];
  return nullptr;
}
PJRT_Error* Device_GetAttributes(PJRT_Device_GetAttributes_Args* a) {
  a->attributes = nullptr;
  a->num_attributes = 0;
  a->device_attributes = nullptr;
  a->attributes_deleter = [](void*) {};
  return nullptr;
}
PJRT_Error* DeviceDescription_Id(PJRT_DeviceDescription_Id_Args* a) {
  a->id = a->device_description->id;
  return nullptr;
}
PJRT_Error* DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args* a) {
  a->process_index = 0;
  return nullptr;
}
PJRT_Error* DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args* a) {
  a->attributes = nullptr;
  a->num_attributes = 0;
  return nullptr;
}
PJRT_Error* DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args* a) {
  give(a->device_description->kind, a->device_kind, a->device_kind_size);
  return nullptr;
}
PJRT_Error* DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args* a) {
  give(a->device_description->text, a->debug_string, a->debug_string_size);
  return nullptr;
}
PJRT_Error* DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args* a) {
  give(a->device_description->text, a->to_string, a->to_string_size);
  return nullptr;
}
PJRT_Error* Memory_Id(PJRT_Memory_Id_Args* a) {
  a->id = a->memory->id;
  return nullptr;
}
PJRT_Error* Memory_Kind(PJRT_Memory_Kind_Args* a) {
  give(a->memory->kind, a->kind, a->kind_size);
  return nullptr;
}
PJRT_Error* Memory_Kind_Id(PJRT_Memory_Kind_Id_Args* a) {
  a->kind_id = a->memory->kind_id;
  return nullptr;
}
PJRT_Error* Memory_DebugString(PJRT_Memory_DebugString_Args* a) {
  give(a->memory->text, a->debug_string, a->debug_string_size);
  return nullptr;
}
PJRT_Error* Memory_ToString(PJRT_Memory_ToString_Args* a) {
  give(a->memory->text, a->to_string, a->to_string_size);
  return nullptr;
}
PJRT_Error* Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args* a) {
  a->devices = a->memory->device->self;
  a->num_devices = 1;
  return nullptr;
}

void* get_user_data(PJRT_Memory* memory, const void* key) {
  std::lock_guard lock(memory->mutex);
  auto found = memory->kept.find(key);
  return found == memory->kept.end() ? nullptr : found->second.data;
}
void set_user_data(PJRT_Memory* memory, const void* key, void* data, void (*destroy)(void*)) {
  PJRT_Memory::Kept before;
  {
    std::lock_guard lock(memory->mutex);
    before = std::exchange(memory->kept[key], {data, destroy});
  }
  if (before.destroy && before.data) before.destroy(before.data);
}

}  // namespace

const PJRT_Memory_FunctionTable kMemoryFunctions = {sizeof(PJRT_Memory_FunctionTable), nullptr, sizeof(PJRT_Memory),
                                                    get_user_data, set_user_data};

PJRT_Memory::~PJRT_Memory() {
  for (auto& [key, k] : kept) {
    if (k.destroy && k.data) k.destroy(k.data);
  }
}

PJRT_Device* PJRT_Client::device(int64_t id) const {
  if (id < 0 || id >= static_cast<int64_t>(devices.size())) {
    fail(PJRT_Error_Code_INVALID_ARGUMENT, fmt::format("no device has the id {}; there are {}", id, devices.size()));
  }
  return devices[static_cast<size_t>(id)];
}

void add_client_functions(PJRT_Api& api) {
  HLOJIT_PJRT_SET(api, Client_Create);
  HLOJIT_PJRT_SET(api, Client_Destroy);
  HLOJIT_PJRT_SET(api, Client_PlatformName);
  HLOJIT_PJRT_SET(api, Client_PlatformVersion);
  HLOJIT_PJRT_SET(api, Client_ProcessIndex);
  HLOJIT_PJRT_SET(api, Client_Devices);
  HLOJIT_PJRT_SET(api, Client_AddressableDevices);
  HLOJIT_PJRT_SET(api, Client_LookupDevice);
  HLOJIT_PJRT_SET(api, Client_LookupAddressableDevice);
  HLOJIT_PJRT_SET(api, Client_AddressableMemories);
  HLOJIT_PJRT_SET(api, Client_TopologyDescription);
  HLOJIT_PJRT_SET(api, Client_DefaultDeviceAssignment);
  HLOJIT_PJRT_SET(api, TopologyDescription_PlatformName);
  HLOJIT_PJRT_SET(api, TopologyDescription_PlatformVersion);
  HLOJIT_PJRT_SET(api, TopologyDescription_GetDeviceDescriptions);
  HLOJIT_PJRT_SET(api, TopologyDescription_Attributes);
  HLOJIT_PJRT_SET(api, TopologyDescription_Serialize);
  HLOJIT_PJRT_SET(api, Device_GetDescription);
  HLOJIT_PJRT_SET(api, Device_IsAddressable);
  HLOJIT_PJRT_SET(api, Device_LocalHardwareId);
  HLOJIT_PJRT_SET(api, Device_AddressableMemories);
  HLOJIT_PJRT_SET(api, Device_DefaultMemory);
  HLOJIT_PJRT_SET(api, Device_GetAttributes);
  HLOJIT_PJRT_SET(api, DeviceDescription_Id);
  HLOJIT_PJRT_SET(api, DeviceDescription_ProcessIndex);
  HLOJIT_PJRT_SET(api, DeviceDescription_Attributes);
  HLOJIT_PJRT_SET(api, DeviceDescription_Kind);
  HLOJIT_PJRT_SET(api, DeviceDescription_DebugString);
  HLOJIT_PJRT_SET(api, DeviceDescription_ToString);
  HLOJIT_PJRT_SET(api, Memory_Id);
  HLOJIT_PJRT_SET(api, Memory_Kind);
  HLOJIT_PJRT_SET(api, Memory_Kind_Id);
  HLOJIT_PJRT_SET(api, Memory_DebugString);
  HLOJIT_PJRT_SET(api, Memory_ToString);
  HLOJIT_PJRT_SET(api, Memory_AddressableByDevices);
}

}  // namespace hlojit::pjrt

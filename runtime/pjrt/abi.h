// The PJRT C ABI as published, as far as hlojit answers it: structs that frontends such as JAX fill in,
// and the order of the table of functions that a plugin hands out.
//
// Written from the interface's facts (names, order, types); tests/runtime/pjrt_test.cc compares
// every offset with a table of its own. Every function takes one struct, which begins with its size and
// a chain of extensions, and returns null or an error. A caller may be newer: its structs may be longer
// than ours, and we write only inside ours. "out" marks what the plugin fills in; memory behind an
// out-pointer belongs to the object asked unless the struct carries a deleter.
#pragma once

// clang-format off: a table, a line a row

#include <cstddef>
#include <cstdint>

namespace hlojit::pjrt {

constexpr int kApiMajor = 0;
constexpr int kApiMinor = 112;

// Objects that cross the border as pointers; objects.h says what they are.
struct PJRT_Error;
struct PJRT_Event;
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_DeviceDescription;
struct PJRT_Memory;
struct PJRT_Buffer;
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
struct PJRT_ExecuteContext;
struct PJRT_TopologyDescription;
struct PJRT_Layouts_MemoryLayout;
// Owners of bytes that a struct hands out together with their deleter.
struct PJRT_SerializedExecutable;
struct PJRT_SerializedTopology;
struct PJRT_DeviceAssignmentSerialized;
struct PJRT_Layouts_SerializedLayout;

/// Codes of absl::Status.
enum PJRT_Error_Code : int32_t {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,
  PJRT_Error_Code_UNKNOWN = 2,
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9,
  PJRT_Error_Code_UNIMPLEMENTED = 12,
  PJRT_Error_Code_INTERNAL = 13,
};

/// Element types; not the numbers of HLO's PrimitiveType.
enum PJRT_Buffer_Type : int32_t {
  PJRT_Buffer_Type_INVALID = 0, PJRT_Buffer_Type_PRED = 1,
  PJRT_Buffer_Type_S8 = 2, PJRT_Buffer_Type_S16 = 3, PJRT_Buffer_Type_S32 = 4, PJRT_Buffer_Type_S64 = 5,
  PJRT_Buffer_Type_U8 = 6, PJRT_Buffer_Type_U16 = 7, PJRT_Buffer_Type_U32 = 8, PJRT_Buffer_Type_U64 = 9,
  PJRT_Buffer_Type_F16 = 10, PJRT_Buffer_Type_F32 = 11, PJRT_Buffer_Type_F64 = 12,
  PJRT_Buffer_Type_BF16 = 13, PJRT_Buffer_Type_C64 = 14, PJRT_Buffer_Type_C128 = 15,
  PJRT_Buffer_Type_F8E5M2 = 16, PJRT_Buffer_Type_F8E4M3FN = 17, PJRT_Buffer_Type_F8E4M3B11FNUZ = 18,
  PJRT_Buffer_Type_F8E5M2FNUZ = 19, PJRT_Buffer_Type_F8E4M3FNUZ = 20,
  PJRT_Buffer_Type_S4 = 21, PJRT_Buffer_Type_U4 = 22, PJRT_Buffer_Type_TOKEN = 23,
  PJRT_Buffer_Type_S2 = 24, PJRT_Buffer_Type_U2 = 25,
  PJRT_Buffer_Type_F8E4M3 = 26, PJRT_Buffer_Type_F8E3M4 = 27, PJRT_Buffer_Type_F8E8M0FNU = 28,
  PJRT_Buffer_Type_F4E2M1FN = 29, PJRT_Buffer_Type_S1 = 30, PJRT_Buffer_Type_U1 = 31,
};

/// How long the caller's memory stays what it is.
enum PJRT_HostBufferSemantics : int32_t {
  kImmutableOnlyDuringCall = 0,
  kImmutableUntilTransferCompletes = 1,
  kImmutableZeroCopy = 2,  ///< until done_with_host_buffer; may be used in place
  kMutableZeroCopy = 3,    ///< the same, and the buffer may be written
};

enum PJRT_Extension_Type : int32_t {
  PJRT_Extension_Type_Layouts = 4,
  PJRT_Extension_Type_FFI = 5,
};

struct PJRT_Extension_Base {
  size_t struct_size;
  PJRT_Extension_Type type;
  PJRT_Extension_Base* next;
};

// The two members every struct of arguments begins with.
#define HLOJIT_PJRT_HEAD \
  size_t struct_size;    \
  PJRT_Extension_Base* extension_start

struct PJRT_NamedValue {
  enum Type : int32_t { kString = 0, kInt64 = 1, kInt64List = 2, kFloat = 3, kBool = 4 };
  HLOJIT_PJRT_HEAD;
  const char* name;
  size_t name_size;
  Type type;
  union {
    const char* string_value;
    int64_t int64_value;
    const int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size;  ///< bytes of a string, length of a list, else 1
};

/// Where the elements lie: an order of dimensions with tiles, or strides in bytes.
struct PJRT_Buffer_MemoryLayout {
  enum Type : int32_t { kTiled = 0, kStrides = 1 };
  struct Tiled {
    HLOJIT_PJRT_HEAD;
    const int64_t* minor_to_major;
    size_t minor_to_major_size;
    const int64_t* tile_dims;       ///< all tiles' sizes, one after the other
    const size_t* tile_dim_sizes;   ///< number of sizes of each tile
    size_t num_tiles;
  };
  struct Strides {
    HLOJIT_PJRT_HEAD;
    const int64_t* byte_strides;
    size_t num_byte_strides;
  };
  HLOJIT_PJRT_HEAD;
  union {
    Tiled tiled;
    Strides strides;
  };
  Type type;
};

struct PJRT_Program {
  HLOJIT_PJRT_HEAD;
  char* code;  ///< out if code is null in OptimizedProgram: then only code_size is filled in
  size_t code_size;
  const char* format;
  size_t format_size;
};

struct PJRT_ExecuteOptions {
  HLOJIT_PJRT_HEAD;
  void** send_callbacks;
  void** recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t* non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext* context;
  const char* call_location;
  // Newer members (tasks, slices, output callbacks) follow; nothing here reads them.
};

// Errors and memories begin with a pointer to functions that a caller may use instead of the table.
struct PJRT_Error_FunctionTable {
  size_t struct_size;
  size_t instance_size;
  PJRT_Extension_Base* extension_start;
  void (*destroy)(PJRT_Error*);
  void (*message)(const PJRT_Error*, const char** message, size_t* size);
  PJRT_Error_Code (*get_code)(const PJRT_Error*);
  void (*for_each_payload)(const PJRT_Error*, void* visitor, void* user_arg);
};
struct PJRT_Memory_FunctionTable {
  HLOJIT_PJRT_HEAD;
  size_t instance_struct_size;
  void* (*get_user_data)(PJRT_Memory*, const void* key);
  void (*set_user_data)(PJRT_Memory*, const void* key, void* data, void (*dtor)(void*));
};

// ---- errors, plugin, events ----------------------------------------------------------------------

struct PJRT_Error_Destroy_Args { HLOJIT_PJRT_HEAD; PJRT_Error* error; };
struct PJRT_Error_Message_Args { HLOJIT_PJRT_HEAD; const PJRT_Error* error; const char* message; size_t message_size; };
struct PJRT_Error_GetCode_Args { HLOJIT_PJRT_HEAD; const PJRT_Error* error; PJRT_Error_Code code; };
/// Calls visitor for each keyed note on an error; ours have none.
struct PJRT_Error_ForEachPayload_Args { HLOJIT_PJRT_HEAD; const PJRT_Error* error; void* visitor; void* user_arg; };
struct PJRT_Plugin_Initialize_Args { HLOJIT_PJRT_HEAD; };
struct PJRT_Plugin_Attributes_Args { HLOJIT_PJRT_HEAD; const PJRT_NamedValue* attributes; size_t num_attributes; };
struct PJRT_Event_Destroy_Args { HLOJIT_PJRT_HEAD; PJRT_Event* event; };
struct PJRT_Event_IsReady_Args { HLOJIT_PJRT_HEAD; PJRT_Event* event; bool is_ready; };
struct PJRT_Event_Error_Args { HLOJIT_PJRT_HEAD; PJRT_Event* event; };
struct PJRT_Event_Await_Args { HLOJIT_PJRT_HEAD; PJRT_Event* event; };
/// The callback owns the error it gets (null: success).
using PJRT_Event_OnReadyCallback = void(PJRT_Error* error, void* user_arg);
struct PJRT_Event_OnReady_Args { HLOJIT_PJRT_HEAD; PJRT_Event* event; PJRT_Event_OnReadyCallback* callback; void* user_arg; };

// ---- client, topology, devices, memories ---------------------------------------------------------

struct PJRT_Client_Create_Args {
  HLOJIT_PJRT_HEAD;
  const PJRT_NamedValue* create_options;
  size_t num_options;
  void* kv_get_callback;  // the store that processes of one job share; not used
  void* kv_get_user_arg;
  void* kv_put_callback;
  void* kv_put_user_arg;
  PJRT_Client* client;  // out
  void* kv_try_get_callback;
  void* kv_try_get_user_arg;
};
struct PJRT_Client_Destroy_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; };
struct PJRT_Client_PlatformName_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; const char* platform_name; size_t platform_name_size; };
struct PJRT_Client_ProcessIndex_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; int process_index; };
struct PJRT_Client_PlatformVersion_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; const char* platform_version; size_t platform_version_size; };
struct PJRT_Client_Devices_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; PJRT_Device* const* devices; size_t num_devices; };
struct PJRT_Client_AddressableDevices_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; PJRT_Device* const* addressable_devices; size_t num_addressable_devices; };
struct PJRT_Client_LookupDevice_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; int id; PJRT_Device* device; };
struct PJRT_Client_LookupAddressableDevice_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; int local_hardware_id; PJRT_Device* addressable_device; };
struct PJRT_Client_AddressableMemories_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; PJRT_Memory* const* addressable_memories; size_t num_addressable_memories; };
struct PJRT_Client_TopologyDescription_Args { HLOJIT_PJRT_HEAD; PJRT_Client* client; PJRT_TopologyDescription* topology; };
struct PJRT_Client_DefaultDeviceAssignment_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Client* client;
  int num_replicas;
  int num_partitions;
  size_t default_assignment_size;
  int* default_assignment;  ///< the caller's array, filled in: device ids by replica, then partition
};

struct PJRT_TopologyDescription_PlatformName_Args { HLOJIT_PJRT_HEAD; PJRT_TopologyDescription* topology; const char* platform_name; size_t platform_name_size; };
struct PJRT_TopologyDescription_PlatformVersion_Args { HLOJIT_PJRT_HEAD; PJRT_TopologyDescription* topology; const char* platform_version; size_t platform_version_size; };
struct PJRT_TopologyDescription_GetDeviceDescriptions_Args { HLOJIT_PJRT_HEAD; PJRT_TopologyDescription* topology; PJRT_DeviceDescription* const* descriptions; size_t num_descriptions; };
struct PJRT_TopologyDescription_Attributes_Args { HLOJIT_PJRT_HEAD; PJRT_TopologyDescription* topology; const PJRT_NamedValue* attributes; size_t num_attributes; };
struct PJRT_TopologyDescription_Serialize_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_TopologyDescription* topology;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  PJRT_SerializedTopology* serialized_topology;
  void (*serialized_topology_deleter)(PJRT_SerializedTopology*);
};

struct PJRT_Device_GetDescription_Args { HLOJIT_PJRT_HEAD; PJRT_Device* device; PJRT_DeviceDescription* device_description; };
struct PJRT_Device_IsAddressable_Args { HLOJIT_PJRT_HEAD; PJRT_Device* device; bool is_addressable; };
struct PJRT_Device_LocalHardwareId_Args { HLOJIT_PJRT_HEAD; PJRT_Device* device; int local_hardware_id; };
struct PJRT_Device_AddressableMemories_Args { HLOJIT_PJRT_HEAD; PJRT_Device* device; PJRT_Memory* const* memories; size_t num_memories; };
struct PJRT_Device_DefaultMemory_Args { HLOJIT_PJRT_HEAD; PJRT_Device* device; PJRT_Memory* memory; };
struct PJRT_Device_GetAttributes_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Device* device;
  const PJRT_NamedValue* attributes;
  size_t num_attributes;
  void* device_attributes;  ///< owner of the above
  void (*attributes_deleter)(void* device_attributes);
};
struct PJRT_DeviceDescription_Id_Args { HLOJIT_PJRT_HEAD; PJRT_DeviceDescription* device_description; int id; };
struct PJRT_DeviceDescription_ProcessIndex_Args { HLOJIT_PJRT_HEAD; PJRT_DeviceDescription* device_description; int process_index; };
struct PJRT_DeviceDescription_Attributes_Args { HLOJIT_PJRT_HEAD; PJRT_DeviceDescription* device_description; size_t num_attributes; const PJRT_NamedValue* attributes; };
struct PJRT_DeviceDescription_Kind_Args { HLOJIT_PJRT_HEAD; PJRT_DeviceDescription* device_description; const char* device_kind; size_t device_kind_size; };
struct PJRT_DeviceDescription_DebugString_Args { HLOJIT_PJRT_HEAD; PJRT_DeviceDescription* device_description; const char* debug_string; size_t debug_string_size; };
struct PJRT_DeviceDescription_ToString_Args { HLOJIT_PJRT_HEAD; PJRT_DeviceDescription* device_description; const char* to_string; size_t to_string_size; };
struct PJRT_Memory_Id_Args { HLOJIT_PJRT_HEAD; PJRT_Memory* memory; int id; };
struct PJRT_Memory_Kind_Args { HLOJIT_PJRT_HEAD; PJRT_Memory* memory; const char* kind; size_t kind_size; };
struct PJRT_Memory_Kind_Id_Args { HLOJIT_PJRT_HEAD; PJRT_Memory* memory; int kind_id; };
struct PJRT_Memory_DebugString_Args { HLOJIT_PJRT_HEAD; PJRT_Memory* memory; const char* debug_string; size_t debug_string_size; };
struct PJRT_Memory_ToString_Args { HLOJIT_PJRT_HEAD; PJRT_Memory* memory; const char* to_string; size_t to_string_size; };
struct PJRT_Memory_AddressableByDevices_Args { HLOJIT_PJRT_HEAD; PJRT_Memory* memory; PJRT_Device* const* devices; size_t num_devices; };

// ---- buffers -------------------------------------------------------------------------------------

struct PJRT_Client_BufferFromHostBuffer_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Client* client;
  const void* data;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  const int64_t* byte_strides;  ///< null: dense, last dimension contiguous; may be negative or 0
  size_t num_byte_strides;
  PJRT_HostBufferSemantics host_buffer_semantics;
  PJRT_Device* device;
  PJRT_Memory* memory;                      ///< not null: takes the place of device
  PJRT_Buffer_MemoryLayout* device_layout;  ///< null: the default
  PJRT_Event* done_with_host_buffer;        // out, the caller destroys it
  PJRT_Buffer* buffer;                      // out
};
struct PJRT_Client_CreateViewOfDeviceBuffer_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Client* client;
  void* device_buffer_ptr;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
  PJRT_Buffer_MemoryLayout* layout;
  PJRT_Device* device;
  void (*on_delete_callback)(void* device_buffer_ptr, void* user_arg);
  void* on_delete_callback_arg;
  intptr_t stream;
  PJRT_Buffer* buffer;  // out
  PJRT_Memory* memory;
};
struct PJRT_Client_CreateUninitializedBuffer_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Client* client;
  const int64_t* shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout* shape_layout;
  PJRT_Device* device;
  PJRT_Memory* memory;
  PJRT_Buffer* buffer;  // out
};
struct PJRT_Buffer_Destroy_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; };
struct PJRT_Buffer_ElementType_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; PJRT_Buffer_Type type; };
struct PJRT_Buffer_Dimensions_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; const int64_t* dims; size_t num_dims; };
struct PJRT_Buffer_UnpaddedDimensions_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; const int64_t* unpadded_dims; size_t num_dims; };
struct PJRT_Buffer_DynamicDimensionIndices_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; const size_t* dynamic_dim_indices; size_t num_dynamic_dims; };
struct PJRT_Buffer_GetMemoryLayout_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; PJRT_Buffer_MemoryLayout layout; };
struct PJRT_Buffer_OnDeviceSizeInBytes_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; size_t on_device_size_in_bytes; };
struct PJRT_Buffer_Device_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; PJRT_Device* device; };
struct PJRT_Buffer_Memory_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; PJRT_Memory* memory; };
struct PJRT_Buffer_Delete_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; };
struct PJRT_Buffer_IsDeleted_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; bool is_deleted; };
struct PJRT_Buffer_CopyToDevice_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; PJRT_Device* dst_device; PJRT_Buffer* dst_buffer; };
struct PJRT_Buffer_CopyToMemory_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; PJRT_Memory* dst_memory; PJRT_Buffer* dst_buffer; };
struct PJRT_Buffer_ToHostBuffer_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Buffer* src;
  PJRT_Buffer_MemoryLayout* host_layout;  ///< null: the buffer's own
  void* dst;                              ///< null: only dst_size is filled in
  size_t dst_size;
  PJRT_Event* event;  // out, the caller destroys it
};
struct PJRT_Buffer_IsOnCpu_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; bool is_on_cpu; };
struct PJRT_Buffer_ReadyEvent_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; PJRT_Event* event; };
struct PJRT_Buffer_UnsafePointer_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; uintptr_t buffer_pointer; };
struct PJRT_Buffer_IncreaseExternalReferenceCount_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; };
struct PJRT_Buffer_DecreaseExternalReferenceCount_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; };
struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; void* device_memory_ptr; };
struct PJRT_Buffer_CopyRawToHost_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; void* dst; int64_t offset; int64_t transfer_size; PJRT_Event* event; };

// ---- programs ------------------------------------------------------------------------------------

struct PJRT_Client_Compile_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Client* client;
  const PJRT_Program* program;
  const char* compile_options;  ///< a CompileOptionsProto
  size_t compile_options_size;
  PJRT_LoadedExecutable* executable;  // out
};
struct PJRT_Executable_Destroy_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; };
struct PJRT_Executable_Name_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; const char* executable_name; size_t executable_name_size; };
struct PJRT_Executable_NumReplicas_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; size_t num_replicas; };
struct PJRT_Executable_NumPartitions_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; size_t num_partitions; };
struct PJRT_Executable_NumOutputs_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; size_t num_outputs; };
struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; int64_t size_in_bytes; };
struct PJRT_Executable_GetCostAnalysis_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; size_t num_properties; const PJRT_NamedValue* properties; };
struct PJRT_Executable_OutputMemoryKinds_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; size_t num_outputs; const char* const* memory_kinds; const size_t* memory_kind_sizes; };
struct PJRT_Executable_ParameterMemoryKinds_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; size_t num_parameters; const char* const* memory_kinds; const size_t* memory_kind_sizes; };
struct PJRT_Executable_OutputElementTypes_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; PJRT_Buffer_Type* output_types; size_t num_output_types; };
/// dims: all outputs' sizes one after the other; dim_sizes: the rank of each.
struct PJRT_Executable_OutputDimensions_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; size_t num_outputs; const int64_t* dims; const size_t* dim_sizes; };
struct PJRT_Executable_OptimizedProgram_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; PJRT_Program* program; };
struct PJRT_Executable_Fingerprint_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; const char* executable_fingerprint; size_t executable_fingerprint_size; };
struct PJRT_Executable_Serialize_Args {
  HLOJIT_PJRT_HEAD;
  const PJRT_Executable* executable;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  PJRT_SerializedExecutable* serialized_executable;
  void (*serialized_executable_deleter)(PJRT_SerializedExecutable*);
};
struct PJRT_Executable_DeserializeAndLoad_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Client* client;
  const char* serialized_executable;
  size_t serialized_executable_size;
  PJRT_LoadedExecutable* loaded_executable;  // out
  const char* overridden_serialized_compile_options;
  size_t overridden_serialized_compile_options_size;
  void* load_options;
};
struct PJRT_Executable_GetCompiledMemoryStats_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Executable* executable;
  int64_t generated_code_size_in_bytes;  // all out from here
  int64_t argument_size_in_bytes;
  int64_t output_size_in_bytes;
  int64_t alias_size_in_bytes;
  int64_t temp_size_in_bytes;
  int64_t host_generated_code_size_in_bytes;
  int64_t host_argument_size_in_bytes;
  int64_t host_output_size_in_bytes;
  int64_t host_alias_size_in_bytes;
  int64_t host_temp_size_in_bytes;
  int64_t peak_memory_in_bytes;
  int64_t total_size_in_bytes;
};
struct PJRT_LoadedExecutable_Destroy_Args { HLOJIT_PJRT_HEAD; PJRT_LoadedExecutable* executable; };
struct PJRT_LoadedExecutable_GetExecutable_Args { HLOJIT_PJRT_HEAD; PJRT_LoadedExecutable* loaded_executable; PJRT_Executable* executable; };
struct PJRT_LoadedExecutable_AddressableDevices_Args { HLOJIT_PJRT_HEAD; PJRT_LoadedExecutable* executable; PJRT_Device* const* addressable_devices; size_t num_addressable_devices; };
struct PJRT_LogicalDeviceIds { int replica; int partition; };
struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args { HLOJIT_PJRT_HEAD; PJRT_LoadedExecutable* executable; PJRT_LogicalDeviceIds* addressable_device_logical_ids; size_t num_addressable_device_logical_ids; };
struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_LoadedExecutable* executable;
  const char* serialized_bytes;  ///< a DeviceAssignmentProto
  size_t serialized_bytes_size;
  PJRT_DeviceAssignmentSerialized* serialized_device_assignment;
  void (*serialized_device_assignment_deleter)(PJRT_DeviceAssignmentSerialized*);
};
struct PJRT_LoadedExecutable_Delete_Args { HLOJIT_PJRT_HEAD; PJRT_LoadedExecutable* executable; };
struct PJRT_LoadedExecutable_IsDeleted_Args { HLOJIT_PJRT_HEAD; PJRT_LoadedExecutable* executable; bool is_deleted; };
struct PJRT_LoadedExecutable_Fingerprint_Args { HLOJIT_PJRT_HEAD; PJRT_LoadedExecutable* executable; const char* executable_fingerprint; size_t executable_fingerprint_size; };
struct PJRT_LoadedExecutable_Execute_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_LoadedExecutable* executable;
  PJRT_ExecuteOptions* options;
  PJRT_Buffer* const* const* argument_lists;  ///< [num_devices][num_args]
  size_t num_devices;
  size_t num_args;
  PJRT_Buffer** const* output_lists;          ///< [num_devices][outputs], filled in
  PJRT_Event** device_complete_events;        ///< null, or [num_devices], filled in
  PJRT_Device* execute_device;                ///< not null: runs there, num_devices is 1
};
struct PJRT_ExecuteContext_Create_Args { HLOJIT_PJRT_HEAD; PJRT_ExecuteContext* context; };
struct PJRT_ExecuteContext_Destroy_Args { HLOJIT_PJRT_HEAD; PJRT_ExecuteContext* context; };

// ---- the table -----------------------------------------------------------------------------------

struct PJRT_Api_Version { HLOJIT_PJRT_HEAD; int major_version; int minor_version; };

// All functions of the table, in its order.
#define HLOJIT_PJRT_FUNCTIONS(X)                                                                       \
  X(Error_Destroy) X(Error_Message) X(Error_GetCode) X(Plugin_Initialize) X(Plugin_Attributes)         \
  X(Event_Destroy) X(Event_IsReady) X(Event_Error) X(Event_Await) X(Event_OnReady)                     \
  X(Client_Create) X(Client_Destroy) X(Client_PlatformName) X(Client_ProcessIndex)                     \
  X(Client_PlatformVersion) X(Client_Devices) X(Client_AddressableDevices) X(Client_LookupDevice)      \
  X(Client_LookupAddressableDevice) X(Client_AddressableMemories) X(Client_Compile)                    \
  X(Client_DefaultDeviceAssignment) X(Client_BufferFromHostBuffer) X(DeviceDescription_Id)             \
  X(DeviceDescription_ProcessIndex) X(DeviceDescription_Attributes) X(DeviceDescription_Kind)          \
  X(DeviceDescription_DebugString) X(DeviceDescription_ToString) X(Device_GetDescription)              \
  X(Device_IsAddressable) X(Device_LocalHardwareId) X(Device_AddressableMemories)                      \
  X(Device_DefaultMemory) X(Device_MemoryStats) X(Memory_Id) X(Memory_Kind) X(Memory_DebugString)      \
  X(Memory_ToString) X(Memory_AddressableByDevices) X(Executable_Destroy) X(Executable_Name)           \
  X(Executable_NumReplicas) X(Executable_NumPartitions) X(Executable_NumOutputs)                       \
  X(Executable_SizeOfGeneratedCodeInBytes) X(Executable_GetCostAnalysis)                               \
  X(Executable_OutputMemoryKinds) X(Executable_OptimizedProgram) X(Executable_Serialize)               \
  X(LoadedExecutable_Destroy) X(LoadedExecutable_GetExecutable)                                        \
  X(LoadedExecutable_AddressableDevices) X(LoadedExecutable_Delete) X(LoadedExecutable_IsDeleted)      \
  X(LoadedExecutable_Execute) X(Executable_DeserializeAndLoad) X(LoadedExecutable_Fingerprint)         \
  X(Buffer_Destroy) X(Buffer_ElementType) X(Buffer_Dimensions) X(Buffer_UnpaddedDimensions)            \
  X(Buffer_DynamicDimensionIndices) X(Buffer_GetMemoryLayout) X(Buffer_OnDeviceSizeInBytes)            \
  X(Buffer_Device) X(Buffer_Memory) X(Buffer_Delete) X(Buffer_IsDeleted) X(Buffer_CopyToDevice)        \
  X(Buffer_ToHostBuffer) X(Buffer_IsOnCpu) X(Buffer_ReadyEvent) X(Buffer_UnsafePointer)                \
  X(Buffer_IncreaseExternalReferenceCount) X(Buffer_DecreaseExternalReferenceCount)                    \
  X(Buffer_OpaqueDeviceMemoryDataPointer) X(CopyToDeviceStream_Destroy)                                \
  X(CopyToDeviceStream_AddChunk) X(CopyToDeviceStream_TotalBytes) X(CopyToDeviceStream_GranuleSize)    \
  X(CopyToDeviceStream_CurrentBytes) X(TopologyDescription_Create) X(TopologyDescription_Destroy)      \
  X(TopologyDescription_PlatformName) X(TopologyDescription_PlatformVersion)                           \
  X(TopologyDescription_GetDeviceDescriptions) X(TopologyDescription_Serialize)                        \
  X(TopologyDescription_Attributes) X(Compile) X(Executable_OutputElementTypes)                        \
  X(Executable_OutputDimensions) X(Buffer_CopyToMemory) X(Client_CreateViewOfDeviceBuffer)             \
  X(Executable_Fingerprint) X(Client_TopologyDescription) X(Executable_GetCompiledMemoryStats)         \
  X(Memory_Kind_Id) X(ExecuteContext_Create) X(ExecuteContext_Destroy) X(Buffer_CopyRawToHost)         \
  X(AsyncHostToDeviceTransferManager_Destroy) X(AsyncHostToDeviceTransferManager_TransferData)         \
  X(Client_CreateBuffersForAsyncHostToDevice) X(AsyncHostToDeviceTransferManager_RetrieveBuffer)       \
  X(AsyncHostToDeviceTransferManager_Device) X(AsyncHostToDeviceTransferManager_BufferCount)           \
  X(AsyncHostToDeviceTransferManager_BufferSize) X(AsyncHostToDeviceTransferManager_SetBufferError)    \
  X(AsyncHostToDeviceTransferManager_AddMetadata) X(Client_DmaMap) X(Client_DmaUnmap)                  \
  X(Client_CreateUninitializedBuffer) X(Client_UpdateGlobalProcessInfo)                                \
  X(TopologyDescription_Deserialize) X(Client_CreateAliasBuffer) X(Client_FulfillAliasBuffer)          \
  X(LoadedExecutable_GetDeviceAssignment) X(Client_CreateErrorBuffer)                                  \
  X(AsyncHostToDeviceTransferManager_TransferLiteral) X(Buffer_CopyRawToHostFuture)                    \
  X(Device_PoisonExecution) X(Device_CreateAsyncTrackingEvent) X(AsyncTrackingEvent_Destroy)           \
  X(Executable_GetCompileOptions) X(Buffer_DonateWithControlDependency) X(Event_Create) X(Event_Set)   \
  X(Device_GetAttributes) X(Client_Load) X(LoadedExecutable_AddressableDeviceLogicalIds)               \
  X(Buffer_Bitcast) X(Error_ForEachPayload) X(TopologyDescription_Fingerprint)                         \
  X(Executable_ParameterMemoryKinds) X(Device_ClearMemoryStats)                                        \
  X(TopologyDescription_MakeCanonicalShapeForMemorySpace)                                              \
  X(TopologyDescription_GetMemorySpaceKindIds)

enum Slot : size_t {
#define HLOJIT_PJRT_SLOT(name) kSlot_##name,
  HLOJIT_PJRT_FUNCTIONS(HLOJIT_PJRT_SLOT)
#undef HLOJIT_PJRT_SLOT
  kSlots
};

/// What a plugin hands out. A slot is a function of its own Args, kept here without its type.
struct PJRT_Api {
  HLOJIT_PJRT_HEAD;
  PJRT_Api_Version pjrt_api_version;
  void* functions[kSlots];
};

// ---- extensions ----------------------------------------------------------------------------------

struct PJRT_Layouts_MemoryLayout_Destroy_Args { HLOJIT_PJRT_HEAD; PJRT_Layouts_MemoryLayout* layout; };
struct PJRT_Layouts_MemoryLayout_Serialize_Args {
  HLOJIT_PJRT_HEAD;
  PJRT_Layouts_MemoryLayout* layout;
  const char* serialized_bytes;  ///< text such as {1,0:T(8,128)}
  size_t serialized_bytes_size;
  PJRT_Layouts_SerializedLayout* serialized_layout;
  void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout*);
};
/// The caller destroys the layout. The topology's form has the same members.
struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args { HLOJIT_PJRT_HEAD; void* client; PJRT_Buffer_Type type; const int64_t* dims; size_t num_dims; PJRT_Layouts_MemoryLayout* layout; };
struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args { HLOJIT_PJRT_HEAD; PJRT_Buffer* buffer; PJRT_Layouts_MemoryLayout* layout; };
/// The executable owns the layouts. The parameters' form has the same members.
struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args { HLOJIT_PJRT_HEAD; PJRT_Executable* executable; size_t num_outputs; PJRT_Layouts_MemoryLayout* const* layouts; };

struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*memory_layout_destroy)(PJRT_Layouts_MemoryLayout_Destroy_Args*);
  PJRT_Error* (*memory_layout_serialize)(PJRT_Layouts_MemoryLayout_Serialize_Args*);
  PJRT_Error* (*client_get_default_layout)(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args*);
  PJRT_Error* (*buffer_memory_layout)(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args*);
  PJRT_Error* (*topology_get_default_layout)(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args*);
  PJRT_Error* (*executable_get_output_layouts)(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args*);
  PJRT_Error* (*executable_get_parameter_layouts)(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args*);
};

struct PJRT_FFI_Type_Info { void (*deleter)(void* object); void* serialize; void* deserialize; };
struct PJRT_FFI_Type_Register_Args { HLOJIT_PJRT_HEAD; const char* type_name; size_t type_name_size; int64_t type_id; PJRT_FFI_Type_Info* type_info; };
struct PJRT_FFI_UserData { int64_t type_id; void* data; };
struct PJRT_FFI_UserData_Add_Args { HLOJIT_PJRT_HEAD; PJRT_ExecuteContext* context; PJRT_FFI_UserData user_data; };
struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  void* handler;  ///< an XLA_FFI_Handler, or a bundle of them if the struct says so
  const char* platform_name;
  size_t platform_name_size;
  int32_t traits;
};
struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*type_register)(PJRT_FFI_Type_Register_Args*);
  PJRT_Error* (*user_data_add)(PJRT_FFI_UserData_Add_Args*);
  PJRT_Error* (*register_handler)(PJRT_FFI_Register_Handler_Args*);
};

}  // namespace hlojit::pjrt

// clang-format on

// The interface's structs against a table of the published offsets, and the table of functions as a
// frontend sees it: every slot is filled, what is not written refuses by name.
#include <doctest/doctest.h>

#include <string>

#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

struct Offset {
  const char* member;
  size_t found, published;
};
#define OFFSET(type, member, published) {#type "." #member, offsetof(type, member), published}

const Offset kOffsets[] = {
    OFFSET(PJRT_Extension_Base, type, 8),
    OFFSET(PJRT_Extension_Base, next, 16),
    OFFSET(PJRT_Program, code, 16),
    OFFSET(PJRT_Program, code_size, 24),
    OFFSET(PJRT_Program, format, 32),
    OFFSET(PJRT_Program, format_size, 40),
    OFFSET(PJRT_ExecuteOptions, send_callbacks, 16),
    OFFSET(PJRT_ExecuteOptions, recv_callbacks, 24),
    OFFSET(PJRT_ExecuteOptions, num_send_ops, 32),
    OFFSET(PJRT_ExecuteOptions, num_recv_ops, 40),
    OFFSET(PJRT_ExecuteOptions, launch_id, 48),
    OFFSET(PJRT_ExecuteOptions, non_donatable_input_indices, 56),
    OFFSET(PJRT_ExecuteOptions, num_non_donatable_input_indices, 64),
    OFFSET(PJRT_ExecuteOptions, context, 72),
    OFFSET(PJRT_ExecuteOptions, call_location, 80),
    OFFSET(PJRT_Error_FunctionTable, instance_size, 8),
    OFFSET(PJRT_Memory_FunctionTable, instance_struct_size, 16),
    OFFSET(PJRT_Error_Destroy_Args, error, 16),
    OFFSET(PJRT_Error_Message_Args, error, 16),
    OFFSET(PJRT_Error_Message_Args, message, 24),
    OFFSET(PJRT_Error_Message_Args, message_size, 32),
    OFFSET(PJRT_Error_GetCode_Args, error, 16),
    OFFSET(PJRT_Error_GetCode_Args, code, 24),
    OFFSET(PJRT_Error_ForEachPayload_Args, error, 16),
    OFFSET(PJRT_Error_ForEachPayload_Args, visitor, 24),
    OFFSET(PJRT_Error_ForEachPayload_Args, user_arg, 32),
    OFFSET(PJRT_Plugin_Attributes_Args, attributes, 16),
    OFFSET(PJRT_Plugin_Attributes_Args, num_attributes, 24),
    OFFSET(PJRT_Event_Destroy_Args, event, 16),
    OFFSET(PJRT_Event_IsReady_Args, event, 16),
    OFFSET(PJRT_Event_IsReady_Args, is_ready, 24),
    OFFSET(PJRT_Event_Error_Args, event, 16),
    OFFSET(PJRT_Event_Await_Args, event, 16),
    OFFSET(PJRT_Event_OnReady_Args, event, 16),
    OFFSET(PJRT_Event_OnReady_Args, callback, 24),
    OFFSET(PJRT_Event_OnReady_Args, user_arg, 32),
    OFFSET(PJRT_Client_Create_Args, create_options, 16),
    OFFSET(PJRT_Client_Create_Args, num_options, 24),
    OFFSET(PJRT_Client_Create_Args, kv_get_callback, 32),
    OFFSET(PJRT_Client_Create_Args, kv_get_user_arg, 40),
    OFFSET(PJRT_Client_Create_Args, kv_put_callback, 48),
    OFFSET(PJRT_Client_Create_Args, kv_put_user_arg, 56),
    OFFSET(PJRT_Client_Create_Args, client, 64),
    OFFSET(PJRT_Client_Create_Args, kv_try_get_callback, 72),
    OFFSET(PJRT_Client_Create_Args, kv_try_get_user_arg, 80),
    OFFSET(PJRT_Client_Destroy_Args, client, 16),
    OFFSET(PJRT_Client_PlatformName_Args, client, 16),
    OFFSET(PJRT_Client_PlatformName_Args, platform_name, 24),
    OFFSET(PJRT_Client_PlatformName_Args, platform_name_size, 32),
    OFFSET(PJRT_Client_ProcessIndex_Args, client, 16),
    OFFSET(PJRT_Client_ProcessIndex_Args, process_index, 24),
    OFFSET(PJRT_Client_PlatformVersion_Args, client, 16),
    OFFSET(PJRT_Client_PlatformVersion_Args, platform_version, 24),
    OFFSET(PJRT_Client_PlatformVersion_Args, platform_version_size, 32),
    OFFSET(PJRT_Client_Devices_Args, client, 16),
    OFFSET(PJRT_Client_Devices_Args, devices, 24),
    OFFSET(PJRT_Client_Devices_Args, num_devices, 32),
    OFFSET(PJRT_Client_AddressableDevices_Args, client, 16),
    OFFSET(PJRT_Client_AddressableDevices_Args, addressable_devices, 24),
    OFFSET(PJRT_Client_AddressableDevices_Args, num_addressable_devices, 32),
    OFFSET(PJRT_Client_LookupDevice_Args, client, 16),
    OFFSET(PJRT_Client_LookupDevice_Args, id, 24),
    OFFSET(PJRT_Client_LookupDevice_Args, device, 32),
    OFFSET(PJRT_Client_LookupAddressableDevice_Args, client, 16),
    OFFSET(PJRT_Client_LookupAddressableDevice_Args, local_hardware_id, 24),
    OFFSET(PJRT_Client_LookupAddressableDevice_Args, addressable_device, 32),
    OFFSET(PJRT_Client_AddressableMemories_Args, client, 16),
    OFFSET(PJRT_Client_AddressableMemories_Args, addressable_memories, 24),
    OFFSET(PJRT_Client_AddressableMemories_Args, num_addressable_memories, 32),
    OFFSET(PJRT_Client_TopologyDescription_Args, client, 16),
    OFFSET(PJRT_Client_TopologyDescription_Args, topology, 24),
    OFFSET(PJRT_Client_DefaultDeviceAssignment_Args, client, 16),
    OFFSET(PJRT_Client_DefaultDeviceAssignment_Args, num_replicas, 24),
    OFFSET(PJRT_Client_DefaultDeviceAssignment_Args, num_partitions, 28),
    OFFSET(PJRT_Client_DefaultDeviceAssignment_Args, default_assignment_size, 32),
    OFFSET(PJRT_Client_DefaultDeviceAssignment_Args, default_assignment, 40),
    OFFSET(PJRT_TopologyDescription_PlatformName_Args, topology, 16),
    OFFSET(PJRT_TopologyDescription_PlatformName_Args, platform_name, 24),
    OFFSET(PJRT_TopologyDescription_PlatformName_Args, platform_name_size, 32),
    OFFSET(PJRT_TopologyDescription_PlatformVersion_Args, topology, 16),
    OFFSET(PJRT_TopologyDescription_PlatformVersion_Args, platform_version, 24),
    OFFSET(PJRT_TopologyDescription_PlatformVersion_Args, platform_version_size, 32),
    OFFSET(PJRT_TopologyDescription_GetDeviceDescriptions_Args, topology, 16),
    OFFSET(PJRT_TopologyDescription_GetDeviceDescriptions_Args, descriptions, 24),
    OFFSET(PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions, 32),
    OFFSET(PJRT_TopologyDescription_Attributes_Args, topology, 16),
    OFFSET(PJRT_TopologyDescription_Attributes_Args, attributes, 24),
    OFFSET(PJRT_TopologyDescription_Attributes_Args, num_attributes, 32),
    OFFSET(PJRT_TopologyDescription_Serialize_Args, topology, 16),
    OFFSET(PJRT_TopologyDescription_Serialize_Args, serialized_bytes, 24),
    OFFSET(PJRT_TopologyDescription_Serialize_Args, serialized_bytes_size, 32),
    OFFSET(PJRT_TopologyDescription_Serialize_Args, serialized_topology, 40),
    OFFSET(PJRT_Device_GetDescription_Args, device, 16),
    OFFSET(PJRT_Device_GetDescription_Args, device_description, 24),
    OFFSET(PJRT_Device_IsAddressable_Args, device, 16),
    OFFSET(PJRT_Device_IsAddressable_Args, is_addressable, 24),
    OFFSET(PJRT_Device_LocalHardwareId_Args, device, 16),
    OFFSET(PJRT_Device_LocalHardwareId_Args, local_hardware_id, 24),
    OFFSET(PJRT_Device_AddressableMemories_Args, device, 16),
    OFFSET(PJRT_Device_AddressableMemories_Args, memories, 24),
    OFFSET(PJRT_Device_AddressableMemories_Args, num_memories, 32),
    OFFSET(PJRT_Device_DefaultMemory_Args, device, 16),
    OFFSET(PJRT_Device_DefaultMemory_Args, memory, 24),
    OFFSET(PJRT_Device_GetAttributes_Args, device, 16),
    OFFSET(PJRT_Device_GetAttributes_Args, attributes, 24),
    OFFSET(PJRT_Device_GetAttributes_Args, num_attributes, 32),
    OFFSET(PJRT_Device_GetAttributes_Args, device_attributes, 40),
    OFFSET(PJRT_DeviceDescription_Id_Args, device_description, 16),
    OFFSET(PJRT_DeviceDescription_Id_Args, id, 24),
    OFFSET(PJRT_DeviceDescription_ProcessIndex_Args, device_description, 16),
    OFFSET(PJRT_DeviceDescription_ProcessIndex_Args, process_index, 24),
    OFFSET(PJRT_DeviceDescription_Attributes_Args, device_description, 16),
    OFFSET(PJRT_DeviceDescription_Attributes_Args, num_attributes, 24),
    OFFSET(PJRT_DeviceDescription_Attributes_Args, attributes, 32),
    OFFSET(PJRT_DeviceDescription_Kind_Args, device_description, 16),
    OFFSET(PJRT_DeviceDescription_Kind_Args, device_kind, 24),
    OFFSET(PJRT_DeviceDescription_Kind_Args, device_kind_size, 32),
    OFFSET(PJRT_DeviceDescription_DebugString_Args, device_description, 16),
    OFFSET(PJRT_DeviceDescription_DebugString_Args, debug_string, 24),
    OFFSET(PJRT_DeviceDescription_DebugString_Args, debug_string_size, 32),
    OFFSET(PJRT_DeviceDescription_ToString_Args, device_description, 16),
    OFFSET(PJRT_DeviceDescription_ToString_Args, to_string, 24),
    OFFSET(PJRT_DeviceDescription_ToString_Args, to_string_size, 32),
    OFFSET(PJRT_Memory_Id_Args, memory, 16),
    OFFSET(PJRT_Memory_Id_Args, id, 24),
    OFFSET(PJRT_Memory_Kind_Args, memory, 16),
    OFFSET(PJRT_Memory_Kind_Args, kind, 24),
    OFFSET(PJRT_Memory_Kind_Args, kind_size, 32),
    OFFSET(PJRT_Memory_Kind_Id_Args, memory, 16),
    OFFSET(PJRT_Memory_Kind_Id_Args, kind_id, 24),
    OFFSET(PJRT_Memory_DebugString_Args, memory, 16),
    OFFSET(PJRT_Memory_DebugString_Args, debug_string, 24),
    OFFSET(PJRT_Memory_DebugString_Args, debug_string_size, 32),
    OFFSET(PJRT_Memory_ToString_Args, memory, 16),
    OFFSET(PJRT_Memory_ToString_Args, to_string, 24),
    OFFSET(PJRT_Memory_ToString_Args, to_string_size, 32),
    OFFSET(PJRT_Memory_AddressableByDevices_Args, memory, 16),
    OFFSET(PJRT_Memory_AddressableByDevices_Args, devices, 24),
    OFFSET(PJRT_Memory_AddressableByDevices_Args, num_devices, 32),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, client, 16),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, data, 24),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, type, 32),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, dims, 40),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, num_dims, 48),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, byte_strides, 56),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, num_byte_strides, 64),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics, 72),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, device, 80),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, memory, 88),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, device_layout, 96),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer, 104),
    OFFSET(PJRT_Client_BufferFromHostBuffer_Args, buffer, 112),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, client, 16),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, device_buffer_ptr, 24),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, dims, 32),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, num_dims, 40),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, element_type, 48),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, layout, 56),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, device, 64),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, on_delete_callback_arg, 80),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, stream, 88),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, buffer, 96),
    OFFSET(PJRT_Client_CreateViewOfDeviceBuffer_Args, memory, 104),
    OFFSET(PJRT_Client_CreateUninitializedBuffer_Args, client, 16),
    OFFSET(PJRT_Client_CreateUninitializedBuffer_Args, shape_dims, 24),
    OFFSET(PJRT_Client_CreateUninitializedBuffer_Args, shape_num_dims, 32),
    OFFSET(PJRT_Client_CreateUninitializedBuffer_Args, shape_element_type, 40),
    OFFSET(PJRT_Client_CreateUninitializedBuffer_Args, shape_layout, 48),
    OFFSET(PJRT_Client_CreateUninitializedBuffer_Args, device, 56),
    OFFSET(PJRT_Client_CreateUninitializedBuffer_Args, memory, 64),
    OFFSET(PJRT_Client_CreateUninitializedBuffer_Args, buffer, 72),
    OFFSET(PJRT_Buffer_Destroy_Args, buffer, 16),
    OFFSET(PJRT_Buffer_ElementType_Args, buffer, 16),
    OFFSET(PJRT_Buffer_ElementType_Args, type, 24),
    OFFSET(PJRT_Buffer_Dimensions_Args, buffer, 16),
    OFFSET(PJRT_Buffer_Dimensions_Args, dims, 24),
    OFFSET(PJRT_Buffer_Dimensions_Args, num_dims, 32),
    OFFSET(PJRT_Buffer_UnpaddedDimensions_Args, buffer, 16),
    OFFSET(PJRT_Buffer_UnpaddedDimensions_Args, unpadded_dims, 24),
    OFFSET(PJRT_Buffer_UnpaddedDimensions_Args, num_dims, 32),
    OFFSET(PJRT_Buffer_DynamicDimensionIndices_Args, buffer, 16),
    OFFSET(PJRT_Buffer_DynamicDimensionIndices_Args, dynamic_dim_indices, 24),
    OFFSET(PJRT_Buffer_DynamicDimensionIndices_Args, num_dynamic_dims, 32),
    OFFSET(PJRT_Buffer_GetMemoryLayout_Args, buffer, 16),
    OFFSET(PJRT_Buffer_GetMemoryLayout_Args, layout, 24),
    OFFSET(PJRT_Buffer_OnDeviceSizeInBytes_Args, buffer, 16),
    OFFSET(PJRT_Buffer_OnDeviceSizeInBytes_Args, on_device_size_in_bytes, 24),
    OFFSET(PJRT_Buffer_Device_Args, buffer, 16),
    OFFSET(PJRT_Buffer_Device_Args, device, 24),
    OFFSET(PJRT_Buffer_Memory_Args, buffer, 16),
    OFFSET(PJRT_Buffer_Memory_Args, memory, 24),
    OFFSET(PJRT_Buffer_Delete_Args, buffer, 16),
    OFFSET(PJRT_Buffer_IsDeleted_Args, buffer, 16),
    OFFSET(PJRT_Buffer_IsDeleted_Args, is_deleted, 24),
    OFFSET(PJRT_Buffer_CopyToDevice_Args, buffer, 16),
    OFFSET(PJRT_Buffer_CopyToDevice_Args, dst_device, 24),
    OFFSET(PJRT_Buffer_CopyToDevice_Args, dst_buffer, 32),
    OFFSET(PJRT_Buffer_CopyToMemory_Args, buffer, 16),
    OFFSET(PJRT_Buffer_CopyToMemory_Args, dst_memory, 24),
    OFFSET(PJRT_Buffer_CopyToMemory_Args, dst_buffer, 32),
    OFFSET(PJRT_Buffer_ToHostBuffer_Args, src, 16),
    OFFSET(PJRT_Buffer_ToHostBuffer_Args, host_layout, 24),
    OFFSET(PJRT_Buffer_ToHostBuffer_Args, dst, 32),
    OFFSET(PJRT_Buffer_ToHostBuffer_Args, dst_size, 40),
    OFFSET(PJRT_Buffer_ToHostBuffer_Args, event, 48),
    OFFSET(PJRT_Buffer_IsOnCpu_Args, buffer, 16),
    OFFSET(PJRT_Buffer_IsOnCpu_Args, is_on_cpu, 24),
    OFFSET(PJRT_Buffer_ReadyEvent_Args, buffer, 16),
    OFFSET(PJRT_Buffer_ReadyEvent_Args, event, 24),
    OFFSET(PJRT_Buffer_UnsafePointer_Args, buffer, 16),
    OFFSET(PJRT_Buffer_UnsafePointer_Args, buffer_pointer, 24),
    OFFSET(PJRT_Buffer_IncreaseExternalReferenceCount_Args, buffer, 16),
    OFFSET(PJRT_Buffer_DecreaseExternalReferenceCount_Args, buffer, 16),
    OFFSET(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, buffer, 16),
    OFFSET(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, device_memory_ptr, 24),
    OFFSET(PJRT_Buffer_CopyRawToHost_Args, buffer, 16),
    OFFSET(PJRT_Buffer_CopyRawToHost_Args, dst, 24),
    OFFSET(PJRT_Buffer_CopyRawToHost_Args, offset, 32),
    OFFSET(PJRT_Buffer_CopyRawToHost_Args, transfer_size, 40),
    OFFSET(PJRT_Buffer_CopyRawToHost_Args, event, 48),
    OFFSET(PJRT_Client_Compile_Args, client, 16),
    OFFSET(PJRT_Client_Compile_Args, program, 24),
    OFFSET(PJRT_Client_Compile_Args, compile_options, 32),
    OFFSET(PJRT_Client_Compile_Args, compile_options_size, 40),
    OFFSET(PJRT_Client_Compile_Args, executable, 48),
    OFFSET(PJRT_Executable_Destroy_Args, executable, 16),
    OFFSET(PJRT_Executable_Name_Args, executable, 16),
    OFFSET(PJRT_Executable_Name_Args, executable_name, 24),
    OFFSET(PJRT_Executable_Name_Args, executable_name_size, 32),
    OFFSET(PJRT_Executable_NumReplicas_Args, executable, 16),
    OFFSET(PJRT_Executable_NumReplicas_Args, num_replicas, 24),
    OFFSET(PJRT_Executable_NumPartitions_Args, executable, 16),
    OFFSET(PJRT_Executable_NumPartitions_Args, num_partitions, 24),
    OFFSET(PJRT_Executable_NumOutputs_Args, executable, 16),
    OFFSET(PJRT_Executable_NumOutputs_Args, num_outputs, 24),
    OFFSET(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, executable, 16),
    OFFSET(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, size_in_bytes, 24),
    OFFSET(PJRT_Executable_GetCostAnalysis_Args, executable, 16),
    OFFSET(PJRT_Executable_GetCostAnalysis_Args, num_properties, 24),
    OFFSET(PJRT_Executable_GetCostAnalysis_Args, properties, 32),
    OFFSET(PJRT_Executable_OutputMemoryKinds_Args, executable, 16),
    OFFSET(PJRT_Executable_OutputMemoryKinds_Args, num_outputs, 24),
    OFFSET(PJRT_Executable_OutputMemoryKinds_Args, memory_kinds, 32),
    OFFSET(PJRT_Executable_OutputMemoryKinds_Args, memory_kind_sizes, 40),
    OFFSET(PJRT_Executable_ParameterMemoryKinds_Args, executable, 16),
    OFFSET(PJRT_Executable_ParameterMemoryKinds_Args, num_parameters, 24),
    OFFSET(PJRT_Executable_ParameterMemoryKinds_Args, memory_kinds, 32),
    OFFSET(PJRT_Executable_ParameterMemoryKinds_Args, memory_kind_sizes, 40),
    OFFSET(PJRT_Executable_OutputElementTypes_Args, executable, 16),
    OFFSET(PJRT_Executable_OutputElementTypes_Args, output_types, 24),
    OFFSET(PJRT_Executable_OutputElementTypes_Args, num_output_types, 32),
    OFFSET(PJRT_Executable_OutputDimensions_Args, executable, 16),
    OFFSET(PJRT_Executable_OutputDimensions_Args, num_outputs, 24),
    OFFSET(PJRT_Executable_OutputDimensions_Args, dims, 32),
    OFFSET(PJRT_Executable_OutputDimensions_Args, dim_sizes, 40),
    OFFSET(PJRT_Executable_OptimizedProgram_Args, executable, 16),
    OFFSET(PJRT_Executable_OptimizedProgram_Args, program, 24),
    OFFSET(PJRT_Executable_Fingerprint_Args, executable, 16),
    OFFSET(PJRT_Executable_Fingerprint_Args, executable_fingerprint, 24),
    OFFSET(PJRT_Executable_Fingerprint_Args, executable_fingerprint_size, 32),
    OFFSET(PJRT_Executable_Serialize_Args, executable, 16),
    OFFSET(PJRT_Executable_Serialize_Args, serialized_bytes, 24),
    OFFSET(PJRT_Executable_Serialize_Args, serialized_bytes_size, 32),
    OFFSET(PJRT_Executable_Serialize_Args, serialized_executable, 40),
    OFFSET(PJRT_Executable_DeserializeAndLoad_Args, client, 16),
    OFFSET(PJRT_Executable_DeserializeAndLoad_Args, serialized_executable, 24),
    OFFSET(PJRT_Executable_DeserializeAndLoad_Args, serialized_executable_size, 32),
    OFFSET(PJRT_Executable_DeserializeAndLoad_Args, loaded_executable, 40),
    OFFSET(PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options, 48),
    OFFSET(PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options_size, 56),
    OFFSET(PJRT_Executable_DeserializeAndLoad_Args, load_options, 64),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, executable, 16),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes, 24),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, argument_size_in_bytes, 32),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, output_size_in_bytes, 40),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, alias_size_in_bytes, 48),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes, 56),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, host_generated_code_size_in_bytes, 64),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, host_argument_size_in_bytes, 72),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, host_output_size_in_bytes, 80),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, host_alias_size_in_bytes, 88),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, host_temp_size_in_bytes, 96),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes, 104),
    OFFSET(PJRT_Executable_GetCompiledMemoryStats_Args, total_size_in_bytes, 112),
    OFFSET(PJRT_LoadedExecutable_Destroy_Args, executable, 16),
    OFFSET(PJRT_LoadedExecutable_GetExecutable_Args, loaded_executable, 16),
    OFFSET(PJRT_LoadedExecutable_GetExecutable_Args, executable, 24),
    OFFSET(PJRT_LoadedExecutable_AddressableDevices_Args, executable, 16),
    OFFSET(PJRT_LoadedExecutable_AddressableDevices_Args, addressable_devices, 24),
    OFFSET(PJRT_LoadedExecutable_AddressableDevices_Args, num_addressable_devices, 32),
    OFFSET(PJRT_LogicalDeviceIds, replica, 0),
    OFFSET(PJRT_LogicalDeviceIds, partition, 4),
    OFFSET(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, executable, 16),
    OFFSET(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, addressable_device_logical_ids, 24),
    OFFSET(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, num_addressable_device_logical_ids, 32),
    OFFSET(PJRT_LoadedExecutable_GetDeviceAssignment_Args, executable, 16),
    OFFSET(PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_bytes, 24),
    OFFSET(PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_bytes_size, 32),
    OFFSET(PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_device_assignment, 40),
    OFFSET(PJRT_LoadedExecutable_Delete_Args, executable, 16),
    OFFSET(PJRT_LoadedExecutable_IsDeleted_Args, executable, 16),
    OFFSET(PJRT_LoadedExecutable_IsDeleted_Args, is_deleted, 24),
    OFFSET(PJRT_LoadedExecutable_Fingerprint_Args, executable, 16),
    OFFSET(PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint, 24),
    OFFSET(PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint_size, 32),
    OFFSET(PJRT_LoadedExecutable_Execute_Args, executable, 16),
    OFFSET(PJRT_LoadedExecutable_Execute_Args, options, 24),
    OFFSET(PJRT_LoadedExecutable_Execute_Args, argument_lists, 32),
    OFFSET(PJRT_LoadedExecutable_Execute_Args, num_devices, 40),
    OFFSET(PJRT_LoadedExecutable_Execute_Args, num_args, 48),
    OFFSET(PJRT_LoadedExecutable_Execute_Args, output_lists, 56),
    OFFSET(PJRT_LoadedExecutable_Execute_Args, device_complete_events, 64),
    OFFSET(PJRT_LoadedExecutable_Execute_Args, execute_device, 72),
    OFFSET(PJRT_ExecuteContext_Create_Args, context, 16),
    OFFSET(PJRT_ExecuteContext_Destroy_Args, context, 16),
    OFFSET(PJRT_Api_Version, major_version, 16),
    OFFSET(PJRT_Api_Version, minor_version, 20),
    OFFSET(PJRT_Layouts_MemoryLayout_Destroy_Args, layout, 16),
    OFFSET(PJRT_Layouts_MemoryLayout_Serialize_Args, layout, 16),
    OFFSET(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_bytes, 24),
    OFFSET(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_bytes_size, 32),
    OFFSET(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_layout, 40),
    OFFSET(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, client, 16),
    OFFSET(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, type, 24),
    OFFSET(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, dims, 32),
    OFFSET(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, num_dims, 40),
    OFFSET(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, layout, 48),
    OFFSET(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, buffer, 16),
    OFFSET(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, layout, 24),
    OFFSET(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, executable, 16),
    OFFSET(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, num_outputs, 24),
    OFFSET(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, layouts, 32),
    OFFSET(PJRT_Layouts_Extension, base, 0),
    OFFSET(PJRT_FFI_Type_Info, serialize, 8),
    OFFSET(PJRT_FFI_Type_Info, deserialize, 16),
    OFFSET(PJRT_FFI_Type_Register_Args, type_name, 16),
    OFFSET(PJRT_FFI_Type_Register_Args, type_name_size, 24),
    OFFSET(PJRT_FFI_Type_Register_Args, type_id, 32),
    OFFSET(PJRT_FFI_Type_Register_Args, type_info, 40),
    OFFSET(PJRT_FFI_UserData, type_id, 0),
    OFFSET(PJRT_FFI_UserData, data, 8),
    OFFSET(PJRT_FFI_UserData_Add_Args, context, 16),
    OFFSET(PJRT_FFI_UserData_Add_Args, user_data, 24),
    OFFSET(PJRT_FFI_Register_Handler_Args, target_name, 8),
    OFFSET(PJRT_FFI_Register_Handler_Args, target_name_size, 16),
    OFFSET(PJRT_FFI_Register_Handler_Args, handler, 24),
    OFFSET(PJRT_FFI_Register_Handler_Args, platform_name, 32),
    OFFSET(PJRT_FFI_Register_Handler_Args, platform_name_size, 40),
    OFFSET(PJRT_FFI_Register_Handler_Args, traits, 48),
    OFFSET(PJRT_FFI_Extension, base, 0),
};

template <class Args>
PJRT_Error* call(Slot slot, Args& args) {
  args.struct_size = sizeof args;
  return reinterpret_cast<PJRT_Error* (*)(Args*)>(hlojit_pjrt_api()->functions[slot])(&args);
}

// A client of two devices and a program, through the table alone.
struct Session {
  PJRT_Client* client = nullptr;
  Session() {
    PJRT_NamedValue count = named("device_count", int64_t{2});
    PJRT_Client_Create_Args a{};
    a.create_options = &count;
    a.num_options = 1;
    REQUIRE(call(kSlot_Client_Create, a) == nullptr);
    client = a.client;
  }
  ~Session() {
    PJRT_Client_Destroy_Args a{};
    a.client = client;
    call(kSlot_Client_Destroy, a);
  }
  PJRT_Error* compile(std::string text, std::string format, PJRT_LoadedExecutable*& out) {
    PJRT_Program program{};
    program.code = text.data();
    program.code_size = text.size();
    program.format = format.data();
    program.format_size = format.size();
    PJRT_Client_Compile_Args a{};
    a.client = client;
    a.program = &program;
    a.compile_options = "";
    PJRT_Error* e = call(kSlot_Client_Compile, a);
    out = a.executable;
    return e;
  }
  PJRT_Buffer* buffer(const float* data, int64_t n) {
    PJRT_Client_BufferFromHostBuffer_Args a{};
    a.client = client;
    a.data = data;
    a.type = PJRT_Buffer_Type_F32;
    a.dims = &n;
    a.num_dims = 1;
    REQUIRE(call(kSlot_Client_BufferFromHostBuffer, a) == nullptr);
    delete a.done_with_host_buffer;
    return a.buffer;
  }
};

std::vector<float> read(PJRT_Buffer* buffer) {
  std::vector<float> out(static_cast<size_t>(buffer->shape.element_count()));
  PJRT_Buffer_ToHostBuffer_Args a{};
  a.src = buffer;
  a.dst = out.data();
  a.dst_size = out.size() * sizeof(float);
  REQUIRE(call(kSlot_Buffer_ToHostBuffer, a) == nullptr);
  CHECK(a.event->completion->wait() == nullptr);
  delete a.event;
  return out;
}

PJRT_Error* execute(PJRT_LoadedExecutable* program, std::vector<PJRT_Buffer*> arguments,
                    std::vector<PJRT_Buffer*>& results) {
  PJRT_LoadedExecutable_Execute_Args a{};
  PJRT_Buffer* const* lists[] = {arguments.data()};
  PJRT_Buffer** outputs[] = {results.data()};
  a.executable = program;
  a.argument_lists = lists;
  a.num_devices = 1;
  a.num_args = arguments.size();
  a.output_lists = outputs;
  return call(kSlot_LoadedExecutable_Execute, a);
}

constexpr const char* kDonating = R"(HloModule donate, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  p = f32[3] parameter(0)
  q = f32[3] parameter(1)
  ROOT r = f32[3] add(p, q)
})";

}  // namespace

TEST_CASE("pjrt: structs lie as published") {
  for (const Offset& o : kOffsets) {
    CAPTURE(o.member);
    CHECK(o.found == o.published);
  }
  CHECK(offsetof(PJRT_Api, functions) == 40);
  CHECK(kSlots == 138);
  CHECK(kSlot_Client_Compile == 20);
  CHECK(kSlot_LoadedExecutable_Execute == 55);
  CHECK(kSlot_LoadedExecutable_GetDeviceAssignment == 117);
}

TEST_CASE("pjrt: what is not written refuses by name") {
  const PJRT_Api* api = hlojit_pjrt_api();
  for (void* f : api->functions) CHECK(f != nullptr);
  PJRT_Plugin_Initialize_Args a{};
  PJRT_Error* e = call(kSlot_Client_DmaMap, a);
  REQUIRE(e);
  CHECK(e->code == PJRT_Error_Code_UNIMPLEMENTED);
  CHECK(e->message.find("PJRT_Client_DmaMap") != std::string::npos);
  delete e;
}

TEST_CASE("pjrt: programs in HLO run, and take donated memory") {
  Session s;
  PJRT_LoadedExecutable* program = nullptr;
  REQUIRE(s.compile(kDonating, "hlo", program) == nullptr);
  float x[] = {1, 2, 3};
  PJRT_Buffer *p = s.buffer(x, 3), *q = s.buffer(x, 3);
  const void* memory = p->array()->data.raw();
  std::vector<PJRT_Buffer*> results(1);

  PJRT_Error* twice = execute(program, {p, p}, results);
  REQUIRE(twice);
  CHECK(twice->code == PJRT_Error_Code_INVALID_ARGUMENT);
  delete twice;

  REQUIRE(execute(program, {p, q}, results) == nullptr);
  CHECK(read(results[0]) == std::vector<float>{2, 4, 6});
  CHECK(results[0]->array()->data.raw() == memory);
  CHECK(!p->array());
  CHECK(q->array());
  delete results[0];

  PJRT_Error* gone = execute(program, {p, q}, results);
  REQUIRE(gone);
  CHECK(gone->message.find("deleted or donated") != std::string::npos);
  delete gone;
  delete p;
  delete q;
  delete program;
}

TEST_CASE("pjrt: layouts that a program asks for") {
  Session s;
  PJRT_LoadedExecutable* program = nullptr;
  auto text = [](std::string modes) {
    return "HloModule m, frontend_attributes={" + modes +
           "}\nENTRY e { p = f32[2,3] parameter(0) n = f32[2,3] negate(p) ROOT t = f32[3,2] transpose(n), "
           "dimensions={1,0} }";
  };
  REQUIRE(s.compile(text(R"(arg_layout_modes="auto",out_layout_modes="auto")"), "hlo", program) == nullptr);
  CHECK(program->program->parameter_layouts[0].text == "{1,0}");
  CHECK(program->program->result_layouts[0].text == "{0,1}");  // so that nothing moves
  delete program;
  REQUIRE(s.compile(text(R"(arg_layout_modes="{0,1}",out_layout_modes="default")"), "hlo", program) == nullptr);
  CHECK(program->program->code->parameter_shapes()[0].layout.minor_to_major == std::vector<int64_t>{0, 1});
  CHECK(program->program->result_layouts[0].text == "{1,0}");
  delete program;
  REQUIRE(s.compile(R"(HloModule m, frontend_attributes={arg_layout_modes="{}"}
ENTRY e { ROOT p = f32[] parameter(0) })",
                    "hlo", program) == nullptr);
  delete program;
  PJRT_Error* e = s.compile(text(R"(arg_layout_modes="auto;auto")"), "hlo", program);
  REQUIRE(e);
  CHECK(e->message.find("has 2 entries") != std::string::npos);
  delete e;
}

TEST_CASE("pjrt: errors say why") {
  Session s;
  PJRT_LoadedExecutable* program = nullptr;
  PJRT_Error* e = s.compile("module {}", "mlir", program);
  REQUIRE(e);
  CHECK(e->code == PJRT_Error_Code_UNIMPLEMENTED);
  CHECK(e->message.find("decoder") != std::string::npos);
  delete e;
  e = s.compile("HloModule m\nENTRY e { p = f32[3] parameter(0) ROOT r = f32[2] negate(p) }", "hlo", program);
  REQUIRE(e);
  CHECK(e->code == PJRT_Error_Code_INVALID_ARGUMENT);
  delete e;
}

}  // namespace hlojit::pjrt

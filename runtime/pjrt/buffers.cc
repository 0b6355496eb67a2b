// Questions about buffers, and their end. transfers.cc fills and reads them.

#include "layout/index.h"
#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

PJRT_Error* Buffer_Destroy(PJRT_Buffer_Destroy_Args* a) {
  return guard([&] { delete a->buffer; });
}
PJRT_Error* Buffer_ElementType(PJRT_Buffer_ElementType_Args* a) {
  a->type = a->buffer->type;
  return nullptr;
}
PJRT_Error* Buffer_Dimensions(PJRT_Buffer_Dimensions_Args* a) {
  a->dims = a->buffer->shape.dims.data();
  a->num_dims = a->buffer->shape.dims.size();
  return nullptr;
}
PJRT_Error* Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args* a) {
  a->unpadded_dims = a->buffer->shape.dims.data();
  a->num_dims = a->buffer->shape.dims.size();
  return nullptr;
}
PJRT_Error* Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args* a) {
  a->dynamic_dim_indices = nullptr;
  a->num_dynamic_dims = 0;
  return nullptr;
}
PJRT_Error* Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args* a) {
  return guard([&] {
    const Layout& layout = a->buffer->shape.layout;
    if (layout.tiled()) fail(PJRT_Error_Code_UNIMPLEMENTED, "ask for tiled layouts through the layouts extension");
    a->layout = {};
    a->layout.struct_size = sizeof a->layout;
    a->layout.type = PJRT_Buffer_MemoryLayout::kTiled;
    a->layout.tiled.struct_size = sizeof a->layout.tiled;
    a->layout.tiled.minor_to_major = layout.minor_to_major.data();
    a->layout.tiled.minor_to_major_size = layout.minor_to_major.size();
  });
}
PJRT_Error* Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args* a) {
  const Shape& shape = a->buffer->shape;
  a->on_device_size_in_bytes = shape.is_array() ? static_cast<size_t>(physical_size(shape)) : 0;
  return nullptr;
}
PJRT_Error* Buffer_Device(PJRT_Buffer_Device_Args* a) {
  a->device = a->buffer->memory->device;
  return nullptr;
}
PJRT_Error* Buffer_Memory(PJRT_Buffer_Memory_Args* a) {
  a->memory = a->buffer->memory;
  return nullptr;
}
PJRT_Error* Buffer_Delete(PJRT_Buffer_Delete_Args* a) {
  return guard([&] { a->buffer->release(); });
}
PJRT_Error* Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args* a) {
  a->is_deleted = !a->buffer->array();
  return nullptr;
}
PJRT_Error* Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args* a) {
  a->is_on_cpu = true;
  return nullptr;
}
PJRT_Error* Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args* a) {
  return guard([&] {
    std::shared_ptr<Array> array = a->buffer->live_array();
    a->event = new_event(std::shared_ptr<Completion>(array, &array->ready));
  });
}
// Waits until the memory is filled: whoever asks for an address reads it next.
const void* address(PJRT_Buffer* buffer) {
  std::shared_ptr<Array> array = buffer->live_array();
  if (const PJRT_Error* e = array->ready.wait()) throw PJRT_Error(*e);
  return array->data.raw();
}
PJRT_Error* Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args* a) {
  return guard([&] { a->buffer_pointer = reinterpret_cast<uintptr_t>(address(a->buffer)); });
}
PJRT_Error* Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args* a) {
  return guard([&] { a->device_memory_ptr = const_cast<void*>(address(a->buffer)); });
}
PJRT_Error* Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args* a) {
  return guard([&] { a->buffer->hold(); });
}
PJRT_Error* Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args* a) {
  return guard([&] { a->buffer->drop(); });
}

}  // namespace

PJRT_Buffer::PJRT_Buffer(Shape s, PJRT_Memory* m, std::shared_ptr<Array> array)
    : shape(std::move(s)), type(to_pjrt(shape.type)), memory(m), array_(std::move(array)) {}

std::shared_ptr<Array> PJRT_Buffer::array() const {
  std::lock_guard lock(mutex_);
  return array_;
}

std::shared_ptr<Array> PJRT_Buffer::live_array() const {
  std::shared_ptr<Array> array = this->array();
  if (!array) fail(PJRT_Error_Code_INVALID_ARGUMENT, "the buffer has been deleted or donated");
  return array;
}

std::shared_ptr<Array> PJRT_Buffer::release() {
  std::lock_guard lock(mutex_);
  return std::move(array_);
}

void PJRT_Buffer::hold() {
  std::lock_guard lock(mutex_);
  if (!array_ && !held_) fail(PJRT_Error_Code_INVALID_ARGUMENT, "the buffer has been deleted or donated");
  if (++holders_ == 1) held_ = array_;
}

void PJRT_Buffer::drop() {
  std::shared_ptr<Array> last;  // freed outside the lock
  std::lock_guard lock(mutex_);
  if (holders_ == 0) fail(PJRT_Error_Code_INVALID_ARGUMENT, "nothing counts on the buffer");
  if (--holders_ == 0) last = std::move(held_);
}

void add_buffer_functions(PJRT_Api& api) {
  HLOJIT_PJRT_SET(api, Buffer_Destroy);
  HLOJIT_PJRT_SET(api, Buffer_ElementType);
  HLOJIT_PJRT_SET(api, Buffer_Dimensions);
  HLOJIT_PJRT_SET(api, Buffer_UnpaddedDimensions);
  HLOJIT_PJRT_SET(api, Buffer_DynamicDimensionIndices);
  HLOJIT_PJRT_SET(api, Buffer_GetMemoryLayout);
  HLOJIT_PJRT_SET(api, Buffer_OnDeviceSizeInBytes);
  HLOJIT_PJRT_SET(api, Buffer_Device);
  HLOJIT_PJRT_SET(api, Buffer_Memory);
  HLOJIT_PJRT_SET(api, Buffer_Delete);
  HLOJIT_PJRT_SET(api, Buffer_IsDeleted);
  HLOJIT_PJRT_SET(api, Buffer_IsOnCpu);
  HLOJIT_PJRT_SET(api, Buffer_ReadyEvent);
  HLOJIT_PJRT_SET(api, Buffer_UnsafePointer);
  HLOJIT_PJRT_SET(api, Buffer_OpaqueDeviceMemoryDataPointer);
  HLOJIT_PJRT_SET(api, Buffer_IncreaseExternalReferenceCount);
  HLOJIT_PJRT_SET(api, Buffer_DecreaseExternalReferenceCount);
}

}  // namespace hlojit::pjrt

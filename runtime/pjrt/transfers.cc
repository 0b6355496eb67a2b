// Arrays between the host's memory and buffers.
//
// Device memory is host memory, so a buffer may use the caller's memory in place where the caller
// promises to leave it alone; else elements are copied, whatever their strides.
#include <fmt/format.h>

#include <cstring>

#include "layout/index.h"
#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

// Copies an array of any byte strides to one without gaps, last dimension fastest.
void pack(const char* from, const int64_t* strides, const std::vector<int64_t>& dims, size_t d, size_t element,
          char*& to) {
  if (d == dims.size()) {
    std::memcpy(to, from, element);
    to += element;
    return;
  }
  if (d + 1 == dims.size() && strides[d] == static_cast<int64_t>(element)) {
    size_t bytes = static_cast<size_t>(dims[d]) * element;
    std::memcpy(to, from, bytes);
    to += bytes;
    return;
  }
  for (int64_t k = 0; k < dims[d]; ++k) pack(from + k * strides[d], strides, dims, d + 1, element, to);
}

bool dense(const Shape& shape, const int64_t* strides, size_t count) {
  if (!strides || count == 0) return true;
  int64_t expected = dtype_bytes(shape.type);
  for (size_t d = shape.dims.size(); d-- > 0;) {
    if (shape.dims[d] != 1 && strides[d] != expected) return false;
    expected *= shape.dims[d];
  }
  return true;
}

PJRT_Memory* place(PJRT_Device* device, PJRT_Memory* memory, PJRT_Client* client) {
  if (memory) return memory;
  return &(device ? device : client->devices.front())->memory[0];
}

bool aligned(const void* data, const Shape& shape) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(dtype_bytes(component_type(shape.type))) == 0;
}

PJRT_Buffer* finished_buffer(const Shape& shape, PJRT_Memory* memory, std::shared_ptr<Array> array) {
  array->ready.finish();
  return new PJRT_Buffer(shape, memory, std::move(array));
}

PJRT_Error* Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args* a) {
  return guard([&] {
    Shape shape = make_shape(a->type, a->dims, a->num_dims, a->device_layout);
    PJRT_Memory* memory = place(a->device, a->memory, a->client);
    auto array = std::make_shared<Array>();
    if (shape.is_token()) {
      a->done_with_host_buffer = done_event();
      a->buffer = finished_buffer(shape, memory, std::move(array));
      return;
    }
    Shape host = Shape::array(shape.type, shape.dims);
    if (a->byte_strides && a->num_byte_strides != 0 && a->num_byte_strides != shape.dims.size()) {
      fail(PJRT_Error_Code_INVALID_ARGUMENT,
           fmt::format("{} strides for {} dimensions", a->num_byte_strides, shape.dims.size()));
    }
    bool in_order = dense(host, a->byte_strides, a->num_byte_strides);
    bool lasting = a->host_buffer_semantics == kImmutableZeroCopy || a->host_buffer_semantics == kMutableZeroCopy;
    if (lasting && in_order && shape == host && aligned(a->data, shape)) {
      auto done = std::make_shared<Completion>();
      array->data = Buffer::borrow(a->data, shape);
      array->released = [done] { done->finish(); };
      a->done_with_host_buffer = new_event(std::move(done));
    } else {
      Buffer packed = Buffer::allocate(host);
      char* to = static_cast<char*>(packed.mutable_raw());
      if (in_order) {
        std::memcpy(to, a->data, packed.size_bytes());
      } else if (host.element_count() > 0) {
        pack(static_cast<const char*>(a->data), a->byte_strides, host.dims, 0,
             static_cast<size_t>(dtype_bytes(host.type)), to);
      }
      array->data = shape == host ? std::move(packed) : packed.to_layout(shape);
      a->done_with_host_buffer = done_event();
    }
    a->buffer = finished_buffer(shape, memory, std::move(array));
  });
}

PJRT_Error* Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args* a) {
  return guard([&] {
    Shape shape = make_shape(a->element_type, a->dims, a->num_dims, a->layout);
    if (!aligned(a->device_buffer_ptr, shape))
      fail(PJRT_Error_Code_INVALID_ARGUMENT, "memory must be aligned to its elements");
    auto array = std::make_shared<Array>();
    array->data = Buffer::borrow(a->device_buffer_ptr ? a->device_buffer_ptr : "", shape);
    if (a->on_delete_callback) {
      array->released = [f = a->on_delete_callback, p = a->device_buffer_ptr, arg = a->on_delete_callback_arg] {
        f(p, arg);
      };
    }
    a->buffer = finished_buffer(shape, place(a->device, a->memory, a->client), std::move(array));
  });
}

PJRT_Error* Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args* a) {
  return guard([&] {
    Shape shape = make_shape(a->shape_element_type, a->shape_dims, a->shape_num_dims, a->shape_layout);
    auto array = std::make_shared<Array>();
    if (shape.is_array()) array->data = Buffer::allocate(shape);
    a->buffer = finished_buffer(shape, place(a->device, a->memory, a->client), std::move(array));
  });
}

// Calls f with the filled Array, now or when it is; the event that comes back tells when f is done.
PJRT_Event* when_filled(PJRT_Buffer* buffer, std::function<void(const Array&)> f) {
  std::shared_ptr<Array> array = buffer->live_array();
  auto done = std::make_shared<Completion>();
  Array* raw = array.get();
  raw->ready.then([array = std::move(array), f = std::move(f), done] {
    std::optional<PJRT_Error> error;
    if (const PJRT_Error* e = array->ready.error()) {
      error = *e;
    } else {
      try {
        f(*array);
      } catch (...) {
        error = current_error();
      }
    }
    done->finish(std::move(error));
  });
  return new_event(std::move(done));
}

PJRT_Error* Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args* a) {
  return guard([&] {
    const Shape& shape = a->src->shape;
    if (shape.is_token()) {
      a->dst_size = 0;
      if (a->dst) a->event = done_event();
      return;
    }
    Shape host =
        a->host_layout ? make_shape(a->src->type, shape.dims.data(), shape.dims.size(), a->host_layout) : shape;
    auto bytes = static_cast<size_t>(physical_size(host));
    if (!a->dst) {
      a->dst_size = bytes;
      return;
    }
    if (a->dst_size < bytes)
      fail(PJRT_Error_Code_INVALID_ARGUMENT,
           fmt::format("{} needs {} bytes, {} were given", host.to_string(), bytes, a->dst_size));
    a->event = when_filled(a->src, [host, dst = a->dst](const Array& from) {
      if (from.data.shape() == host) {
        std::memcpy(dst, from.data.raw(), from.data.size_bytes());
      } else {
        relayout(from.data.shape(), from.data.raw(), host, dst);
      }
    });
  });
}

PJRT_Error* Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args* a) {
  return guard([&] {
    const Shape& shape = a->buffer->shape;
    int64_t bytes = shape.is_array() ? physical_size(shape) : 0;
    if (a->offset < 0 || a->transfer_size < 0 || a->offset > bytes || a->transfer_size > bytes - a->offset) {
      fail(PJRT_Error_Code_INVALID_ARGUMENT,
           fmt::format("bytes {} to {} do not lie in {} bytes", a->offset, a->offset + a->transfer_size, bytes));
    }
    a->event =
        when_filled(a->buffer, [dst = a->dst, offset = a->offset, size = static_cast<size_t>(a->transfer_size)](
                                   const Array& from) { std::memcpy(dst, from.data.data<char>() + offset, size); });
  });
}

PJRT_Buffer* copy_to(PJRT_Buffer* buffer, PJRT_Memory* memory) {
  auto copy = std::make_shared<Array>();
  std::shared_ptr<Array> from = buffer->live_array();
  Array* raw = from.get();
  raw->ready.then([from = std::move(from), copy] {
    std::optional<PJRT_Error> error;
    if (from->ready.error()) error = *from->ready.error();
    try {
      if (!error && from->data.raw()) copy->data = Buffer::copy_of(from->data.raw(), from->data.shape());
    } catch (...) {
      error = current_error();
    }
    copy->ready.finish(std::move(error));
  });
  return new PJRT_Buffer(buffer->shape, memory, std::move(copy));
}
PJRT_Error* Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args* a) {
  return guard([&] { a->dst_buffer = copy_to(a->buffer, &a->dst_device->memory[0]); });
}
PJRT_Error* Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args* a) {
  return guard([&] { a->dst_buffer = copy_to(a->buffer, a->dst_memory); });
}

}  // namespace

void add_transfer_functions(PJRT_Api& api) {
  HLOJIT_PJRT_SET(api, Client_BufferFromHostBuffer);
  HLOJIT_PJRT_SET(api, Client_CreateViewOfDeviceBuffer);
  HLOJIT_PJRT_SET(api, Client_CreateUninitializedBuffer);
  HLOJIT_PJRT_SET(api, Buffer_ToHostBuffer);
  HLOJIT_PJRT_SET(api, Buffer_CopyRawToHost);
  HLOJIT_PJRT_SET(api, Buffer_CopyToDevice);
  HLOJIT_PJRT_SET(api, Buffer_CopyToMemory);
}

}  // namespace hlojit::pjrt

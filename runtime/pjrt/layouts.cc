// The layouts extension: layouts travel as the text HLO has for them.
#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

PJRT_Error* destroy(PJRT_Layouts_MemoryLayout_Destroy_Args* a) {
  delete a->layout;
  return nullptr;
}
PJRT_Error* serialize(PJRT_Layouts_MemoryLayout_Serialize_Args* a) {
  return guard([&] {
    auto* text = new std::string(a->layout->text);
    a->serialized_bytes = text->data();
    a->serialized_bytes_size = text->size();
    a->serialized_layout = reinterpret_cast<PJRT_Layouts_SerializedLayout*>(text);
    a->serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout* p) { delete reinterpret_cast<std::string*>(p); };
  });
}
PJRT_Error* default_layout(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* a) {
  return guard([&] {
    a->layout = new PJRT_Layouts_MemoryLayout{to_string(Layout::descending(static_cast<int64_t>(a->num_dims)))};
  });
}
PJRT_Error* buffer_layout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* a) {
  return guard([&] { a->layout = new PJRT_Layouts_MemoryLayout{to_string(a->buffer->shape.layout)}; });
}
PJRT_Error* output_layouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* a) {
  a->layouts = a->executable->program->result_layout_pointers.data();
  a->num_outputs = a->executable->program->result_layout_pointers.size();
  return nullptr;
}
PJRT_Error* parameter_layouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* a) {
  a->layouts = a->executable->program->parameter_layout_pointers.data();
  a->num_outputs = a->executable->program->parameter_layout_pointers.size();
  return nullptr;
}

}  // namespace

PJRT_Extension_Base* layouts_extension() {
  static PJRT_Layouts_Extension extension = {
      .base = {sizeof(PJRT_Layouts_Extension), PJRT_Extension_Type_Layouts, nullptr},
      .memory_layout_destroy = destroy,
      .memory_layout_serialize = serialize,
      .client_get_default_layout = default_layout,
      .buffer_memory_layout = buffer_layout,
      .topology_get_default_layout = default_layout,
      .executable_get_output_layouts = output_layouts,
      .executable_get_parameter_layouts = parameter_layouts,
  };
  return &extension.base;
}

}  // namespace hlojit::pjrt

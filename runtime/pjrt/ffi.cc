// The FFI extension: handlers of custom calls that a frontend registers, and data for an execution.
#include "runtime/pjrt/ffi_call.h"
#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

PJRT_Error* type_register(PJRT_FFI_Type_Register_Args* a) {
  return guard([&] {
    a->type_id = ffi::register_type(std::string(a->type_name, a->type_name_size), a->type_id,
                                    a->type_info ? a->type_info->deleter : nullptr);
  });
}
PJRT_Error* user_data_add(PJRT_FFI_UserData_Add_Args* a) {
  return guard([&] {
    if (!a->context) fail(PJRT_Error_Code_INVALID_ARGUMENT, "user data needs an execute context");
    a->context->user_data.push_back({a->user_data.type_id, a->user_data.data});
  });
}
PJRT_Error* register_handler(PJRT_FFI_Register_Handler_Args* a) {
  return guard([&] {
    if (!a->handler) fail(PJRT_Error_Code_INVALID_ARGUMENT, "a handler must not be null");
    ffi::register_handlers(std::string(a->target_name, a->target_name_size),
                           {nullptr, nullptr, nullptr, reinterpret_cast<ffi::XLA_FFI_Handler*>(a->handler)});
  });
}

}  // namespace

PJRT_Extension_Base* ffi_extension() {
  static PJRT_FFI_Extension extension = {
      .base = {sizeof(PJRT_FFI_Extension), PJRT_Extension_Type_FFI, nullptr},
      .type_register = type_register,
      .user_data_add = user_data_add,
      .register_handler = register_handler,
  };
  return &extension.base;
}

}  // namespace hlojit::pjrt

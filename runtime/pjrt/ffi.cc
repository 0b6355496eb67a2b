// The FFI extension: handlers of custom calls that a frontend registers.
#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

PJRT_Error* type_register(PJRT_FFI_Type_Register_Args* a) {
  return guard([&] {
    static std::atomic<int64_t> next{1000};
    if (a->type_id == 0) a->type_id = next.fetch_add(1);
  });
}
PJRT_Error* user_data_add(PJRT_FFI_UserData_Add_Args* a) {
  return guard([&] {
    if (!a->context) fail(PJRT_Error_Code_INVALID_ARGUMENT, "user data needs an execute context");
    a->context->user_data.push_back(a->user_data);
  });
}
PJRT_Error* register_handler(PJRT_FFI_Register_Handler_Args*) { return nullptr; }

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

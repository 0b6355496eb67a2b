// The table that GetPjrtApi hands out, the plugin's attributes, and the errors of all functions.
#include <fmt/format.h>

#include <limits>
#include <new>

#include "runtime/pjrt/objects.h"
#include "runtime/pool.h"

namespace hlojit::pjrt {
namespace {

constexpr const char* kNames[] = {
#define HLOJIT_PJRT_NAME(name) "PJRT_" #name,
    HLOJIT_PJRT_FUNCTIONS(HLOJIT_PJRT_NAME)
#undef HLOJIT_PJRT_NAME
};

// What stands in the table for a function that is not written: refused by name.
template <size_t slot>
PJRT_Error* refused(void*) {
  return new PJRT_Error{PJRT_Error_Code_UNIMPLEMENTED, fmt::format("hlojit does not implement {}", kNames[slot])};
}

template <size_t... slots>
void refuse_all(PJRT_Api& api, std::index_sequence<slots...>) {
  ((api.functions[slots] = reinterpret_cast<void*>(&refused<slots>)), ...);
}

void destroy_error(PJRT_Error* e) { delete e; }
void error_message(const PJRT_Error* e, const char** message, size_t* size) {
  *message = e->message.data();
  *size = e->message.size();
}
PJRT_Error_Code error_code(const PJRT_Error* e) { return e->code; }
void no_payloads(const PJRT_Error*, void*, void*) {}

// These two return nothing, errors being what they are about.
void Error_Destroy(PJRT_Error_Destroy_Args* a) { destroy_error(a->error); }
void Error_Message(PJRT_Error_Message_Args* a) { error_message(a->error, &a->message, &a->message_size); }
PJRT_Error* Error_GetCode(PJRT_Error_GetCode_Args* a) {
  a->code = error_code(a->error);
  return nullptr;
}

PJRT_Error* Error_ForEachPayload(PJRT_Error_ForEachPayload_Args*) { return nullptr; }

PJRT_Error* Plugin_Initialize(PJRT_Plugin_Initialize_Args*) { return nullptr; }

PJRT_Error* Plugin_Attributes(PJRT_Plugin_Attributes_Args* a) {
  // Programs are decoded by the jaxlib that wrote them, so any StableHLO will do: it writes the lesser of this version
  // and its own. Without one it keeps to what was current weeks before, which has no ops for asynchronous collectives.
  static constexpr int64_t kAnyVersion[] = {1, std::numeric_limits<int32_t>::max(), 0};
  static const PJRT_NamedValue attributes[] = {named("xla_version", int64_t{2}),
                                               named("stablehlo_current_version", std::span(kAnyVersion))};
  a->attributes = attributes;
  a->num_attributes = std::size(attributes);
  return nullptr;
}

PJRT_NamedValue named(std::string_view name, PJRT_NamedValue::Type type) {
  PJRT_NamedValue v{};
  v.struct_size = sizeof v;
  v.name = name.data();
  v.name_size = name.size();
  v.type = type;
  v.value_size = 1;
  return v;
}

}  // namespace

const PJRT_Error_FunctionTable kErrorFunctions = {sizeof(PJRT_Error_FunctionTable),
                                                  sizeof(PJRT_Error),
                                                  nullptr,
                                                  destroy_error,
                                                  error_message,
                                                  error_code,
                                                  no_payloads};

PJRT_NamedValue named(std::string_view name, int64_t value) {
  PJRT_NamedValue v = named(name, PJRT_NamedValue::kInt64);
  v.int64_value = value;
  return v;
}
PJRT_NamedValue named(std::string_view name, float value) {
  PJRT_NamedValue v = named(name, PJRT_NamedValue::kFloat);
  v.float_value = value;
  return v;
}
PJRT_NamedValue named(std::string_view name, std::string_view value) {
  PJRT_NamedValue v = named(name, PJRT_NamedValue::kString);
  v.string_value = value.data();
  v.value_size = value.size();
  return v;
}
PJRT_NamedValue named(std::string_view name, std::span<const int64_t> values) {
  PJRT_NamedValue v = named(name, PJRT_NamedValue::kInt64List);
  v.int64_array_value = values.data();
  v.value_size = values.size();
  return v;
}

void fail(PJRT_Error_Code code, std::string message) { throw PJRT_Error{code, std::move(message)}; }

PJRT_Error current_error() {
  try {
    throw;
  } catch (const PJRT_Error& e) {
    return e;
  } catch (const Error& e) {
    PJRT_Error out;
    switch (e.kind()) {
      case ErrorKind::kUnsupported: out.code = PJRT_Error_Code_UNIMPLEMENTED; break;
      case ErrorKind::kInvalid:
      case ErrorKind::kInput: out.code = PJRT_Error_Code_INVALID_ARGUMENT; break;
      case ErrorKind::kFailed:
        out.code = dynamic_cast<const OutOfMemory*>(&e) ? PJRT_Error_Code_RESOURCE_EXHAUSTED : PJRT_Error_Code_INTERNAL;
        break;
    }
    out.message = fmt::format("hlojit: {}: {}", error_kind_name(e.kind()), e.what());
    for (size_t k = 0; k < e.diagnostics().size() && k < 20; ++k) {
      const Diagnostic& d = e.diagnostics()[k];
      if (k > 0) out.message += fmt::format("\n  {}{}{}", d.instruction, d.instruction.empty() ? "" : ": ", d.message);
      if (!d.rule.empty()) out.message += fmt::format(" [{}]", d.rule);
      if (!d.details.empty()) out.message += "\n    " + d.details;
    }
    return out;
  } catch (const std::bad_alloc&) {
    return {PJRT_Error_Code_RESOURCE_EXHAUSTED, "hlojit: out of memory"};
  } catch (const std::exception& e) {
    return {PJRT_Error_Code_INTERNAL, fmt::format("hlojit: {}", e.what())};
  } catch (...) {
    return {PJRT_Error_Code_INTERNAL, "hlojit: unknown error"};
  }
}

namespace {

PJRT_Api make_api() {
  PJRT_Api api{};
  api.struct_size = sizeof api;
  api.pjrt_api_version.struct_size = sizeof api.pjrt_api_version;
  api.pjrt_api_version.major_version = kApiMajor;
  api.pjrt_api_version.minor_version = kApiMinor;
  api.extension_start = layouts_extension();
  api.extension_start->next = ffi_extension();
  refuse_all(api, std::make_index_sequence<kSlots>());
  api.functions[kSlot_Error_Destroy] = reinterpret_cast<void*>(&Error_Destroy);
  api.functions[kSlot_Error_Message] = reinterpret_cast<void*>(&Error_Message);
  HLOJIT_PJRT_SET(api, Error_GetCode);
  HLOJIT_PJRT_SET(api, Error_ForEachPayload);
  HLOJIT_PJRT_SET(api, Plugin_Initialize);
  HLOJIT_PJRT_SET(api, Plugin_Attributes);
  add_event_functions(api);
  add_client_functions(api);
  add_buffer_functions(api);
  add_transfer_functions(api);
  add_program_functions(api);
  add_executable_functions(api);
  add_execute_functions(api);
  return api;
}

}  // namespace
}  // namespace hlojit::pjrt

const hlojit::pjrt::PJRT_Api* hlojit_pjrt_api() {
  static const hlojit::pjrt::PJRT_Api api = hlojit::pjrt::make_api();
  return &api;
}

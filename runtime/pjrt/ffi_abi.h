// XLA's foreign function interface as published, as far as calling a handler needs it: a call frame with
// arguments, results and attributes goes in, an error or null comes out.
//
// Written from the interface's facts. Element types are HLO's numbers, hlojit::DType.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hlojit::ffi {

constexpr int kApiMajor = 0;
constexpr int kApiMinor = 3;

struct XLA_FFI_Error;
struct XLA_FFI_Future;
struct XLA_FFI_ExecutionContext;
struct XLA_FFI_Api;

enum XLA_FFI_Error_Code : int32_t {
  XLA_FFI_Error_Code_INVALID_ARGUMENT = 3,
  XLA_FFI_Error_Code_NOT_FOUND = 5,
  XLA_FFI_Error_Code_UNIMPLEMENTED = 12,
  XLA_FFI_Error_Code_INTERNAL = 13,
};

enum XLA_FFI_ExecutionStage : int32_t { kInstantiate = 0, kPrepare = 1, kInitialize = 2, kExecute = 3 };
enum XLA_FFI_AttrType : int32_t { kArray = 1, kDictionary = 2, kScalar = 3, kString = 4 };
constexpr int32_t kBufferArgument = 1;  ///< the one type of argument and result

struct XLA_FFI_Extension_Base {
  size_t struct_size;
  int32_t type;
  XLA_FFI_Extension_Base* next;
};

// The two members every struct begins with.
#define HLOJIT_FFI_HEAD \
  size_t struct_size;   \
  XLA_FFI_Extension_Base* extension_start

struct XLA_FFI_Api_Version {
  HLOJIT_FFI_HEAD;
  int major_version;
  int minor_version;
};
struct XLA_FFI_ByteSpan {
  const char* ptr;
  size_t len;
};
struct XLA_FFI_Scalar {
  int32_t dtype;
  const void* value;
};
struct XLA_FFI_Array {
  int32_t dtype;
  size_t size;
  const void* data;
};
struct XLA_FFI_TypeId {
  int64_t type_id;
};
struct XLA_FFI_TypeInfo {
  HLOJIT_FFI_HEAD;
  void (*deleter)(void* object);
};

struct XLA_FFI_Buffer {
  HLOJIT_FFI_HEAD;
  int32_t dtype;
  void* data;
  int64_t rank;
  const int64_t* dims;
};
struct XLA_FFI_Args {
  HLOJIT_FFI_HEAD;
  int64_t size;
  const int32_t* types;
  void* const* args;
};
struct XLA_FFI_Rets {
  HLOJIT_FFI_HEAD;
  int64_t size;
  const int32_t* types;
  void* const* rets;
};
/// In order of names.
struct XLA_FFI_Attrs {
  HLOJIT_FFI_HEAD;
  int64_t size;
  const XLA_FFI_AttrType* types;
  const XLA_FFI_ByteSpan* const* names;
  const void* const* attrs;
};

struct XLA_FFI_CallFrame {
  HLOJIT_FFI_HEAD;
  const XLA_FFI_Api* api;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_Args args;
  XLA_FFI_Rets rets;
  XLA_FFI_Attrs attrs;
  XLA_FFI_Future* future;  ///< out: not null if the call is not over yet
};
using XLA_FFI_Handler = XLA_FFI_Error*(XLA_FFI_CallFrame*);
struct XLA_FFI_Handler_Bundle {
  XLA_FFI_Handler *instantiate, *prepare, *initialize, *execute;
};

struct XLA_FFI_Error_Create_Args {
  HLOJIT_FFI_HEAD;
  const char* message;
  XLA_FFI_Error_Code errc;
};
struct XLA_FFI_Error_GetMessage_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_Error* error;
  const char* message;
};
struct XLA_FFI_Error_Destroy_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_Error* error;
};
struct XLA_FFI_Type_Register_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_ByteSpan name;
  XLA_FFI_TypeId* type_id;
  const XLA_FFI_TypeInfo* type_info;
};
struct XLA_FFI_ExecutionContext_Get_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_TypeId* type_id;
  void* data;
};
/// State_Get has the same members; state is then out.
struct XLA_FFI_State_Set_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_TypeId* type_id;
  void* state;
};
struct XLA_FFI_Stream_Get_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_ExecutionContext* ctx;
  void* stream;
};
struct XLA_FFI_ThreadPool_Schedule_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_ExecutionContext* ctx;
  void (*task)(void* data);
  void* data;
};
struct XLA_FFI_ThreadPool_NumThreads_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_ExecutionContext* ctx;
  int64_t* num_threads;
};
struct XLA_FFI_Future_Create_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_Future* future;
};
struct XLA_FFI_Future_SetAvailable_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_Future* future;
};
struct XLA_FFI_Future_SetError_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_Future* future;
  XLA_FFI_Error* error;
};
struct XLA_FFI_RunId_Get_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_ExecutionContext* ctx;
  int64_t run_id;
};
struct XLA_FFI_DeviceOrdinal_Get_Args {
  HLOJIT_FFI_HEAD;
  XLA_FFI_ExecutionContext* ctx;
  int32_t device_ordinal;
};

/// What a handler may ask of us. A function without a type here is not offered and null.
struct XLA_FFI_Api {
  HLOJIT_FFI_HEAD;
  XLA_FFI_Api_Version api_version;
  const void* internal_api;
  XLA_FFI_Error* (*error_create)(XLA_FFI_Error_Create_Args*);
  void (*error_get_message)(XLA_FFI_Error_GetMessage_Args*);
  void (*error_destroy)(XLA_FFI_Error_Destroy_Args*);
  void* handler_register;
  XLA_FFI_Error* (*stream_get)(XLA_FFI_Stream_Get_Args*);
  XLA_FFI_Error* (*type_register)(XLA_FFI_Type_Register_Args*);
  XLA_FFI_Error* (*execution_context_get)(XLA_FFI_ExecutionContext_Get_Args*);
  XLA_FFI_Error* (*state_set)(XLA_FFI_State_Set_Args*);
  XLA_FFI_Error* (*state_get)(XLA_FFI_State_Set_Args*);
  void* device_memory_allocate;
  void* device_memory_free;
  XLA_FFI_Error* (*thread_pool_schedule)(XLA_FFI_ThreadPool_Schedule_Args*);
  XLA_FFI_Error* (*thread_pool_num_threads)(XLA_FFI_ThreadPool_NumThreads_Args*);
  XLA_FFI_Error* (*future_create)(XLA_FFI_Future_Create_Args*);
  XLA_FFI_Error* (*future_set_available)(XLA_FFI_Future_SetAvailable_Args*);
  XLA_FFI_Error* (*future_set_error)(XLA_FFI_Future_SetError_Args*);
  XLA_FFI_Error* (*run_id_get)(XLA_FFI_RunId_Get_Args*);
  XLA_FFI_Error* (*device_ordinal_get)(XLA_FFI_DeviceOrdinal_Get_Args*);
};

}  // namespace hlojit::ffi

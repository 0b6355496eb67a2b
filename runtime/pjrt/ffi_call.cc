// See ffi_call.h. What is opaque to handlers (errors, futures, contexts) is defined here.
#include "runtime/pjrt/ffi_call.h"

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "hlojit/custom_call.h"
#include "runtime/pjrt/ffi_attributes.h"

namespace hlojit::ffi {

struct XLA_FFI_Error {
  std::string message;
};

struct XLA_FFI_Future {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  XLA_FFI_Error* error = nullptr;

  XLA_FFI_Error* wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done; });
    return error;
  }
  void set(XLA_FFI_Error* e) {
    std::lock_guard lock(mutex);
    done = true;
    error = e;
    changed.notify_all();
  }
};

/// What a handler keeps from stage to stage at one call site.
struct State {
  int64_t type_id = 0;
  void* data = nullptr;
};

/// Who is being called; the context that handlers hand back to us.
struct XLA_FFI_ExecutionContext {
  State* instantiated = nullptr;
};

namespace {

thread_local Execution* current = nullptr;

struct Types {
  std::mutex mutex;
  std::map<std::string, int64_t> ids;
  std::map<int64_t, void (*)(void*)> deleters;
};
Types& types() {
  static auto* t = new Types;
  return *t;
}

XLA_FFI_Error* error(std::string message) { return new XLA_FFI_Error{std::move(message)}; }

}  // namespace

struct Calls {
  static XLA_FFI_Error* error_create(XLA_FFI_Error_Create_Args* a) { return error(a->message); }
  static void error_get_message(XLA_FFI_Error_GetMessage_Args* a) { a->message = a->error->message.c_str(); }
  static void error_destroy(XLA_FFI_Error_Destroy_Args* a) { delete a->error; }
  static XLA_FFI_Error* stream_get(XLA_FFI_Stream_Get_Args* a) {
    a->stream = nullptr;
    return nullptr;
  }
  static XLA_FFI_Error* type_register(XLA_FFI_Type_Register_Args* a) {
    a->type_id->type_id = register_type(std::string(a->name.ptr, a->name.len), a->type_id->type_id,
                                        a->type_info ? a->type_info->deleter : nullptr);
    return nullptr;
  }
  static XLA_FFI_Error* execution_context_get(XLA_FFI_ExecutionContext_Get_Args* a) {
    if (current) {
      for (const UserData& d : current->data_) {
        if (d.type_id == a->type_id->type_id) {
          a->data = d.data;
          return nullptr;
        }
      }
    }
    return error("this execution has no data of the type with number " + std::to_string(a->type_id->type_id));
  }
  static XLA_FFI_Error* state_set(XLA_FFI_State_Set_Args* a) {
    if (a->stage != kInstantiate || !a->ctx->instantiated) return error("state is kept for the stage instantiate only");
    *a->ctx->instantiated = {a->type_id->type_id, a->state};
    return nullptr;
  }
  static XLA_FFI_Error* state_get(XLA_FFI_State_Set_Args* a) {
    const State* s = a->ctx->instantiated;
    if (a->stage != kInstantiate || !s || !s->data) return error("no state was kept at this stage");
    if (s->type_id != a->type_id->type_id) return error("the state is of another type");
    a->state = s->data;
    return nullptr;
  }
  static XLA_FFI_Error* thread_pool_schedule(XLA_FFI_ThreadPool_Schedule_Args* a) {
    a->task(a->data);
    return nullptr;
  }
  static XLA_FFI_Error* thread_pool_num_threads(XLA_FFI_ThreadPool_NumThreads_Args* a) {
    *a->num_threads = 1;
    return nullptr;
  }
  static XLA_FFI_Error* future_create(XLA_FFI_Future_Create_Args* a) {
    a->future = new XLA_FFI_Future;
    return nullptr;
  }
  static XLA_FFI_Error* future_set_available(XLA_FFI_Future_SetAvailable_Args* a) {
    a->future->set(nullptr);
    return nullptr;
  }
  static XLA_FFI_Error* future_set_error(XLA_FFI_Future_SetError_Args* a) {
    a->future->set(a->error);
    return nullptr;
  }
  static XLA_FFI_Error* run_id_get(XLA_FFI_RunId_Get_Args* a) {
    a->run_id = current ? current->run_ : 0;
    return nullptr;
  }
  static XLA_FFI_Error* device_ordinal_get(XLA_FFI_DeviceOrdinal_Get_Args* a) {
    a->device_ordinal = current ? current->device_ : 0;
    return nullptr;
  }
};

namespace {

const XLA_FFI_Api kApi = {
    .struct_size = sizeof(XLA_FFI_Api),
    .extension_start = nullptr,
    .api_version = {sizeof(XLA_FFI_Api_Version), nullptr, kApiMajor, kApiMinor},
    .internal_api = nullptr,
    .error_create = Calls::error_create,
    .error_get_message = Calls::error_get_message,
    .error_destroy = Calls::error_destroy,
    .handler_register = nullptr,
    .stream_get = Calls::stream_get,
    .type_register = Calls::type_register,
    .execution_context_get = Calls::execution_context_get,
    .state_set = Calls::state_set,
    .state_get = Calls::state_get,
    .device_memory_allocate = nullptr,
    .device_memory_free = nullptr,
    .thread_pool_schedule = Calls::thread_pool_schedule,
    .thread_pool_num_threads = Calls::thread_pool_num_threads,
    .future_create = Calls::future_create,
    .future_set_available = Calls::future_set_available,
    .future_set_error = Calls::future_set_error,
    .run_id_get = Calls::run_id_get,
    .device_ordinal_get = Calls::device_ordinal_get,
};

/// One call site: what a frame says of it at every call.
class Site {
 public:
  Site(const CustomCallSite& site, XLA_FFI_Handler_Bundle handlers)
      : handlers_(handlers), operands_(site.operands), results_(site.results), attributes_(site.backend_config) {
    context_.instantiated = &state_;
    if (handlers_.instantiate) {
      std::string failed = call(handlers_.instantiate, kInstantiate, {}, {});
      if (!failed.empty()) throw Error(ErrorKind::kFailed, failed);
    }
  }
  ~Site() {
    if (!state_.data) return;
    void (*deleter)(void*) = nullptr;
    {
      std::lock_guard lock(types().mutex);
      auto found = types().deleters.find(state_.type_id);
      if (found != types().deleters.end()) deleter = found->second;
    }
    if (deleter) deleter(state_.data);
  }

  std::string run(const CustomCallRun& r) {
    std::string failed;
    if (handlers_.prepare) failed = call(handlers_.prepare, kPrepare, r.operands, r.results);
    if (failed.empty() && handlers_.initialize) failed = call(handlers_.initialize, kInitialize, r.operands, r.results);
    if (failed.empty()) failed = call(handlers_.execute, kExecute, r.operands, r.results);
    return failed;
  }

 private:
  struct Buffers {
    std::vector<XLA_FFI_Buffer> buffers;
    std::vector<void*> pointers;
    std::vector<int32_t> types;
    Buffers(const std::vector<Shape>& shapes, const std::vector<void*>& data) : types(data.size(), kBufferArgument) {
      for (size_t k = 0; k < data.size(); ++k) {
        const Shape& s = shapes[k];
        buffers.push_back(
            {sizeof(XLA_FFI_Buffer), nullptr, static_cast<int32_t>(s.type), data[k], s.rank(), s.dims.data()});
      }
      for (auto& b : buffers) pointers.push_back(&b);
    }
    int64_t size() const { return static_cast<int64_t>(buffers.size()); }
  };

  // The error's text, empty for success.
  std::string call(XLA_FFI_Handler* handler, XLA_FFI_ExecutionStage stage, std::span<const void* const> in,
                   std::span<void* const> out) {
    std::vector<void*> read;
    for (const void* p : in) read.push_back(const_cast<void*>(p));
    Buffers args(operands_, read), rets(results_, {out.begin(), out.end()});
    XLA_FFI_CallFrame frame{};
    frame.struct_size = offsetof(XLA_FFI_CallFrame, future);  // the published size ends before it
    frame.api = &kApi;
    frame.ctx = &context_;
    frame.stage = stage;
    frame.args = {sizeof frame.args, nullptr, args.size(), args.types.data(), args.pointers.data()};
    frame.rets = {sizeof frame.rets, nullptr, rets.size(), rets.types.data(), rets.pointers.data()};
    frame.attrs = attributes_.view();
    XLA_FFI_Error* e = handler(&frame);
    if (!e && frame.future) {
      e = frame.future->wait();
      delete frame.future;
    }
    if (!e) return {};
    std::string message = e->message.empty() ? "the handler failed without a message" : e->message;
    delete e;
    return message;
  }

  XLA_FFI_Handler_Bundle handlers_;
  std::vector<Shape> operands_, results_;
  CallAttributes attributes_;
  State state_;
  XLA_FFI_ExecutionContext context_;
};

}  // namespace

Execution::Execution(std::span<const UserData> data, int device, int64_t run)
    : data_(data), device_(device), run_(run), outer_(current) {
  current = this;
}
Execution::~Execution() { current = outer_; }
bool Execution::inside() { return current != nullptr; }

int64_t register_type(std::string name, int64_t id, void (*deleter)(void*)) {
  Types& t = types();
  std::lock_guard lock(t.mutex);
  auto [at, fresh] = t.ids.try_emplace(std::move(name), 0);
  if (fresh) at->second = id != 0 ? id : 1000 + static_cast<int64_t>(t.ids.size());
  if (deleter) t.deleters[at->second] = deleter;
  return at->second;
}

void register_handlers(const std::string& target, XLA_FFI_Handler_Bundle handlers) {
  register_custom_call(target, [handlers](const CustomCallSite& site) -> CustomCallFunction {
    auto kept = std::make_shared<Site>(site, handlers);
    return [kept](const CustomCallRun& run) { return kept->run(run); };
  });
}

}  // namespace hlojit::ffi

void hlojit::register_ffi_handlers(const std::string& target, FfiHandlers handlers) {
  using ffi::XLA_FFI_Handler;
  if (!handlers.execute) throw Error(ErrorKind::kInput, "the handlers of \"" + target + "\" lack that of execute");
  ffi::register_handlers(
      target,
      {reinterpret_cast<XLA_FFI_Handler*>(handlers.instantiate), reinterpret_cast<XLA_FFI_Handler*>(handlers.prepare),
       reinterpret_cast<XLA_FFI_Handler*>(handlers.initialize), reinterpret_cast<XLA_FFI_Handler*>(handlers.execute)});
}

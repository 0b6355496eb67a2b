// The C interface's custom calls: a function a target, a function a call, handlers of XLA's foreign function interface.
#include <utility>

#include "hlojit/custom_call.h"
#include "runtime/c_handles.h"

namespace {

using namespace hlojit::c;
using hlojit::CustomCallFunction;
using hlojit::CustomCallSite;

// A caller's context; the last to hold it has it released.
std::shared_ptr<void> owned(void* context, void (*release)(void*)) {
  return {context, release ? release : [](void*) {}};
}

CustomCallFunction calling(hlojit_custom_call function, std::shared_ptr<void> context) {
  return [function, context = std::move(context)](const hlojit::CustomCallRun& run) -> std::string {
    const char* wrong = function(context.get(), run.operands.data(), run.results.data());
    return wrong ? wrong : "";
  };
}

void run_on_pool(const hlojit_pool* pool, int64_t tasks, void (*f)(void*, int64_t), void* arg) {
  static_cast<const hlojit::CustomCallRun*>(pool->own)->parallel(tasks, [f, arg](int64_t k) { f(arg, k); });
}

CustomCallFunction calling_pooled(decltype(hlojit_call::pooled) function, std::shared_ptr<void> context) {
  return [function, context = std::move(context)](const hlojit::CustomCallRun& run) -> std::string {
    const hlojit_pool pool{sizeof(hlojit_pool), run.threads, run_on_pool, &run};
    const char* wrong = function(context.get(), run.operands.data(), run.results.data(), &pool);
    return wrong ? wrong : "";
  };
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> out;
  for (const std::string& t : texts) out.push_back(t.c_str());
  return out;
}

CustomCallFunction made(hlojit_call_maker maker, void* context, const CustomCallSite& site) {
  const std::vector<std::string> operands = texts(site.operands), results = texts(site.results);
  const std::vector<const char*> in = pointers(operands), out = pointers(results);
  const hlojit_call_site told{sizeof(hlojit_call_site),
                              site.target.c_str(),
                              site.api_version.c_str(),
                              site.backend_config.c_str(),
                              site.frontend_attributes.c_str(),
                              in.data(),
                              in.size(),
                              out.data(),
                              out.size(),
                              site.has_side_effect};
  hlojit_call call{};
  call.struct_size = sizeof call;
  if (const char* refused = maker(context, &told, &call)) throw hlojit::Error(hlojit::ErrorKind::kUnsupported, refused);
  if (call.pooled) return calling_pooled(call.pooled, owned(call.context, call.release));
  if (!call.function) return {};
  return calling(call.function, owned(call.context, call.release));
}

}  // namespace

hlojit_error* hlojit_register_custom_call(const char* target, hlojit_custom_call function, void* context,
                                          void (*release)(void* context)) {
  return guarded([&] {
    if (!function) return hlojit::register_custom_call(target, {});
    // The name's, and that of every program that has found it.
    hlojit::register_custom_call(target, [function, context = owned(context, release)](const CustomCallSite&) {
      return calling(function, context);
    });
  });
}

hlojit_error* hlojit_register_call_maker(const char* target, hlojit_call_maker maker, void* context,
                                         void (*release)(void* context)) {
  return guarded([&] {
    if (!maker) return hlojit::register_custom_call(target, {});
    hlojit::register_custom_call(target, [maker, context = owned(context, release)](const CustomCallSite& site) {
      return made(maker, context.get(), site);
    });
  });
}

hlojit_error* hlojit_load_custom_calls(const char* path) {
  return guarded([&] { hlojit::load_custom_calls(path); });
}

hlojit_error* hlojit_register_ffi(const char* target, void* instantiate, void* prepare, void* initialize,
                                  void* execute) {
  return guarded([&] { hlojit::register_ffi_handlers(target, {instantiate, prepare, initialize, execute}); });
}

// Custom calls: functions of the user that a program names with custom_call_target="...".
//
//     hlojit::register_custom_call("scale", [](const hlojit::CustomCallSite& site) {
//       int64_t n = site.results[0].element_count();              // once, when a program is
//       compiled return [n](const hlojit::CustomCallRun& run) -> std::string {
//         auto* x = static_cast<const float*>(run.operands[0]);   // at each execution
//         auto* y = static_cast<float*>(run.results[0]);
//         for (int64_t k = 0; k < n; ++k) y[k] = 2 * x[k];
//         return {};                                              // or what went wrong
//       };
//     });
//
// A target is looked up when a program is compiled: first among registered makers, then in the loaded
// libraries, then among our own (lapack_*_ffi, as JAX makes them). What XLA itself knows ("TopK", "Qr", "Eigh",
// "Sharding", ...) is not looked up. Registering and loading may happen from any thread; what a compiled program has
// found stays with it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "layout/export.h"
#include "layout/shape.h"

namespace hlojit {

/// What is known of a custom call when it is compiled. Arrays are leaves: tuples are taken apart
/// depth first, tokens have none. Layouts are those the buffers will have:
/// operand_layout_constraints if the program gives them, else row-major; of the result, as written.
struct CustomCallSite {
  std::string target;
  std::string api_version;     ///< "API_VERSION_ORIGINAL", "API_VERSION_TYPED_FFI", ...
  std::string backend_config;  ///< text after backend_config=, without quotes if it was a string
  std::string frontend_attributes;
  std::vector<Shape> operands, results;
  Shape result;  ///< as a whole
  bool has_side_effect = false;
};

/// One execution. Pointers are aligned to the element; operands must not be written, results are
/// uninitialised. Runs on the thread that called Executable::run (or on a replica's thread),
/// perhaps from several threads at once; a caller that needs context of its own may keep it by
/// thread.
struct CustomCallRun {
  std::span<const void* const> operands;
  std::span<void* const> results;
  int threads;  ///< of the program's pool
  /// f(k) for k in [0, count) on the program's pool.
  std::function<void(int64_t count, const std::function<void(int64_t)>& f)> parallel;
};

/// Returns an error text, empty if all went well. May throw instead.
using CustomCallFunction = std::function<std::string(const CustomCallRun&)>;
/// Called at least once for each call in a program that is compiled; may throw Error to refuse it.
using CustomCallMaker = std::function<CustomCallFunction(const CustomCallSite&)>;

/// Serves a target; an earlier registration of the name is replaced (an empty maker removes it).
HLOJIT_API void register_custom_call(const std::string& target, CustomCallMaker maker);

/// Serves targets by `extern "C" void TARGET(void* out, const void** in)` of a shared library: `in`
/// has a pointer an operand, `out` is the result's memory; a tuple is an array of pointers to its
/// elements. Calls with another api_version than API_VERSION_ORIGINAL are refused. Throws
/// Error(kInput) if the library cannot be loaded. It is never unloaded.
HLOJIT_API void load_custom_calls(const std::string& path);

/// Handlers of XLA's foreign function interface (XLA_FFI_Handler*, as the macros of its headers define them), by
/// stage; null for stages that there are not.
struct FfiHandlers {
  void* instantiate = nullptr;  ///< when a program is compiled
  void* prepare = nullptr;
  void* initialize = nullptr;
  void* execute = nullptr;  ///< at each execution
};
/// Serves a target, of calls of API_VERSION_TYPED_FFI, by such handlers. Throws Error(kInput) without execute.
HLOJIT_API void register_ffi_handlers(const std::string& target, FfiHandlers handlers);

}  // namespace hlojit

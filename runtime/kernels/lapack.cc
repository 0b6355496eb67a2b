// See lapack.h.
#include "runtime/kernels/lapack.h"

#include <dlfcn.h>

#include <string>

#include "layout/error.h"

namespace hlojit {
namespace {

constexpr const char* kLibrary = "libopenblas.so.0";

/// Never closed: executables keep its functions.
void* library() {
  static void* handle = [] {
    void* h = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!h) return h;
    if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(h, "openblas_set_num_threads"))) set(1);
    return h;
  }();
  return handle;
}

char letter(DType type) {
  switch (type) {
    case DType::kF32: return 's';
    case DType::kF64: return 'd';
    case DType::kC64: return 'c';
    case DType::kC128: return 'z';
    default:
      throw Error(ErrorKind::kUnsupported, "matrices of " + std::string(dtype_name(type)) + " cannot be factored");
  }
}

}  // namespace

void* lapack_function(std::string_view name, DType type) {
  std::string symbol = letter(type) + std::string(name) + "_";
  void* handle = library();
  void* function = handle ? dlsym(handle, symbol.c_str()) : nullptr;
  if (function) return function;
  throw Error(ErrorKind::kUnsupported,
              handle ? std::string(kLibrary) + " has no function " + symbol
                     : std::string(kLibrary) + " is needed for this program (Debian: libopenblas0-serial)");
}

}  // namespace hlojit

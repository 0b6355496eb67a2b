// See lapack.h.
#include "runtime/kernels/lapack.h"

#include <dlfcn.h>
#include <sched.h>

#include <atomic>
#include <string>

#include "layout/error.h"

namespace hlojit {
namespace {

constexpr const char* kLibrary = "libopenblas.so.0";

/// This thread on one core while it lives. The build with threads starts one a core that its loader may run on, which
/// would idle, and ends the process where the system refuses them.
class OneCore {
 public:
  OneCore() : known_(sched_getaffinity(0, sizeof before_, &before_) == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int c = 0; known_ && c < CPU_SETSIZE; ++c) {
      if (!CPU_ISSET(c, &before_)) continue;
      CPU_SET(c, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
  }
  ~OneCore() {
    if (known_) sched_setaffinity(0, sizeof before_, &before_);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_;
  const bool known_;
};

/// Never closed: executables keep its functions.
struct Library {
  void* handle = nullptr;
  bool locks = false;  ///< bears several callers at a time

  Library() {
    OneCore core;
    handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    if (auto* set = function<void(int)>("openblas_set_num_threads")) set(1);
    if (auto* parallel = function<int()>("openblas_get_parallel")) locks = parallel() != 0;
  }
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(handle, name));
  }
};

std::atomic<const Library*> loaded;

const Library& library() {
  static const Library* only = new Library;
  loaded = only;
  return *only;
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
  void* handle = library().handle;
  void* function = handle ? dlsym(handle, symbol.c_str()) : nullptr;
  if (function) return function;
  throw Error(ErrorKind::kUnsupported,
              handle ? std::string(kLibrary) + " has no function " + symbol
                     : std::string(kLibrary) + " is needed for this program (Debian: libopenblas0-pthread)");
}

std::unique_lock<std::mutex> lapack_turn() {
  static auto* turn = new std::mutex;
  const Library* known = loaded;
  return !known || known->locks ? std::unique_lock<std::mutex>() : std::unique_lock(*turn);
}

}  // namespace hlojit

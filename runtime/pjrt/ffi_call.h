// Handlers of XLA's foreign function interface as custom calls of ours.
//
// A handler is called with frames: once when the program is compiled (instantiate, if it has that
// stage), then at each execution. What belongs to one execution (the data that the frontend attached to
// it, the device) is known to the thread that runs it, see Execution.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/pjrt/ffi_abi.h"

namespace hlojit::ffi {

/// Data of one execution, by registered type.
struct UserData {
  int64_t type_id;
  void* data;
};

/// While it lives, programs that this thread runs are this execution.
class Execution {
 public:
  Execution(std::span<const UserData> data, int device, int64_t run);
  ~Execution();
  /// The caller is inside one: a callback that runs a program of its own.
  static bool inside();

 private:
  friend struct Calls;
  std::span<const UserData> data_;
  int device_;
  int64_t run_;
  Execution* outer_;
};

/// The number of a type's name: the one given if not 0, else the one it has or a new one.
int64_t register_type(std::string name, int64_t id, void (*deleter)(void*));

/// Serves a custom-call target by handlers; stages but execute may be null.
void register_handlers(const std::string& target, XLA_FFI_Handler_Bundle handlers);

}  // namespace hlojit::ffi

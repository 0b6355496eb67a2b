// What stands behind the C interface's handles, and how its functions come back without an exception.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "hlojit/hlojit.h"
#include "hlojit/hlojit_c.h"

struct hlojit_error {
  hlojit::Error error;
};
// Texts are made at once, so that asking needs no lock.
struct hlojit_module {
  hlojit::ModulePtr module;
  std::string text;
  std::vector<std::string> parameters, results;
};
struct hlojit_executable {
  hlojit::Executable executable;
  std::vector<std::string> parameters, results;
};
struct hlojit_buffer {
  hlojit::Buffer buffer;
  std::string shape;
};
struct hlojit_queues {
  hlojit::HostQueues queues;
};
struct hlojit_stop {
  std::atomic<bool> stop = false;
};
struct hlojit_device_run {
  hlojit::DeviceRun run;
  size_t results;
};
struct hlojit_run {
  hlojit::PendingRun run;
};

namespace hlojit::c {

// Runs f; what it throws comes back as an error.
template <class F>
hlojit_error* guarded(F f) noexcept {
  try {
    f();
    return nullptr;
  } catch (const Error& e) {
    return new hlojit_error{e};
  } catch (const std::bad_alloc&) {
    return new hlojit_error{Error(ErrorKind::kFailed, "out of memory")};
  } catch (const std::exception& e) {
    return new hlojit_error{Error(ErrorKind::kFailed, e.what())};
  } catch (...) {
    return new hlojit_error{Error(ErrorKind::kFailed, "unknown error")};
  }
}

// The caller's struct, of which an older caller has less, as ours; the rest is zero.
template <class T>
T take(const T* given) {
  T out{};
  if (given) std::memcpy(&out, given, std::min(given->struct_size, sizeof out));
  return out;
}
// And back: writes no more than the caller has.
template <class T>
void give(const T& value, T* out) {
  size_t size = out->struct_size;
  std::memcpy(out, &value, std::min(size, sizeof value));
  out->struct_size = size;
}

// Handles of what the C++ interface returns.
hlojit_buffer* wrap(Buffer buffer);
/// New buffers for the results; Error(kInput) if there is not room for just as many.
void check_room(size_t results, size_t room);
void give_results(std::vector<Buffer> results, hlojit_buffer** outputs);
/// Bytes for hlojit_bytes_free.
void give_bytes(const std::string& bytes, char** out, size_t* size);

/// The inputs of a run; those to be donated (of all, none if `donate` is null) are taken from their handles.
std::vector<Buffer> take_inputs(hlojit_buffer* const* inputs, const unsigned char* donate, size_t count);

std::vector<std::string> texts(const std::vector<Shape>& shapes);
/// The caller's options; null: the defaults.
Options to_options(const hlojit_options* given);

}  // namespace hlojit::c

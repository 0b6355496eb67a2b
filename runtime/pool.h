// Pooled memory: fresh pages cost more than most kernels that fill them (1.3 us a page), so blocks
// are kept across calls, in size classes, and large ones ask for huge pages. What no call takes any more
// goes back to the system; all together never have more than the process may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "layout/error.h"

namespace hlojit {

/// Error(kFailed) because memory is short.
class OutOfMemory final : public Error {
 public:
  explicit OutOfMemory(std::string message) : Error(ErrorKind::kFailed, std::move(message)) {}
};

/// At least `bytes` (never null, also for 0), 64-byte aligned, 64 readable bytes behind the end.
/// Returned to the pool when the last owner goes. Throws OutOfMemory.
std::shared_ptr<void> pool_allocate(size_t bytes);

/// Bytes the pool holds for reuse at the moment.
size_t pool_idle_bytes();
/// Gives those back to the system; how many they were.
size_t pool_release();

}  // namespace hlojit

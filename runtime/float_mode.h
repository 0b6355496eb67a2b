// A caller's floating-point mode (flush-to-zero, another rounding) must reach neither kernels nor what
// is computed while compiling: literals read, constants folded, values evaluated.
#pragma once

#include <immintrin.h>

namespace hlojit {

/// Default rounding and no flush-to-zero while it lives, on this thread.
class FloatMode {
 public:
  FloatMode() noexcept : saved_(_mm_getcsr()) {
    constexpr unsigned kDefault = 0x1f80;  // all exceptions masked, nearest even, denormals honoured
    if ((saved_ & ~0x3fu) != kDefault) _mm_setcsr(kDefault);
  }
  ~FloatMode() { _mm_setcsr(saved_); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  unsigned saved_;
};

}  // namespace hlojit

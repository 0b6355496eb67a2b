// A caller's floating-point mode (flush-to-zero, another rounding) must reach neither kernels nor what
// is computed while compiling: literals read, constants folded, values evaluated.
#pragma once

#include <immintrin.h>

namespace hlojit {

/// Default rounding while it lives, on this thread; subnormal numbers are kept, or flushed to zero where they are read
/// and made.
class FloatMode {
 public:
  explicit FloatMode(bool flush = false) noexcept : saved_(_mm_getcsr()) {
    constexpr unsigned kDefault = 0x1f80;  // all exceptions masked, nearest even, subnormals kept
    const unsigned mode = flush ? kDefault | kFlush : kDefault;
    if ((saved_ & ~0x3fu) != mode) _mm_setcsr(mode);
  }
  /// Whether this thread flushes.
  static bool flushes() noexcept { return (_mm_getcsr() & kFlush) == kFlush; }
  ~FloatMode() { _mm_setcsr(saved_); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  static constexpr unsigned kFlush = 0x8040;
  unsigned saved_;
};

}  // namespace hlojit

// The machine's own limits, measured: how fast memory of a given size can be read and written in a
// given mix, and how many multiply-adds the cores do. "% of roof" is a time from here divided by
// the time of a program; nothing is taken from a data sheet.
//
// Bandwidth depends on more than the level of cache: a copy of 64 MiB with stores that bypass the
// cache moves a third fewer bytes than one without, and reading alone is faster than either. So the
// probe runs loops with the program's own mix of reads and writes at the program's own size, with
// both kinds of stores, and the best is the roof.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "layout/dtype.h"

namespace hlojit::roof {

/// Bytes a second of one mix at one size.
struct Bandwidth {
  int reads = 0, writes = 0;  // streams of the mix that was measured
  double normal = 0;          // best pass with ordinary stores
  double streaming = 0;       // best pass with non-temporal stores; 0 if nothing is written
  double best() const { return normal > streaming ? normal : streaming; }
};

/// Best of repeated passes of `reads` and `writes` streams of equal length, `bytes` in all (a few
/// more when they do not divide), split over `threads` threads, which start together. Takes about
/// `budget_seconds` for each kind of store. reads <= 4, writes <= 3, not both 0.
Bandwidth measure_bandwidth(int reads, int writes, int64_t bytes, int threads, double budget_seconds = 0.06);

/// Best rate of multiply-adds of `type` (two operations each), per second, all threads together.
/// f64, bf16 and the 8-bit integers have their own instructions where the CPU has; other types run
/// as f32.
double measure_flops(DType type, int threads, double budget_seconds = 0.06);

/// What was measured, kept: the first question about a mix, size or type takes about 0.2 s. Not
/// thread-safe.
class Roof {
 public:
  explicit Roof(int threads) : threads_(threads) {}

  /// Bytes a second for a program that reads and writes this many bytes; 0 if it does neither.
  double bandwidth(int64_t bytes_read, int64_t bytes_written);
  double flops(DType type);
  /// Least seconds for that traffic and that many operations of `type`, whichever takes longer.
  double seconds(int64_t bytes_read, int64_t bytes_written, double operations, DType type);

 private:
  int threads_;
  std::map<std::pair<int64_t, int64_t>, double> bandwidth_;
  std::map<DType, double> flops_;
};

/// Name of the instruction set that is measured: "avx512", "avx2", "baseline".
const char* isa();

/// Nothing wider than AVX2 is measured from here on; before the first measurement.
void limit_to_avx2();

}  // namespace hlojit::roof

// The loops that the roof is measured with: streams that only read and write, and chains of
// multiply-adds that only compute. Each exists for every instruction set of the build's
// architecture; the best that the CPU has is chosen at run time, so that one binary measures every
// machine.
#pragma once

#include <cstddef>

namespace hlojit::roof {

inline constexpr int kMaxReads = 4;
inline constexpr int kMaxWrites = 3;
/// Streams are worked on in blocks of this many bytes; lengths are multiples of it.
inline constexpr size_t kBlockBytes = 512;

/// Reads `bytes` from every stream of `reads` and writes as many to every stream of `writes`. All
/// streams are aligned to 64 bytes and do not overlap.
using StreamKernel = void (*)(const char* const* reads, char* const* writes, size_t bytes);

/// Runs `rounds` rounds of independent multiply-adds; what one round is worth stands in the table.
using ComputeKernel = void (*)(size_t rounds);

struct ComputeEntry {
  ComputeKernel run = nullptr;
  double operations_per_round = 0;  // a multiply-add counts as two
};

/// The kernels of one instruction set. [0][0] of the streams is empty.
struct KernelTable {
  const char* isa = "";
  StreamKernel normal[kMaxReads + 1][kMaxWrites + 1] = {};
  StreamKernel streaming[kMaxReads + 1][kMaxWrites + 1] = {};  // non-temporal stores; needs writes
  ComputeEntry f32, f64, bf16, s8;
};

/// The table of the widest instruction set that this CPU runs.
const KernelTable& kernels();

/// Whether that is AVX2 at most; to be set before kernels() is first called.
bool& kernels_limited_to_avx2();

}  // namespace hlojit::roof

// Where entry code gets its kernels from: what a call needs to be told, and nothing of how they are made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/options.h"
#include "compiler/ir/module.h"

namespace hlojit::codegen {

/// What there is to do for one native function of a kernel.
struct KernelWork {
  int64_t chunks = 1;
  int64_t scratch_bytes = 0;  ///< a chunk
  int64_t cost_ns = 0;        ///< of all chunks together
  bool in_order = true;       ///< chunk by chunk, the results are made from the first in memory to the last
  /// Of a piece, which may run beside the kernel's other pieces: where in the first result it writes, from the first
  /// element in memory to behind the last. Equal: it is none.
  int64_t begin = 0, end = 0;

  bool is_piece() const { return begin < end; }
};

/// One native function of a kernel, with abi::Kernel's type.
struct KernelCall {
  std::string symbol;
  KernelWork work{};
};

class KernelSource {
 public:
  virtual ~KernelSource() = default;
  /// The functions of a fusion (or of a step, merge.h), to be called in order. Fusions of one key (kernel_key.h) get
  /// the same ones. The reference stays valid. Throws Error(kUnsupported) for what no kernel can do.
  virtual const std::vector<KernelCall>& kernel(const Instruction& fusion, const Surroundings& around) = 0;
};

}  // namespace hlojit::codegen

// Which kernels are handed out to several cores. What one core has computed lies in its own caches, and for another to
// read it takes longer than from memory: ten steps of a wave on 150x167, a kernel of 3 us in halves beside smaller ones
// on one core, took 280 us instead of 62 (two cores of a Sapphire Rapids). So who reads what one core has written is
// handed out only if that saves more than it costs.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "compiler/plan/buffers.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

/// Of a program's kernels, in the order in which they run; a loop's body counts once.
class Sharing {
 public:
  explicit Sharing(const TargetInfo& target) : most_(target.l2_bytes) {}

  /// Whether a kernel is, whose chunks take `cost_ns` together; no kernel of a single chunk is.
  bool hands_out(std::span<const BufferSlice> operands, std::span<const BufferSlice> results, int64_t cost_ns,
                 bool has_chunks);

 private:
  using Place = std::pair<BufferSlice::Kind, int64_t>;
  static Place place(const BufferSlice& slice);

  const int64_t most_;
  std::map<Place, bool> by_several_;
};

}  // namespace hlojit::codegen

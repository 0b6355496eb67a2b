// See sharing.h.
#include "codegen/sharing.h"

namespace hlojit::codegen {

Sharing::Place Sharing::place(const BufferSlice& slice) {
  return {slice.kind, slice.kind == BufferSlice::Kind::kArena ? slice.offset : slice.index};
}

bool Sharing::hands_out(std::span<const BufferSlice> operands, std::span<const BufferSlice> results, int64_t cost_ns,
                        bool has_chunks) {
  using Kind = BufferSlice::Kind;
  constexpr int64_t kBytesPerNs = 9;  // from core to core
  // Bytes that kernels before this one have written: on one core, or on any number.
  int64_t of_one = 0, all = 0;
  for (const BufferSlice& s : operands) {
    if (s.kind == Kind::kParameter || s.kind == Kind::kConstant) continue;
    const auto known = by_several_.find(place(s));
    if (known != by_several_.end() && !known->second) of_one += s.size;
    all += s.size;
  }
  const bool in_caches = all <= most_;  // else it comes from further away for everybody
  const int64_t apart = in_caches ? of_one / 2 / kBytesPerNs : 0;
  const bool several = has_chunks && apart < cost_ns / 2;
  for (const BufferSlice& s : results) by_several_[place(s)] = several;
  return several;
}

}  // namespace hlojit::codegen

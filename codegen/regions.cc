// See regions.h.
#include "codegen/regions.h"

#include <algorithm>

namespace hlojit::codegen {

std::vector<Region> regions_of(std::span<const KernelCall> calls) {
  std::vector<Region> regions;
  for (size_t k = 0; k < calls.size();) {
    size_t n = 1;
    KernelWork all = calls[k].work;
    for (; all.is_piece() && k + n < calls.size() && calls[k + n].work.is_piece(); ++n) {
      const KernelWork& w = calls[k + n].work;
      all.chunks += w.chunks;
      all.cost_ns += w.cost_ns;
      all.scratch_bytes = std::max(all.scratch_bytes, w.scratch_bytes);
      all.in_order &= w.in_order;
      all.begin = std::min(all.begin, w.begin);
      all.end = std::max(all.end, w.end);
    }
    regions.push_back({calls.subspan(k, n), all});
    k += n;
  }
  return regions;
}

std::vector<RegionPart> parts_of(const Region& region) {
  struct Placed {
    double middle;  // of where it writes
    RegionPart part;
  };
  std::vector<Placed> placed;
  for (size_t k = 0; k < region.calls.size(); ++k) {
    const KernelWork& w = region.calls[k].work;
    const double size = static_cast<double>(w.end - w.begin) / static_cast<double>(w.chunks);
    for (int64_t c = 0; c < w.chunks; ++c) {
      placed.push_back({static_cast<double>(w.begin) + (static_cast<double>(c) + 0.5) * size, {k, c}});
    }
  }
  std::ranges::stable_sort(placed, {}, &Placed::middle);
  std::vector<RegionPart> parts;
  for (const Placed& p : placed) parts.push_back(p.part);
  return parts;
}

}  // namespace hlojit::codegen

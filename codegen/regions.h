// What of a kernel is one region of parallel work. A kernel may be several functions, its pieces: what of a
// concatenation comes from where, a border and what lies inside of it. Were each a region of its own, some would be
// handed out and others, too small for it, not, and one core would write among what the other has written; their chunks
// are one list instead, in the order in which they write. (Sines of nine planes of 96x96, stacked, two cores of an
// Emerald Rapids: 21 us, 17; one 25.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/kernel_source.h"

namespace hlojit::codegen {

/// Functions whose chunks may run at the same time, and all that they do.
struct Region {
  std::span<const KernelCall> calls;
  KernelWork work{};
};

/// All of a kernel's functions, in order: pieces together, each of the others alone.
std::vector<Region> regions_of(std::span<const KernelCall> calls);

/// A chunk of one of a region's functions.
struct RegionPart {
  size_t call = 0;
  int64_t chunk = 0;
};

/// All chunks, by where they write.
std::vector<RegionPart> parts_of(const Region& region);

}  // namespace hlojit::codegen

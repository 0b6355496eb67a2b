// Ascending sorts of unsigned integers on the calling thread, in vectors: Highway's, compiled from its headers once for
// each set of instructions. (Its packaged library would choose one set for all keys, see vector_sorts.cc, and measures
// the clock when it is loaded: 4 ms of every process.)
#pragma once

#include <cstddef>
#include <cstdint>

namespace hlojit {

/// 128 bits that compare high half first.
struct Wide {
  uint64_t low, high;
  bool operator<(const Wide& other) const { return high < other.high || (high == other.high && low < other.low); }
};

/// Each sorts keys[0, n) in place.
struct VectorSorts {
  void (*of_16)(uint16_t* keys, size_t n);
  void (*of_32)(uint32_t* keys, size_t n);
  void (*of_64)(uint64_t* keys, size_t n);
  void (*of_128)(Wide* keys, size_t n);
};

extern const VectorSorts kVectorSortsAvx2, kVectorSortsAvx512;

/// Those that are fastest on this machine.
const VectorSorts& vector_sorts();

}  // namespace hlojit

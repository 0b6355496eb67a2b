// Strided copies, by element width.
#include "compiler/eval/strided.h"

#include <algorithm>

namespace hlojit::eval {
namespace {

struct Bits128 {
  uint64_t low, high;
};

template <class T>
void copy(std::span<const int64_t> dims, View<std::byte> to, View<const std::byte> from) {
  if (std::ranges::find(dims, 0) != dims.end()) return;  // empty arrays may have no memory to point into
  T* targets = reinterpret_cast<T*>(to.data) + to.base;
  const T* sources = reinterpret_cast<const T*>(from.data) + from.base;
  for_each_offset(dims, to.strides, from.strides, [&](int64_t t, int64_t s) { targets[t] = sources[s]; });
}

}  // namespace

void copy_strided(int width, std::span<const int64_t> dims, View<std::byte> to, View<const std::byte> from) {
  switch (width) {
    case 1: return copy<uint8_t>(dims, to, from);
    case 2: return copy<uint16_t>(dims, to, from);
    case 4: return copy<uint32_t>(dims, to, from);
    case 8: return copy<uint64_t>(dims, to, from);
    default: return copy<Bits128>(dims, to, from);
  }
}

}  // namespace hlojit::eval

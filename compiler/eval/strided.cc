// Strided copies, by element width.
#include "compiler/eval/strided.h"

#include <algorithm>

namespace hlojit::eval {
namespace {

struct Bits128 {
  uint64_t low, high;
};

template <class T>
void copy(std::span<const int64_t> dims, std::byte* dst, int64_t dst_base, std::span<const int64_t> dst_strides,
          const std::byte* src, int64_t src_base, std::span<const int64_t> src_strides) {
  if (std::ranges::find(dims, 0) != dims.end()) return;  // empty arrays may have no memory to point into
  T* to = reinterpret_cast<T*>(dst) + dst_base;
  const T* from = reinterpret_cast<const T*>(src) + src_base;
  for_each_offset(dims, dst_strides, src_strides, [&](int64_t d, int64_t s) { to[d] = from[s]; });
}

}  // namespace

void copy_strided(int width, std::span<const int64_t> dims, std::byte* dst, int64_t dst_base,
                  std::span<const int64_t> dst_strides, const std::byte* src, int64_t src_base,
                  std::span<const int64_t> src_strides) {
  switch (width) {
    case 1: return copy<uint8_t>(dims, dst, dst_base, dst_strides, src, src_base, src_strides);
    case 2: return copy<uint16_t>(dims, dst, dst_base, dst_strides, src, src_base, src_strides);
    case 4: return copy<uint32_t>(dims, dst, dst_base, dst_strides, src, src_base, src_strides);
    case 8: return copy<uint64_t>(dims, dst, dst_base, dst_strides, src, src_base, src_strides);
    default: return copy<Bits128>(dims, dst, dst_base, dst_strides, src, src_base, src_strides);
  }
}

}  // namespace hlojit::eval

// One copy of the loops per instruction set, and the choice among them. The few loops that need an
// instruction by name (dot products of narrow types) are here too.
#include "bench/roof/kernels.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

// A multiply-add is meant to be one instruction here; the roof asks for nothing about its rounding.
#pragma clang fp contract(fast)

namespace hlojit::roof {
namespace {

inline void finish_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

namespace baseline {
inline constexpr size_t kVectorBytes = 16;
#include "bench/roof/kernels.inc"
}  // namespace baseline

#if defined(__x86_64__)

#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
namespace avx2 {
inline constexpr size_t kVectorBytes = 32;
#include "bench/roof/kernels.inc"

// Without a dot product instruction, bytes are widened to 16 bits and multiplied in pairs.
void bytes(size_t rounds) {
  __m256i chains[kChains] = {};
  const __m256i left = _mm256_set1_epi16(3);
  __m256i right = _mm256_set1_epi16(5);
  for (size_t i = 0; i < rounds; ++i) {
    asm volatile("" : "+x"(right));
#pragma clang loop unroll(full)
    for (int k = 0; k < kChains; ++k) {
      chains[k] = _mm256_add_epi32(chains[k], _mm256_madd_epi16(_mm256_add_epi16(left, chains[k]), right));
    }
  }
  for (const __m256i& chain : chains) asm volatile("" : : "m"(chain));
}
}  // namespace avx2
#pragma clang attribute pop

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx2,fma"))), apply_to = function)
namespace avx512 {
inline constexpr size_t kVectorBytes = 64;
#include "bench/roof/kernels.inc"
}  // namespace avx512
#pragma clang attribute pop

__attribute__((target("avx512f,avx512vnni"))) void dot_bytes(size_t rounds) {
  __m512i chains[avx512::kChains] = {};
  const __m512i left = _mm512_set1_epi8(3), right = _mm512_set1_epi8(5);
  for (size_t i = 0; i < rounds; ++i) {
#pragma clang loop unroll(full)
    for (int k = 0; k < avx512::kChains; ++k) {
      chains[k] = _mm512_dpbusd_epi32(chains[k], left, right);
      asm volatile("" : "+v"(chains[k]));
    }
  }
}

__attribute__((target("avx512f,avx512bf16"))) void dot_bf16(size_t rounds) {
  __m512 chains[avx512::kChains] = {};
  const __m512bh left = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3F80));
  for (size_t i = 0; i < rounds; ++i) {
#pragma clang loop unroll(full)
    for (int k = 0; k < avx512::kChains; ++k) {
      chains[k] = _mm512_dpbf16_ps(chains[k], left, left);
      asm volatile("" : "+v"(chains[k]));
    }
  }
}

#if defined(__linux__)
// Products of whole tiles: four of sums, 16x16 each, by steps of 64 bytes.
constexpr double kTileProducts = 2.0 * 4 * 16 * 16 * 64;

struct TileSizes {
  uint8_t palette = 1, unused[15] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

__attribute__((target("amx-tile,amx-bf16"))) void tiles_bf16(size_t rounds) {
  const TileSizes sizes;
  _tile_loadconfig(&sizes);
  for (size_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

__attribute__((target("amx-tile,amx-int8"))) void tiles_bytes(size_t rounds) {
  const TileSizes sizes;
  _tile_loadconfig(&sizes);
  for (size_t i = 0; i < rounds; ++i) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
}

// The CPU has them, and the kernel grants them to this process.
bool may_use_tiles() {
  unsigned a, b, c, d;
  __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
  constexpr unsigned kTiles = 1u << 22 | 1u << 24 | 1u << 25;  // of bf16, tiles at all, of bytes
  constexpr long kRequest = 0x1023, kTileData = 18;            // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return (d & kTiles) == kTiles && syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}
#else
void tiles_bf16(size_t) {}
void tiles_bytes(size_t) {}
constexpr double kTileProducts = 1;
bool may_use_tiles() { return false; }
#endif

KernelTable widest() {
  if (!kernels_limited_to_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    KernelTable table = avx512::make_table("avx512");
    table.bf16 = table.f32;
    table.s8 = {avx2::bytes, 2.0 * avx2::kChains * 16};
    // One lane adds two products of bf16, four of bytes.
    if (__builtin_cpu_supports("avx512bf16")) table.bf16 = {dot_bf16, 2.0 * avx512::kChains * 32};
    if (__builtin_cpu_supports("avx512vnni")) table.s8 = {dot_bytes, 2.0 * avx512::kChains * 64};
    if (may_use_tiles()) {
      table.bf16 = {tiles_bf16, kTileProducts / 2};
      table.s8 = {tiles_bytes, kTileProducts};
    }
    return table;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    KernelTable table = avx2::make_table("avx2");
    table.bf16 = table.f32;
    table.s8 = {avx2::bytes, 2.0 * avx2::kChains * 16};
    return table;
  }
  KernelTable table = baseline::make_table("baseline");
  table.bf16 = table.s8 = table.f32;
  return table;
}

#else

KernelTable widest() {
  KernelTable table = baseline::make_table("baseline");
  table.bf16 = table.s8 = table.f32;
  return table;
}

#endif

}  // namespace

bool& kernels_limited_to_avx2() {
  static bool limited = false;
  return limited;
}

const KernelTable& kernels() {
  static const KernelTable table = widest();
  return table;
}

}  // namespace hlojit::roof

// What plans may depend on besides the program: facts of the machine, filled in by codegen/target, and what is wanted
// of it. The defaults are those of a small core with AVX2.
#pragma once

#include <cstdint>

namespace hlojit {

/// Bytes of a line of the caches: that of every machine there is.
inline constexpr int64_t kCacheLine = 64;
/// Bytes of a page of memory. Prefetchers stop at its end, and lines as far apart find room in few sets of the caches.
inline constexpr int64_t kPage = 4096;

struct TargetInfo {
  int vector_bytes = 32;  ///< widest good vector: 16, 32 or 64
  int vector_registers = 16;
  int multiply_adds = 2;            ///< of widest vectors of floats, that begin in a cycle
  bool multiplies_bytes = false;    ///< four products of bytes a lane, added up in one instruction
  bool multiplies_bfloats = false;  ///< two of bf16, subnormals as zeros, sooner than as f32
  bool multiplies_tiles = false;    ///< of bytes and of bf16
  bool keeps_subnormals = false;    ///< wanted: whatever the machine has, no product may take them for zeros
  bool l2_keeps_up =
      true;  ///< a core's second cache gives a row of a panel, where it lies, as soon as it is multiplied
  bool dear_line_ends = false;  ///< a vector that crosses the end of a line takes longer than two that do not
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;
  int64_t llc_bytes = 32 << 20;
  int64_t smaller = 1;  ///< for tests: so many times less work is handed to other cores

  /// Arrays of more come from far: from memory, or a last level that is nearly as far.
  int64_t near_bytes() const { return l2_keeps_up ? llc_bytes : l2_bytes; }
  /// As AVX-512 has them: some for the values of several vectors at a time, and for constants, too.
  bool many_registers() const { return vector_registers >= 32; }
};

}  // namespace hlojit

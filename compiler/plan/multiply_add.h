// How a product's terms are added up: one a lane of the sums, or several neighbours of the depth at once, by the
// instructions that machines have for narrow types. Those take two or four times as many terms a cycle and as many
// fewer bytes from the caches; operands are packed in groups for them, so that a lane of the sums' width holds `terms`.
// Where a machine multiplies whole tiles (AMX), an instruction adds products to 16 rows of 16 sums, 16 groups deep.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "layout/dtype.h"

namespace hlojit {

enum class MultiplyAdd : uint8_t {
  kOne,      ///< a product of the sums' type
  kWords,    ///< two of 16-bit integers: vpmaddwd and an addition, or vpdpwssd
  kBytes,    ///< four of signed bytes, as vpdpbusd takes them: the left ones unsigned, with 128 added
  kBfloats,  ///< two of bf16, the second first, subnormals as zeros: vdpbf16ps
  /// Tiles of signed bytes, of any order: tdpbssd.
  kByteTiles,
  /// Tiles of bf16, subnormals as zeros: the groups' first terms are added up one after the other, so are their second
  /// ones, and the two sums, added, go to what there was. tdpbf16ps.
  kBfloatTiles,
};

struct MultiplyAddForm {
  MultiplyAdd kind;
  std::string_view name;  ///< in plans and in the names of micro-kernels
  DType sums;             ///< kF32 or kS32; of kOne any
  DType packed;           ///< of operands as they are packed; of kOne the sums'
  int terms;              ///< packed into a lane of the sums
  int step;               ///< of the depth that one instruction takes; slices are filled up to it with zeros
  bool tiles() const { return step > terms; }
};

/// Rows and columns of sums that an instruction takes at the most, and groups of terms; and of such tiles of sums and
/// operands, how many a machine holds.
inline constexpr int64_t kTileSide = 16, kTileRegisters = 8;

/// A row for each kind, in the enum's order.
std::span<const MultiplyAddForm> multiply_add_forms();
const MultiplyAddForm& form_of(MultiplyAdd kind);

}  // namespace hlojit

// See multiply_add.h.
#include "compiler/plan/multiply_add.h"

namespace hlojit {

std::span<const MultiplyAddForm> multiply_add_forms() {
  static constexpr MultiplyAddForm kForms[] = {
      {MultiplyAdd::kOne, "", DType::kF32, DType::kF32, 1, 1},
      {MultiplyAdd::kWords, "words", DType::kS32, DType::kS16, 2, 2},
      {MultiplyAdd::kBytes, "bytes", DType::kS32, DType::kS8, 4, 4},
      {MultiplyAdd::kBfloats, "bfloats", DType::kF32, DType::kBF16, 2, 2},
      {MultiplyAdd::kByteTiles, "byte_tiles", DType::kS32, DType::kS8, 4, 4 * kTileSide},
      {MultiplyAdd::kBfloatTiles, "bfloat_tiles", DType::kF32, DType::kBF16, 2, 2 * kTileSide},
  };
  return kForms;
}

const MultiplyAddForm& form_of(MultiplyAdd kind) { return multiply_add_forms()[static_cast<size_t>(kind)]; }

}  // namespace hlojit

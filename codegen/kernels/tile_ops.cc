// See tile_ops.h. Numbers are those of the processors' manuals.
#include "codegen/kernels/tile_ops.h"

#include "codegen/number/multiply_add.h"
#include "codegen/target.h"

namespace hlojit::codegen {
namespace {

constexpr uint8_t kNone = 0, k66 = 1, kF3 = 2, kFirstMap = 1, kSecondMap = 2;
constexpr TileOps kFloats{.load = {kNone, kFirstMap, 0, 0x10},
                          .store = {kNone, kFirstMap, 0, 0x11},
                          .broadcast = {k66, kSecondMap, 0, 0x18},
                          .add = {kNone, kFirstMap, 0, 0x58},
                          .subtract = {kNone, kFirstMap, 0, 0x5C}};
constexpr TileOps kDoubles{.load = {k66, kFirstMap, 1, 0x10},
                           .store = {k66, kFirstMap, 1, 0x11},
                           .broadcast = {k66, kSecondMap, 1, 0x19},
                           .add = {k66, kFirstMap, 1, 0x58},
                           .subtract = {k66, kFirstMap, 1, 0x5C}};
constexpr TileOps kIntegers{.load = {kF3, kFirstMap, 0, 0x6F},
                            .store = {kF3, kFirstMap, 0, 0x7F},
                            .broadcast = {k66, kSecondMap, 0, 0x58},
                            .add = {k66, kFirstMap, 0, 0xFE},
                            .subtract = {k66, kFirstMap, 0, 0xFA}};

TileOps with(TileOps ops, VectorOp multiply_add, bool commutes = true) {
  ops.multiply_add = multiply_add;
  ops.commutes = commutes;
  return ops;
}

}  // namespace

std::optional<TileOps> tile_ops(const MicroKernelShape& shape, const Target& target) {
  const bool adds_integers = adds_words_at_once(target, static_cast<unsigned>(shape.lanes));
  switch (shape.multiply_add) {
    case MultiplyAdd::kOne:  // vfmadd231ps, vfmadd231pd
      if (shape.type == DType::kF32) return with(kFloats, {k66, kSecondMap, 0, 0xB8});
      if (shape.type == DType::kF64) return with(kDoubles, {k66, kSecondMap, 1, 0xB8});
      return std::nullopt;
    case MultiplyAdd::kWords:  // vpdpwssd
      if (!adds_integers) return std::nullopt;
      return with(kIntegers, {k66, kSecondMap, 0, 0x52});
    case MultiplyAdd::kBytes:  // vpdpbusd, whose first factor has no sign
      if (!adds_integers) return std::nullopt;
      return with(kIntegers, {k66, kSecondMap, 0, 0x50}, false);
    case MultiplyAdd::kBfloats:  // vdpbf16ps
      if (!target.has("avx512bf16")) return std::nullopt;
      return with(kFloats, {kF3, kSecondMap, 0, 0x52});
    default: return std::nullopt;
  }
}

}  // namespace hlojit::codegen

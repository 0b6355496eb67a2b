// See table.h. AVX-512 picks from one register or from two, of four by a choice between two of these; AVX2 words from
// one. The twin of each instruction is a gather from the table's memory.
#include "codegen/number/table.h"

#include <array>
#include <bit>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/number/parts.h"

namespace hlojit::codegen {
namespace {

using namespace llvm::Intrinsic;
using B = llvm::IRBuilderBase;

// By the elements' bytes: 1, 2, 4, 8.
constexpr ID kOfOne[] = {x86_avx512_permvar_qi_512, x86_avx512_permvar_hi_512, x86_avx512_permvar_si_512,
                         x86_avx512_permvar_di_512};
constexpr ID kOfTwo[] = {x86_avx512_vpermi2var_qi_512, x86_avx512_vpermi2var_hi_512, x86_avx512_vpermi2var_d_512,
                         x86_avx512_vpermi2var_q_512};

llvm::Value* of_one(B& b, bool avx512, llvm::Value* table, llvm::Value* places) {
  const auto kind = std::countr_zero(table->getType()->getScalarSizeInBits() / 8);
  return b.CreateIntrinsic(avx512 ? kOfOne[kind] : x86_avx2_permd, {}, {table, places});
}

llvm::Value* of_two(B& b, bool avx512, std::span<llvm::Value* const> table, llvm::Value* places);

// Elements of the first or the second `half` of the table, as the place's next bit says.
llvm::Value* of_halves(B& b, bool avx512, std::span<llvm::Value* const> table, llvm::Value* places, size_t half) {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(table[0]->getType())->getNumElements();
  auto pick = [&](std::span<llvm::Value* const> part) {
    return part.size() == 1 ? of_one(b, avx512, part[0], places) : of_two(b, avx512, part, places);
  };
  llvm::Value* bit = b.CreateAnd(places, llvm::ConstantInt::get(places->getType(), half * lanes));
  llvm::Value* second = b.CreateICmpNE(bit, llvm::Constant::getNullValue(bit->getType()));
  return b.CreateSelect(second, pick(table.subspan(half)), pick(table.first(half)));
}

llvm::Value* of_two(B& b, bool avx512, std::span<llvm::Value* const> table, llvm::Value* places) {
  if (!avx512) return of_halves(b, avx512, table, places, 1);
  const auto kind = std::countr_zero(table[0]->getType()->getScalarSizeInBits() / 8);
  return b.CreateIntrinsic(kOfTwo[kind], {}, {table[0], places, table[1]});
}

}  // namespace

int table_lanes(const Target& target, int64_t bytes) {
  if (!std::has_single_bit(static_cast<uint64_t>(bytes)) || bytes > 8) return 0;
  if (target.isa() == Isa::kAvx2) return bytes == 4 ? 8 : 0;
  return bytes > 1 || target.has("avx512vbmi") ? static_cast<int>(64 / bytes) : 0;
}

int64_t largest_table(const Target& target, int64_t bytes) {
  return int64_t{target.isa() == Isa::kAvx2 ? 2 : 4} * table_lanes(target, bytes);
}

llvm::Value* look_up(B& b, const Target& target, std::span<llvm::Value* const> table, llvm::Value* places) {
  const bool avx512 = target.isa() == Isa::kAvx512;
  const auto lanes = llvm::cast<llvm::FixedVectorType>(table[0]->getType())->getNumElements();
  return in_parts(b, std::array{places}, lanes, [&](std::span<llvm::Value* const> part) {
    if (table.size() == 1) return of_one(b, avx512, table[0], part[0]);
    return table.size() == 2 ? of_two(b, avx512, table, part[0]) : of_halves(b, avx512, table, part[0], 2);
  });
}

}  // namespace hlojit::codegen

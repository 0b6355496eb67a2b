// See table.h. AVX-512 picks from one register or from two, AVX2 words from one; of more it is a choice between what is
// picked from halves. The twin of each instruction is a gather from the table's memory.
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

llvm::Value* of_all(B& b, bool avx512, std::span<llvm::Value* const> table, llvm::Value* places);

// Elements of the first or the second half of the table, as the place's highest bit says.
llvm::Value* of_halves(B& b, bool avx512, std::span<llvm::Value* const> table, llvm::Value* places) {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(table[0]->getType())->getNumElements();
  const size_t half = std::bit_ceil(table.size()) / 2;
  llvm::Value* bit = b.CreateAnd(places, llvm::ConstantInt::get(places->getType(), half * lanes));
  llvm::Value* second = b.CreateICmpNE(bit, llvm::Constant::getNullValue(bit->getType()));
  return b.CreateSelect(second, of_all(b, avx512, table.subspan(half), places),
                        of_all(b, avx512, table.first(half), places));
}

llvm::Value* of_all(B& b, bool avx512, std::span<llvm::Value* const> table, llvm::Value* places) {
  if (table.size() == 1) return of_one(b, avx512, table[0], places);
  if (table.size() > 2 || !avx512) return of_halves(b, avx512, table, places);
  const auto kind = std::countr_zero(table[0]->getType()->getScalarSizeInBits() / 8);
  return b.CreateIntrinsic(kOfTwo[kind], {}, {table[0], places, table[1]});
}

}  // namespace

int table_lanes(const Target& target, int64_t bytes) {
  if (!std::has_single_bit(static_cast<uint64_t>(bytes)) || bytes > 8) return 0;
  if (target.isa() == Isa::kAvx2) return bytes == 4 ? 8 : 0;
  return bytes > 1 || target.has("avx512vbmi") ? static_cast<int>(64 / bytes) : 0;
}

// In registers, each two of which take an instruction a vector: of bytes a place has as many, and of doubles there are
// fewer lanes to be loaded instead. (61,915 floats by a table of 256, a Zen 4: 22.3 us by gathers, 19.7 by loads, 12.0
// so; 20,011 by one of 128 8.0, 3.3 so.)
int64_t largest_table(const Target& target, int64_t bytes) {
  const int64_t most = bytes == 1 ? 4 : bytes == 8 ? 8 : 16;
  return (target.isa() == Isa::kAvx2 ? 4 : most) * table_lanes(target, bytes);
}

llvm::Value* look_up(B& b, const Target& target, std::span<llvm::Value* const> table, llvm::Value* places) {
  const bool avx512 = target.isa() == Isa::kAvx512;
  const auto lanes = llvm::cast<llvm::FixedVectorType>(table[0]->getType())->getNumElements();
  return in_parts(b, std::array{places}, lanes,
                  [&](std::span<llvm::Value* const> part) { return of_all(b, avx512, table, part[0]); });
}

}  // namespace hlojit::codegen

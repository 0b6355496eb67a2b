// Instructions of x86 that LLVM's IR cannot say otherwise. Each has a portable twin of the same bits in
// ir_number.h.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/number/ir_number.h"
#include "codegen/number/parts.h"

namespace hlojit::codegen::ir {
namespace {

using namespace llvm::Intrinsic;
using B = llvm::IRBuilderBase;

/// An instruction on two vectors of floats: of 128, 256 and 512 bits, of f32 and of f64.
using Forms = ID[3][2];
constexpr Forms kScale = {{x86_avx512_mask_scalef_ps_128, x86_avx512_mask_scalef_pd_128},
                          {x86_avx512_mask_scalef_ps_256, x86_avx512_mask_scalef_pd_256},
                          {x86_avx512_mask_scalef_ps_512, x86_avx512_mask_scalef_pd_512}};
constexpr Forms kRange = {{x86_avx512_mask_range_ps_128, x86_avx512_mask_range_pd_128},
                          {x86_avx512_mask_range_ps_256, x86_avx512_mask_range_pd_256},
                          {x86_avx512_mask_range_ps_512, x86_avx512_mask_range_pd_512}};
constexpr Forms kExponent = {{x86_avx512_mask_getexp_ps_128, x86_avx512_mask_getexp_pd_128},
                             {x86_avx512_mask_getexp_ps_256, x86_avx512_mask_getexp_pd_256},
                             {x86_avx512_mask_getexp_ps_512, x86_avx512_mask_getexp_pd_512}};
constexpr Forms kFixup = {{x86_avx512_mask_fixupimm_ps_128, x86_avx512_mask_fixupimm_pd_128},
                          {x86_avx512_mask_fixupimm_ps_256, x86_avx512_mask_fixupimm_pd_256},
                          {x86_avx512_mask_fixupimm_ps_512, x86_avx512_mask_fixupimm_pd_512}};
constexpr Forms kMantissa = {{x86_avx512_mask_getmant_ps_128, x86_avx512_mask_getmant_pd_128},
                             {x86_avx512_mask_getmant_ps_256, x86_avx512_mask_getmant_pd_256},
                             {x86_avx512_mask_getmant_ps_512, x86_avx512_mask_getmant_pd_512}};

/// What an instruction takes behind its operands.
struct Rest {
  std::optional<int> immediate = {};
  bool keeps = false;  ///< lanes that are left out are the first operand's, not another's
};

llvm::Value* on_registers(B& b, const Forms& forms, std::span<llvm::Value* const> x, const Rest& rest) {
  auto* type = llvm::cast<llvm::FixedVectorType>(x[0]->getType());
  auto bits = type->getPrimitiveSizeInBits().getFixedValue();
  constexpr int kCurrentRounding = 4;
  std::vector<llvm::Value*> arguments(x.begin(), x.end());
  if (rest.immediate) arguments.push_back(b.getInt32(static_cast<uint32_t>(*rest.immediate)));
  if (!rest.keeps) arguments.push_back(llvm::Constant::getNullValue(type));
  arguments.push_back(llvm::ConstantInt::get(b.getIntNTy(std::max(8u, type->getNumElements())), -1, true));
  if (bits == 512) arguments.push_back(b.getInt32(kCurrentRounding));
  return b.CreateIntrinsic(forms[std::countr_zero(bits / 128)][type->getElementType()->isDoubleTy()], {}, arguments);
}

/// The same on scalars and on vectors of any length.
llvm::Value* on_vectors(B& b, const Forms& forms, std::span<llvm::Value* const> operands, const Rest& rest = {}) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(operands[0]->getType());
  unsigned lanes = vector ? vector->getNumElements() : 1;
  unsigned bits = operands[0]->getType()->getScalarSizeInBits();
  unsigned step = std::clamp(std::bit_ceil(lanes), 128 / bits, 512 / bits);
  return in_parts(b, operands, step,
                  [&](std::span<llvm::Value* const> part) { return on_registers(b, forms, part, rest); });
}

}  // namespace

llvm::Value* scale_avx512(llvm::Value* x, llvm::Value* n) { return on_vectors(b(), kScale, std::array{x, n}); }

llvm::Value* log_edges_avx512(llvm::Value* r, llvm::Value* x) {
  // What is to be done with x, four bits a class from the lowest: quiet NaN, signalling NaN, zero, one, -inf, inf,
  // negative, positive.
  enum { kKeep = 0, kQuiet = 2, kNan = 3, kMinusInf = 4, kInf = 5 };
  constexpr int kClasses[] = {kQuiet, kQuiet, kMinusInf, kKeep, kNan, kInf, kNan, kKeep};
  uint64_t table = 0;
  for (int k = 0; k < 8; ++k) table |= static_cast<uint64_t>(kClasses[k]) << (4 * k);
  llvm::Type* integers = x->getType()->getWithNewBitWidth(x->getType()->getScalarSizeInBits());
  const std::array operands{r, x, static_cast<llvm::Value*>(llvm::ConstantInt::get(integers, table))};
  return on_vectors(b(), kFixup, operands, {.immediate = 0, .keeps = true});
}

llvm::Value* one_of_eight_lanes(std::span<const double, 8> c, llvm::Value* t) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(t->getType());
  // Whole registers of AVX-512 take the list twice.
  const unsigned step = recorder.avx512 && vector && vector->getNumElements() >= 16 ? 16 : 8;
  std::vector<llvm::Constant*> list;
  for (unsigned k = 0; k < step; ++k) list.push_back(llvm::ConstantFP::get(b().getFloatTy(), c[k % 8]));
  llvm::Constant* all = llvm::ConstantVector::get(list);
  return in_parts(b(), std::array{t}, step, [&](std::span<llvm::Value* const> part) {
    llvm::Value* places = b().CreateBitCast(part[0], llvm::FixedVectorType::get(b().getInt32Ty(), step));
    return b().CreateIntrinsic(step == 16 ? x86_avx512_permvar_sf_512 : x86_avx2_permps, {}, {all, places});
  });
}

llvm::Value* exponent_avx512(llvm::Value* x) { return on_vectors(b(), kExponent, std::array{x}); }

llvm::Value* mantissa_avx512(llvm::Value* x) {
  constexpr int kFromThreeQuarters = 3;
  return on_vectors(b(), kMantissa, std::array{x}, {.immediate = kFromThreeQuarters});
}

llvm::Value* extreme_number_avx512(B& b, llvm::Value* x, llvm::Value* y, bool greatest) {
  constexpr int kLess = 4, kGreater = 5;
  return on_vectors(b, kRange, std::array{x, y}, {.immediate = greatest ? kGreater : kLess});
}

llvm::Value* extreme_avx512(B& b, llvm::Value* x, llvm::Value* y, bool greatest) {
  llvm::Value* number = extreme_number_avx512(b, x, y, greatest);
  return b.CreateSelect(b.CreateFCmpUNO(x, y), b.CreateFAdd(x, y), number);
}

}  // namespace hlojit::codegen::ir

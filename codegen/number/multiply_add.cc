// See multiply_add.h.
#include "codegen/number/multiply_add.h"

#include <algorithm>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/number/parts.h"

namespace hlojit::codegen {
namespace {

using llvm::Value;
namespace id = llvm::Intrinsic;

unsigned lanes_of(const Value* v) { return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements(); }

/// Of `lanes` lanes; not_intrinsic if the machine has none.
id::ID instruction(MultiplyAdd kind, const Target& target, unsigned lanes) {
  const auto of = [&](id::ID narrow, id::ID middle, id::ID wide) {
    return lanes == 16 ? wide : lanes == 8 ? middle : lanes == 4 ? narrow : id::not_intrinsic;
  };
  switch (kind) {
    case MultiplyAdd::kWords:
      if (adds_words_at_once(target, lanes)) {
        return of(id::x86_avx512_vpdpwssd_128, id::x86_avx512_vpdpwssd_256, id::x86_avx512_vpdpwssd_512);
      }
      return of(id::x86_sse2_pmadd_wd, id::x86_avx2_pmadd_wd, id::x86_avx512_pmaddw_d_512);
    case MultiplyAdd::kBytes:
      if (!adds_words_at_once(target, lanes)) return id::not_intrinsic;
      return of(id::x86_avx512_vpdpbusd_128, id::x86_avx512_vpdpbusd_256, id::x86_avx512_vpdpbusd_512);
    case MultiplyAdd::kBfloats:
      if (!target.has("avx512bf16")) return id::not_intrinsic;
      return of(id::x86_avx512bf16_dpbf16ps_128, id::x86_avx512bf16_dpbf16ps_256, id::x86_avx512bf16_dpbf16ps_512);
    default: return id::not_intrinsic;
  }
}

class Twin {
 public:
  Twin(llvm::IRBuilderBase& b, Value* sums) : b_(b), sums_(sums), lanes_(lanes_of(sums)) {}

  Value* integers(Value* x, Value* y, unsigned bits, bool x_signed) {
    unsigned terms = 32 / bits;
    auto* narrow = llvm::FixedVectorType::get(b_.getIntNTy(bits), terms * lanes_);
    Value *xs = b_.CreateBitCast(x, narrow), *ys = b_.CreateBitCast(y, narrow);
    auto term = [&](Value* v, unsigned t, bool is_signed) {
      std::vector<int> mask;
      for (unsigned k = 0; k < lanes_; ++k) mask.push_back(static_cast<int>(terms * k + t));
      return b_.CreateIntCast(b_.CreateShuffleVector(v, mask), sums_->getType(), is_signed);
    };
    for (unsigned t = 0; t < terms; ++t) {
      sums_ = b_.CreateAdd(sums_, b_.CreateMul(term(xs, t, x_signed), term(ys, t, true)));
    }
    return sums_;
  }

  Value* bfloats(Value* x, Value* y) {
    sums_ = fma(second(x), second(y), sums_);
    return sums_ = fma(first(x), first(y), sums_);
  }

  Value* bfloat_step(std::span<Value* const> x, std::span<Value* const> y) {
    Value *firsts = llvm::Constant::getNullValue(sums_->getType()), *seconds = firsts;
    for (size_t k = 0; k < x.size(); ++k) {
      firsts = fma(first(x[k]), first(y[k]), firsts);
      seconds = fma(second(x[k]), second(y[k]), seconds);
    }
    return sums_ = flushed(b_.CreateFAdd(flushed(sums_), flushed(b_.CreateFAdd(firsts, seconds))));
  }

 private:
  /// The terms of groups of two, as floats.
  Value* first(Value* group) { return flushed(b_.CreateShl(bits(group), llvm::ConstantInt::get(words(), 16))); }
  Value* second(Value* group) {
    return flushed(b_.CreateAnd(bits(group), llvm::ConstantInt::get(words(), 0xffff0000)));
  }
  llvm::Type* words() { return llvm::FixedVectorType::get(b_.getInt32Ty(), lanes_); }
  Value* bits(Value* v) { return b_.CreateBitCast(v, words()); }

  Value* fma(Value* x, Value* y, Value* sums) {
    return flushed(b_.CreateIntrinsic(id::fma, {sums_->getType()}, {x, y, flushed(sums)}));
  }
  // A subnormal becomes a zero of its sign.
  Value* flushed(Value* v) {
    Value *i = bits(v), *exponent = b_.CreateAnd(i, llvm::ConstantInt::get(words(), 0x7f800000));
    Value* zero = b_.CreateAnd(i, llvm::ConstantInt::get(words(), 0x80000000));
    Value* is_zero = b_.CreateICmpEQ(exponent, llvm::Constant::getNullValue(words()));
    return b_.CreateBitCast(b_.CreateSelect(is_zero, zero, i), sums_->getType());
  }

  llvm::IRBuilderBase& b_;
  Value* sums_;
  unsigned lanes_;
};

Value* by_twin(llvm::IRBuilderBase& b, MultiplyAdd kind, Value* x, Value* y, Value* sums) {
  Twin twin(b, sums);
  if (kind == MultiplyAdd::kBfloats) return twin.bfloats(x, y);
  return kind == MultiplyAdd::kWords ? twin.integers(x, y, 16, true) : twin.integers(x, y, 8, false);
}

Value* by_instruction(llvm::IRBuilderBase& b, id::ID which, Value* x, Value* y, Value* sums) {
  const unsigned lanes = lanes_of(sums);
  auto as = [&](Value* v, llvm::Type* element) {
    unsigned bits = element->getScalarSizeInBits();
    return b.CreateBitCast(v, llvm::FixedVectorType::get(element, lanes * 32 / bits));
  };
  switch (which) {
    case id::x86_sse2_pmadd_wd:
    case id::x86_avx2_pmadd_wd:
    case id::x86_avx512_pmaddw_d_512:
      return b.CreateAdd(b.CreateIntrinsic(which, {}, {as(x, b.getInt16Ty()), as(y, b.getInt16Ty())}), sums);
    case id::x86_avx512bf16_dpbf16ps_128:
    case id::x86_avx512bf16_dpbf16ps_256:
    case id::x86_avx512bf16_dpbf16ps_512:
      return b.CreateIntrinsic(which, {}, {sums, as(x, b.getBFloatTy()), as(y, b.getBFloatTy())});
    default: return b.CreateIntrinsic(which, {}, {sums, as(x, b.getInt32Ty()), as(y, b.getInt32Ty())});
  }
}

}  // namespace

// By AVX-512's vector extension, or by AVX-VNNI's of 256 bits; both have bytes, too.
bool adds_words_at_once(const Target& target, unsigned lanes) {
  return target.isa() == Isa::kAvx512 ? target.has("avx512vnni") : lanes <= 8 && target.has("avxvnni");
}

bool has_instruction(MultiplyAdd kind, const Target& target) {
  if (kind == MultiplyAdd::kByteTiles) return target.has("amx-int8");
  if (kind == MultiplyAdd::kBfloatTiles) return target.has("amx-bf16");
  return kind == MultiplyAdd::kOne ||
         instruction(kind, target, static_cast<unsigned>(target.vector_bytes()) / 4) != id::not_intrinsic;
}

bool has_fast_instruction(MultiplyAdd kind, const Target& target) {
  // Of bf16: a core of Intel's begins one every two cycles, half as many products as it makes of f32 (Sapphire Rapids,
  // 1024x1024 by 1024x1024 in 9.7 ms on two threads; of f32 in 6.9).
  if (kind == MultiplyAdd::kBfloats && !target.is_zen()) return false;
  return has_instruction(kind, target);
}

Value* tile_row_twin(llvm::IRBuilderBase& b, MultiplyAdd kind, std::span<Value* const> x, std::span<Value* const> y,
                     Value* sums) {
  if (!sums->getType()->isVectorTy()) {
    auto one_lane = [&](Value* v) { return b.CreateBitCast(v, llvm::FixedVectorType::get(v->getType(), 1)); };
    std::vector<Value*> xs, ys;
    for (Value* v : x) xs.push_back(one_lane(v));
    for (Value* v : y) ys.push_back(one_lane(v));
    return b.CreateBitCast(tile_row_twin(b, kind, xs, ys, one_lane(sums)), sums->getType());
  }
  if (kind == MultiplyAdd::kBfloatTiles) return Twin(b, sums).bfloat_step(x, y);
  for (size_t k = 0; k < x.size(); ++k) sums = Twin(b, sums).integers(x[k], y[k], 8, true);
  return sums;
}

Value* multiply_add(llvm::IRBuilderBase& b, MultiplyAdd kind, Value* x, Value* y, Value* sums, const Target& target,
                    bool twin) {
  const unsigned lanes = std::min(lanes_of(sums), static_cast<unsigned>(target.vector_bytes()) / 4);
  const id::ID which = twin ? id::not_intrinsic : instruction(kind, target, lanes);
  Value* const operands[] = {x, y, sums};
  return in_parts(b, operands, lanes, [&](std::span<Value* const> part) {
    if (which == id::not_intrinsic) return by_twin(b, kind, part[0], part[1], part[2]);
    return by_instruction(b, which, part[0], part[1], part[2]);
  });
}

}  // namespace hlojit::codegen

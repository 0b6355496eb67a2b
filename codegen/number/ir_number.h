// The number type that records LLVM IR: compiler/math's templates instantiated with it append
// instructions for any lane count to the kernel being built. See compiler/math/number.h for the
// list of operations; every one here gives the same bits as the scalar instance.
//
// LLVM types in an inline header are the exception to "LLVM stays in .cc files": this header is
// included by codegen/number/*.cc only.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "compiler/math/number.h"

namespace hlojit::codegen::ir {

/// Where the types below record to: set for the duration of one emission on this thread.
struct Recorder {
  llvm::IRBuilder<>* builder = nullptr;
  bool avx512 = false;
};
inline thread_local Recorder recorder;

/// Sets the recorder for a scope.
class Recording {
 public:
  Recording(llvm::IRBuilder<>& builder, bool avx512) : saved_(recorder) { recorder = {&builder, avx512}; }
  ~Recording() { recorder = saved_; }
  Recording(const Recording&) = delete;

 private:
  Recorder saved_;
};

inline llvm::IRBuilder<>& b() { return *recorder.builder; }

struct Mask {
  llvm::Value* v;
};
template <int Bits>
struct Int {
  llvm::Value* v;
};
template <int Bits>
struct Float {
  llvm::Value* v;
};
using F32 = Float<32>;
using F64 = Float<64>;

inline llvm::Type* with_scalar(llvm::Type* like, llvm::Type* scalar) { return like->getWithNewType(scalar); }
template <int N>
llvm::Type* int_type(llvm::Type* like) {
  return with_scalar(like, b().getIntNTy(N));
}
template <int N>
llvm::Type* float_type(llvm::Type* like) {
  return with_scalar(like, N == 64 ? b().getDoubleTy() : b().getFloatTy());
}

template <int N>
Float<N> like(Float<N> x, double c) {
  return {llvm::ConstantFP::get(x.v->getType(), N == 32 ? static_cast<double>(static_cast<float>(c)) : c)};
}
template <int N>
Int<N> likei(Int<N> x, int64_t c) {
  return {llvm::ConstantInt::get(x.v->getType(), static_cast<uint64_t>(c), true)};
}

#define HLOJIT_BINARY(T, op, create) \
  template <int N>                   \
  T<N> operator op(T<N> x, T<N> y) { \
    return {b().create(x.v, y.v)};   \
  }
HLOJIT_BINARY(Float, +, CreateFAdd)
HLOJIT_BINARY(Float, -, CreateFSub)
HLOJIT_BINARY(Float, *, CreateFMul)
HLOJIT_BINARY(Float, /, CreateFDiv)
HLOJIT_BINARY(Int, +, CreateAdd)
HLOJIT_BINARY(Int, -, CreateSub)
HLOJIT_BINARY(Int, &, CreateAnd)
HLOJIT_BINARY(Int, |, CreateOr)
HLOJIT_BINARY(Int, ^, CreateXor)
#undef HLOJIT_BINARY

#define HLOJIT_COMPARE(T, op, create) \
  template <int N>                    \
  Mask operator op(T<N> x, T<N> y) {  \
    return {b().create(x.v, y.v)};    \
  }
HLOJIT_COMPARE(Float, <, CreateFCmpOLT)
HLOJIT_COMPARE(Float, <=, CreateFCmpOLE)
HLOJIT_COMPARE(Float, >, CreateFCmpOGT)
HLOJIT_COMPARE(Float, >=, CreateFCmpOGE)
HLOJIT_COMPARE(Float, ==, CreateFCmpOEQ)
HLOJIT_COMPARE(Float, !=, CreateFCmpUNE)
HLOJIT_COMPARE(Int, ==, CreateICmpEQ)
HLOJIT_COMPARE(Int, !=, CreateICmpNE)
HLOJIT_COMPARE(Int, <, CreateICmpSLT)
HLOJIT_COMPARE(Int, >, CreateICmpSGT)
#undef HLOJIT_COMPARE

inline Mask operator&(Mask x, Mask y) { return {b().CreateAnd(x.v, y.v)}; }
inline Mask operator|(Mask x, Mask y) { return {b().CreateOr(x.v, y.v)}; }
inline Mask operator!(Mask x) { return {b().CreateNot(x.v)}; }
template <int N>
Float<N> operator-(Float<N> x) {
  return {b().CreateFNeg(x.v)};
}
template <int N>
Int<N> operator-(Int<N> x) {
  return {b().CreateNeg(x.v)};
}

template <int N>
Float<N> fma(Float<N> x, Float<N> y, Float<N> z) {
  return {b().CreateIntrinsic(llvm::Intrinsic::fma, {x.v->getType()}, {x.v, y.v, z.v})};
}
#define HLOJIT_UNARY(name, intrinsic)                                   \
  template <int N>                                                      \
  Float<N> name(Float<N> x) {                                           \
    return {b().CreateUnaryIntrinsic(llvm::Intrinsic::intrinsic, x.v)}; \
  }
HLOJIT_UNARY(sqrt_, sqrt)
HLOJIT_UNARY(abs_, fabs)
HLOJIT_UNARY(floor_, floor)
HLOJIT_UNARY(trunc_, trunc)
HLOJIT_UNARY(round_even_, roundeven)
#undef HLOJIT_UNARY
template <int N>
Float<N> copysign_(Float<N> x, Float<N> y) {
  return {b().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x.v, y.v)};
}
template <int N>
Float<N> select(Mask m, Float<N> x, Float<N> y) {
  return {b().CreateSelect(m.v, x.v, y.v)};
}
template <int N>
Int<N> select(Mask m, Int<N> x, Int<N> y) {
  return {b().CreateSelect(m.v, x.v, y.v)};
}
template <int N>
Int<N> as_int(Float<N> x) {
  return {b().CreateBitCast(x.v, int_type<N>(x.v->getType()))};
}
template <int N>
Float<N> as_float(Int<N> x) {
  return {b().CreateBitCast(x.v, float_type<N>(x.v->getType()))};
}
template <int N>
Mask signbit_(Float<N> x) {
  Int<N> i = as_int(x);
  return i < likei(i, 0);
}
template <int N>
Float<N> to_float(Int<N> x) {
  if (N == 64 && !recorder.avx512) {
    // AVX2 has no 64-bit conversion; |x| < 2^51 by contract: add and subtract 1.5 * 2^52.
    Int<N> magic = likei(x, 0x4338000000000000);
    Float<N> shifted = as_float(x + magic);
    return shifted - as_float(magic);
  }
  return {b().CreateSIToFP(x.v, float_type<N>(x.v->getType()))};
}
template <int N>
Int<N> to_int(Float<N> x) {
  // freeze: out-of-range lanes may hold anything, but must hold one thing.
  return {b().CreateFreeze(b().CreateFPToSI(x.v, int_type<N>(x.v->getType())))};
}
template <int N>
Int<N> to_unsigned(Float<N> x) {
  if (!recorder.avx512) return math::to_unsigned_in_halves(x);
  return {b().CreateFreeze(b().CreateFPToUI(x.v, int_type<N>(x.v->getType())))};
}
template <int N>
Int<N> to_small_int(Float<N> x) {
  if (N == 32 || recorder.avx512) return to_int(x);
  Float<N> magic = like(x, 0x1.8p52);
  return as_int(trunc_(x) + magic) - as_int(magic);
}
template <int N>
Int<N> ashr(Int<N> x, int n) {
  return {b().CreateAShr(x.v, static_cast<uint64_t>(n))};
}
template <int N>
Int<N> lshr(Int<N> x, int n) {
  return {b().CreateLShr(x.v, static_cast<uint64_t>(n))};
}
template <int N>
Int<N> shl(Int<N> x, int n) {
  return {b().CreateShl(x.v, static_cast<uint64_t>(n))};
}
template <int N>
Mask bit(Int<N> x, int n) {
  Int<N> part = x & likei(x, int64_t{1} << n);
  return part != likei(x, 0);
}
inline F64 to_f64(F32 x) { return {b().CreateFPExt(x.v, with_scalar(x.v->getType(), b().getDoubleTy()))}; }
inline F32 to_f32(F64 x) { return {b().CreateFPTrunc(x.v, with_scalar(x.v->getType(), b().getFloatTy()))}; }

/// x * 2^n, n whole, by AVX-512's scale instruction: one rounding, as the contract of ldexp2 has it.
llvm::Value* scale_avx512(llvm::Value* x, llvm::Value* n);

/// maximum or minimum as HLO has them, in three instructions; LLVM makes six.
llvm::Value* extreme_avx512(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool greatest);
/// -0 below 0, and of a number and a NaN the number.
llvm::Value* extreme_number_avx512(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool greatest);

template <int N>
Float<N> ldexp2(Float<N> x, Int<N> i) {
  if (recorder.avx512) return {scale_avx512(x.v, to_float(i).v)};
  constexpr int bias = N == 64 ? 1023 : 127;
  constexpr int mantissa = N == 64 ? 52 : 23;
  Int<N> h = ashr(i, 1);
  Int<N> l = i - h;
  return x * as_float(shl(h + likei(i, bias), mantissa)) * as_float(shl(l + likei(i, bias), mantissa));
}

/// The exponent of x, as a float, and its mantissa in [3/4, 3/2), by AVX-512's instructions.
llvm::Value* exponent_avx512(llvm::Value* x);
llvm::Value* mantissa_avx512(llvm::Value* x);

/// The exponents of mantissas below one are what the binades of floats, which begin at one, are too low by.
template <int N>
math::Binade<Float<N>> binade(Float<N> x) {
  if (!recorder.avx512) return math::binade_by_bits(x);
  Float<N> m = {mantissa_avx512(x.v)}, e = {exponent_avx512(x.v)}, of_m = {exponent_avx512(m.v)};
  return {e - of_m, m};
}

/// r where x is positive and finite, else what log is there; one of AVX-512's instructions.
llvm::Value* log_edges_avx512(llvm::Value* r, llvm::Value* x);

template <int N>
Float<N> log_edges(Float<N> r, Float<N> x, double pole) {
  if (!recorder.avx512) return math::log_edges_by_selects(r, x, pole);
  return {log_edges_avx512(r.v, pole == 0 ? x.v : (x - like(x, pole)).v)};
}

/// c[the low three bits of each lane], by the instruction that moves lanes anywhere.
llvm::Value* one_of_eight_lanes(std::span<const double, 8> c, llvm::Value* t);

inline F32 one_of_eight(const math::Eight& c, F32 t) { return {one_of_eight_lanes(c, t.v)}; }

/// (1 + x) 2^(y - floor(y)), of the t that says y.
template <int N>
Float<N> one_plus_fraction(Float<N> x, Float<N> t) {
  if constexpr (N == 64) {
    return x + like(x, 1.0);
  } else {
    Float<N> s = one_of_eight(math::kEighths, t);
    return fma(x, s, s);
  }
}

template <int N>
Float<N> one_plus_ldexp2(Float<N> x, Float<N> y, Float<N> t, int n) {
  if (!recorder.avx512) return math::one_plus_ldexp2_in_parts(x, y, t, n);
  Float<N> power = n == 0 ? y : y + like(y, n);
  return {scale_avx512(one_plus_fraction(x, t).v, power.v)};
}

/// The instruction takes 200 cycles where it underflows (Intel), none to speak of for zeros, whatever the power is.
template <int N>
Float<N> one_plus_ldexp2_or_zero(Mask zero, Float<N> x, Float<N> y, Float<N> t, bool falls) {
  if (!recorder.avx512) return math::one_plus_ldexp2_or_zero(zero, x, y, t, falls);
  return {scale_avx512(select(zero, like(x, 0.0), one_plus_fraction(x, t)).v, y.v)};
}
template <int N>
bool has_masks(Float<N>) {
  return recorder.avx512;
}

using Values = std::span<llvm::Value* const>;

/// Emits the cold block: fast where ok, elsewhere what the scalar function `name` gives.
llvm::Value* cold_lanes(Values arguments, llvm::Value* ok, llvm::Value* fast, const char* name);
/// The same of each of `fast`, by a function that puts what it gives in place of its first arguments.
void cold_parts(Values arguments, llvm::Value* ok, std::span<llvm::Value*> fast, const char* name);

template <int N, class T>
Float<N> cold(Float<N> x, Mask ok, Float<N> fast, const math::ScalarFunction1<T>& fn) {
  llvm::Value* arguments[] = {x.v};
  return {cold_lanes(arguments, ok.v, fast.v, fn.name)};
}
template <int N, class T>
Float<N> cold(Float<N> x, Float<N> y, Mask ok, Float<N> fast, const math::ScalarFunction2<T>& fn) {
  llvm::Value* arguments[] = {x.v, y.v};
  return {cold_lanes(arguments, ok.v, fast.v, fn.name)};
}

template <int N, class T>
std::array<Float<N>, 2> cold(const std::array<Float<N>, 4>& x, Mask ok, std::array<Float<N>, 2> fast,
                             const math::LaneFunction<T>& fn) {
  llvm::Value *arguments[] = {x[0].v, x[1].v, x[2].v, x[3].v}, *parts[] = {fast[0].v, fast[1].v};
  cold_parts(arguments, ok.v, parts, fn.name);
  return {Float<N>{parts[0]}, Float<N>{parts[1]}};
}

}  // namespace hlojit::codegen::ir

namespace hlojit::math {
template <int N>
struct Number<codegen::ir::Float<N>> {
  static constexpr int bits = N;
  using Scalar = std::conditional_t<N == 64, double, float>;
  using Int = codegen::ir::Int<N>;
  using Mask = codegen::ir::Mask;
};
}  // namespace hlojit::math

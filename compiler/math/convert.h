// Conversions over the number type: f32 and f64 to and from the narrow floats, to integers, and
// reduce-precision. The emitter records them, literals and the evaluator run them; the tests hold them against
// a codec written another way.
//
// With e the exponent of |x|, at least that of the smallest normal, and C = 2^(e + M - m) (M, m the
// mantissa bits of F and of the format), |x| + C is |x| rounded to the format's last place, ties to
// even: the low bits of the sum hold the integer n = |x| / 2^(e - m). The code of a finite
// magnitude is ((e - min_exponent) << m) + n: subnormals, normals and the carry are one expression.
#pragma once

#include "compiler/math/basic.h"
#include "layout/dtype.h"

namespace hlojit::math {

enum class Overflow : uint8_t { kInfinity, kNan, kSaturate };

// A float format of at most 16 bits. f8e8m0fnu has neither sign nor zero and is treated apart.
struct NarrowFormat {
  int bits, mantissa, bias;
  int max_code;  // of the largest finite magnitude
  Overflow overflow;
  bool negative_zero;  // false: its code is the NaN (fnuz), which has that sign
  bool power_only = false;
};

// f16, bf16 and all f8 and f4 types; anything else gives f16.
constexpr NarrowFormat narrow_format(DType type) {
  switch (type) {
    case DType::kBF16: return {16, 7, 127, 0x7F7F, Overflow::kInfinity, true};
    case DType::kF8E5M2: return {8, 2, 15, 0x7B, Overflow::kInfinity, true};
    case DType::kF8E4M3: return {8, 3, 7, 0x77, Overflow::kInfinity, true};
    case DType::kF8E3M4: return {8, 4, 3, 0x6F, Overflow::kInfinity, true};
    case DType::kF8E4M3FN: return {8, 3, 7, 0x7E, Overflow::kNan, true};
    case DType::kF8E4M3B11FNUZ: return {8, 3, 11, 0x7F, Overflow::kNan, false};
    case DType::kF8E4M3FNUZ: return {8, 3, 8, 0x7F, Overflow::kNan, false};
    case DType::kF8E5M2FNUZ: return {8, 2, 16, 0x7F, Overflow::kNan, false};
    case DType::kF4E2M1FN: return {4, 1, 1, 0x7, Overflow::kSaturate, true};
    case DType::kF8E8M0FNU: return {8, 0, 127, 0xFE, Overflow::kNan, false, true};
    default: return {16, 10, 15, 0x7BFF, Overflow::kInfinity, true};
  }
}

// Code of NaN. f4 has none: -0 by convention.
constexpr int nan_code(const NarrowFormat& f) {
  if (f.power_only) return 0xFF;
  if (!f.negative_zero || f.overflow == Overflow::kSaturate) return 1 << (f.bits - 1);
  if (f.overflow == Overflow::kNan) return f.max_code + 1;
  return (f.max_code + 1) | 1 << (f.mantissa - 1);
}

// |x| in units of the last place, in the low bits of `sum`, and the exponent that goes with it.
template <class F>
struct NarrowSteps {
  F sum, unit;        // |x| + C, C
  IntOf<F> exponent;  // e - min_exponent
};

// |x| as it is, or cut down to what overflows anyway (which keeps C finite); not for bf16 from f32.
template <class F>
NarrowSteps<F> narrow_steps(F x, const NarrowFormat& f) {
  constexpr int M = mantissa_bits<F>;
  int max_exponent = (f.max_code >> f.mantissa) - f.bias;
  F a = at_most(abs_(x), like(x, __builtin_ldexp(1.0, max_exponent + 1)));
  auto bits = as_int(a);
  auto smallest = likei(bits, int64_t{exponent_bias<F> + 1 - f.bias} << M);
  auto e = bits & likei(bits, int64_t{is_f64<F> ? 0x7FF : 0xFF} << M);
  e = select(e < smallest, smallest, e);
  F unit = as_float(e + likei(e, int64_t{M - f.mantissa} << M));
  return {a + unit, unit, lshr(e - smallest, M)};
}

// The rounding of f32 to bf16, in f32: the formats share exponents, so it is an integer sum.
template <class F>
F round_bf16(F x) {
  static_assert(!is_f64<F>);
  auto b = as_int(x);
  auto rounded = b + likei(b, 0x7FFF) + (lshr(b, 16) & likei(b, 1));
  auto nan = b | likei(b, 0x400000);  // a payload in the low half must not become infinity
  return as_float(select(x != x, nan, rounded) & likei(b, -0x10000));
}

// f8e8m0fnu: the power of two nearest to x, ties up, as its code; NaN for anything not above zero.
template <class F>
IntOf<F> encode_power(F x) {
  constexpr int M = mantissa_bits<F>;
  auto b = as_int(x);
  auto code = ashr(b + likei(b, int64_t{1} << (M - 1)), M) - likei(b, exponent_bias<F> - 127);
  if constexpr (is_f64<F>) {
    code = select(code < likei(b, 0), likei(b, 0), code);
    code = select(code > likei(b, 0xFF), likei(b, 0xFF), code);
  } else {
    code = select(b < likei(b, 0x600000), likei(b, 0), code);  // f32's subnormals end the range
  }
  return select(x > like(x, 0.0), code, likei(b, 0xFF));
}

// x rounded once to the format, as its code in the low bits, zeros above.
template <class F>
IntOf<F> encode_narrow(F x, const NarrowFormat& f) {
  if (f.power_only) return encode_power(x);
  constexpr int width = Number<F>::bits;
  auto b = as_int(x);
  auto code = b;
  if (!is_f64<F> && f.mantissa == 7) {
    if constexpr (!is_f64<F>) return lshr(as_int(round_bf16(x)), 16);
  } else {
    auto [sum, unit, exponent] = narrow_steps(x, f);
    code = shl(exponent, f.mantissa) + (as_int(sum) - as_int(unit));
  }
  int top = f.overflow == Overflow::kInfinity   ? f.max_code + 1
            : f.overflow == Overflow::kSaturate ? f.max_code
                                                : nan_code(f);
  auto over = code > likei(b, f.max_code);
  code = select(over, likei(b, top), code);
  auto sign = lshr(b, width - 1);
  if (!f.negative_zero) {
    auto unsigned_code = (code == likei(b, 0)) | (code == likei(b, nan_code(f)));
    sign = select(unsigned_code, likei(b, 0), sign);
  }
  code = code | shl(sign, f.bits - 1);
  bool nan_has_sign = f.negative_zero && f.overflow != Overflow::kSaturate;
  return select(x != x, likei(b, nan_code(f)) | (nan_has_sign ? shl(lshr(b, width - 1), f.bits - 1) : likei(b, 0)),
                code);
}

// The code of a value of the format, in the low bits: encode_narrow where nothing is left to round, at half its cost.
template <class F>
IntOf<F> code_of(F x, const NarrowFormat& f) {
  constexpr int M = mantissa_bits<F>, width = Number<F>::bits;
  if (f.power_only) return encode_power(x);
  auto b = as_int(x);
  if (!is_f64<F> && f.mantissa == 7) return lshr(b, 16);
  F a = abs_(x);
  auto normal = lshr(as_int(a), M - f.mantissa) - likei(b, int64_t{exponent_bias<F> - f.bias} << f.mantissa);
  F unit = like(x, __builtin_ldexp(1.0, 1 - f.bias - f.mantissa + M));  // its last place is that of the subnormals
  auto code = select(a < like(x, __builtin_ldexp(1.0, 1 - f.bias)), as_int(a + unit) - as_int(unit), normal);
  if (f.overflow == Overflow::kInfinity) code = select(code > likei(b, f.max_code), likei(b, f.max_code + 1), code);
  if (f.overflow != Overflow::kSaturate) code = select(x != x, likei(b, nan_code(f)), code);
  auto sign = lshr(b, width - 1);
  if (!f.negative_zero) sign = select(code == likei(b, 0), likei(b, 0), sign);
  return code | shl(sign, f.bits - 1);
}

// The value of a code (bits above the format's are ignored), exact.
template <class F>
F decode_narrow(F like_this, IntOf<F> code, const NarrowFormat& f) {
  constexpr int M = mantissa_bits<F>;
  F nan = like(like_this, kNan);
  auto zero = likei(code, 0);
  if (f.power_only) {
    auto c = code & likei(code, 0xFF);
    F v = as_float(shl(c + likei(c, exponent_bias<F> - 127), M));
    if constexpr (!is_f64<F>) v = select(c == zero, like(v, 0x1p-127), v);
    return select(c == likei(c, 0xFF), nan, v);
  }
  int sign_bit = f.bits - 1;
  auto magnitude = code & likei(code, (int64_t{1} << sign_bit) - 1);
  F normal = as_float(shl(magnitude, M - f.mantissa) + likei(code, int64_t{exponent_bias<F> - f.bias} << M));
  F tiny = to_float(magnitude) * like(nan, __builtin_ldexp(1.0, 1 - f.bias - f.mantissa));
  F v = select(magnitude < likei(code, int64_t{1} << f.mantissa), tiny, normal);
  if (f.overflow == Overflow::kInfinity) {
    F above = select(magnitude == likei(code, f.max_code + 1), like(nan, kInf), nan);
    v = select(magnitude > likei(code, f.max_code), above, v);
  } else if (f.overflow == Overflow::kNan && f.negative_zero) {
    v = select(magnitude > likei(code, f.max_code), nan, v);
  }
  v = select(bit(code, sign_bit), -v, v);
  if (!f.negative_zero) v = select((v == like(v, 0.0)) & bit(code, sign_bit), -nan, v);
  return v;
}

// x rounded once to the format, as a value of F: what an op on narrow floats does to its result.
template <class F>
F round_narrow(F x, const NarrowFormat& f) {
  if (f.power_only) return decode_narrow(x, encode_power(x), f);
  if constexpr (!is_f64<F>) {
    if (f.mantissa == 7) return round_bf16(x);
  }
  auto [sum, unit, exponent] = narrow_steps(x, f);
  F r = sum - unit;
  auto max_bits = f.max_code & ((1 << f.mantissa) - 1);
  double max = __builtin_ldexp((1 << f.mantissa) + max_bits, (f.max_code >> f.mantissa) - f.bias - f.mantissa);
  double top = f.overflow == Overflow::kInfinity ? kInf : f.overflow == Overflow::kSaturate ? max : kNan;
  r = select(r > like(x, max), like(x, top), r);
  F v = copysign_(r, x);
  if (!f.negative_zero) v = select(r == like(x, 0.0), r, select(r == r, v, like(x, -kNan)));
  if (f.overflow == Overflow::kSaturate) v = select(x != x, like(x, -0.0), v);
  return v;
}

// Towards zero, saturating, NaN to 0. `bits` <= the width of F; the result is the integer's value,
// for an unsigned type of full width its bits. To 64 bits from f32: widen first, that is exact.
template <class F>
IntOf<F> to_int_saturating(F x, int bits, bool is_signed) {
  constexpr int width = Number<F>::bits;
  int top_bit = is_signed ? bits - 1 : bits;
  F limit = like(x, __builtin_ldexp(1.0, top_bit)), none = like(x, 0.0);
  F v = is_signed ? at_least(select(x == x, x, none), -limit) : select(x > none, x, none);
  // Where the greatest is a number of this format, too: one operation instead of a comparison and a selection.
  if (top_bit < (is_f64<F> ? 32 : 24)) return to_small_int(at_most(v, limit - like(x, 1.0)));
  auto zero = as_int(like(x, 0.0));
  auto max = likei(zero, top_bit == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << top_bit) - 1));
  if (top_bit < width) return select(v >= limit, max, to_int(v));
  return select(v >= limit, max, to_unsigned(v));
}

struct Precision {
  int exponent, mantissa;  // bits
  int least;               // exponent of the smallest normal number: below it the last place stays where it is
};

constexpr Precision precision_of(DType type) {
  if (type == DType::kF64) return {11, 52, -1022};
  if (!is_narrow_float(type)) return {8, 23, -126};
  NarrowFormat f = narrow_format(type);
  return {f.power_only ? 8 : f.bits - 1 - f.mantissa, f.mantissa, 1 - f.bias};
}

// What reduce-precision of a type asks of the wider format it is computed in: a part that keeps all
// bits of its own type is no reduction.
constexpr Precision reduced_precision(DType type, int64_t exponent, int64_t mantissa) {
  constexpr int kAll = 64;
  Precision p = precision_of(type);
  return {exponent >= p.exponent ? kAll : static_cast<int>(exponent),
          mantissa >= p.mantissa ? kAll : static_cast<int>(mantissa), p.least};
}

// HLO's reduce-precision: the mantissa rounded to `mantissa` bits, ties to even, then exponents
// beyond `exponent` bits to infinity and to zero (the narrow format has no subnormals).
template <class F>
F reduce_precision(F x, Precision to) {
  constexpr int M = mantissa_bits<F>, E = Number<F>::bits - 1 - M;
  const auto [exponent, mantissa, least] = to;
  auto b = as_int(x);
  if (mantissa < M) {
    int drop = M - mantissa;
    auto last = lshr(b, drop) & likei(b, 1);
    b = b + likei(b, (int64_t{1} << (drop - 1)) - 1) + last;
    b = b & likei(b, -(int64_t{1} << drop));
  }
  F r = as_float(b);
  if (mantissa < M && least > 1 - exponent_bias<F>) {
    F a = abs_(x), unit = like(x, __builtin_ldexp(1.0, least - mantissa + M));
    r = select(a < like(x, __builtin_ldexp(1.0, least)), copysign_((a + unit) - unit, x), r);
  }
  if (exponent < E) {
    int64_t reach = (int64_t{1} << (exponent - 1)) - 1;
    auto e = b & likei(b, ((int64_t{1} << E) - 1) << M);
    r = select(e > likei(b, (exponent_bias<F> + reach) << M), copysign_(like(x, kInf), x), r);
    auto small = !(e > likei(b, (exponent_bias<F> - reach) << M));
    r = select(small, copysign_(like(x, 0.0), x), r);
  }
  return select(x != x, x, r);
}

}  // namespace hlojit::math

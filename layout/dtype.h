// Element types: one row a type. Everything that depends on a type alone (width, class, names,
// limits of the narrow float formats) is read from here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "export.h"

namespace hlojit {

/// Values are those of XLA's PrimitiveType enum, so that protos need no translation. As wide as a register is passed:
/// of a byte clang takes the rest of it to be zero, as gcc -Os does not make it, and either may call the other's code.
enum class DType : int32_t {
  kInvalid = 0,
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kTuple = 13,
  kOpaque = 14,
  kC64 = 15,
  kBF16 = 16,
  kToken = 17,
  kC128 = 18,
  kF8E5M2 = 19,
  kF8E4M3FN = 20,
  kS4 = 21,
  kU4 = 22,
  kF8E4M3B11FNUZ = 23,
  kF8E5M2FNUZ = 24,
  kF8E4M3FNUZ = 25,
  kS2 = 26,
  kU2 = 27,
  kF8E4M3 = 28,
  kF8E3M4 = 29,
  kS1 = 30,
  kU1 = 31,
  kF4E2M1FN = 32,
  kF8E8M0FNU = 33,
  kBuffer = 34,
};

enum class DTypeClass : uint8_t { kNone, kPred, kSigned, kUnsigned, kFloat, kComplex };

/// "f32", "pred", ...; tuples and invalid give "(tuple)" / "(invalid)".
HLOJIT_API std::string_view dtype_name(DType type);
/// Inverse of dtype_name for array types, token and opaque; nullopt for anything else.
HLOJIT_API std::optional<DType> dtype_from_name(std::string_view name);
HLOJIT_API DTypeClass dtype_class(DType type);
/// Logical bits of an element: pred 1, s4 4, f32 32, c64 64; 0 for non-array types.
HLOJIT_API int dtype_bits(DType type);
/// Bytes an unpacked element takes: ceil(bits/8).
HLOJIT_API int dtype_bytes(DType type);
/// re/im type of a complex type; the type itself otherwise.
HLOJIT_API DType component_type(DType type);
/// kF32 -> kC64, kF64 -> kC128; kInvalid otherwise.
HLOJIT_API DType complex_of(DType type);
/// The integer type of so many bits; kInvalid where there is none.
HLOJIT_API DType integer_of(int bits, bool is_signed);

inline bool is_array_type(DType t) { return dtype_class(t) != DTypeClass::kNone; }
inline bool is_pred(DType t) { return t == DType::kPred; }
inline bool is_signed(DType t) { return dtype_class(t) == DTypeClass::kSigned; }
inline bool is_unsigned(DType t) { return dtype_class(t) == DTypeClass::kUnsigned; }
inline bool is_integral(DType t) { return is_signed(t) || is_unsigned(t); }
inline bool is_float(DType t) { return dtype_class(t) == DTypeClass::kFloat; }
inline bool is_complex(DType t) { return dtype_class(t) == DTypeClass::kComplex; }
/// Floats narrower than f32: computed in f32, rounded after every op.
inline bool is_narrow_float(DType t) { return is_float(t) && dtype_bits(t) < 32; }
/// f16 or bf16: its bits are ordered as its values are, and it holds every integer of a byte.
inline bool is_half(DType t) { return t == DType::kF16 || t == DType::kBF16; }
/// Whether zero is one of its values, so that arrays of it can be padded with what adds nothing to a sum: f8e8m0fnu
/// has powers of two only.
inline bool has_zero(DType t) { return is_array_type(t) && t != DType::kF8E8M0FNU; }

}  // namespace hlojit

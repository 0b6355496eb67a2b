// Elements as unsigned integers that compare as the elements do, and back.
//
// Signed integers flip the sign bit. Floats are sign and magnitude: negative ones are complemented,
// the others get the sign bit, which is IEEE's total order. The canonical form makes -0 a 0 and
// every NaN the positive quiet one first.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "layout/dtype.h"

namespace hlojit {

/// An element type as seen by a sort: its bits, and how they order.
template <class Bits, DTypeClass kClass, Bits kInfinity = 0>
struct KeyType {
  using Key = Bits;
  static constexpr bool kFloat = kClass == DTypeClass::kFloat;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  static constexpr Bits kNan = static_cast<Bits>(kInfinity | (Bits((kInfinity & (~kInfinity + 1)) >> 1)));

  static Bits canonical(Bits bits) {
    if constexpr (!kFloat) return bits;
    Bits magnitude = static_cast<Bits>(bits & ~kSign);
    if (magnitude == 0) return 0;
    return magnitude > kInfinity ? kNan : bits;
  }
  static Bits to_key(Bits bits) {
    if constexpr (kClass == DTypeClass::kSigned) return static_cast<Bits>(bits ^ kSign);
    if constexpr (kFloat) return static_cast<Bits>(bits ^ ((bits & kSign) ? static_cast<Bits>(~Bits{0}) : kSign));
    return bits;
  }
  static Bits from_key(Bits key) {
    if constexpr (kClass == DTypeClass::kSigned) return static_cast<Bits>(key ^ kSign);
    if constexpr (kFloat) return static_cast<Bits>(key ^ ((key & kSign) ? kSign : static_cast<Bits>(~Bits{0})));
    return key;
  }
};

/// Of an integer that is narrower than its byte, whose other bits say nothing.
template <DTypeClass kClass, int kBits>
struct NarrowKeyType {
  using Key = uint8_t;
  static constexpr bool kFloat = false;
  static constexpr Key kNan = 0, kAll = (1 << kBits) - 1, kSign = kClass == DTypeClass::kSigned ? 1 << (kBits - 1) : 0;

  static Key canonical(Key bits) { return bits; }
  static Key to_key(Key bits) { return static_cast<Key>((bits & kAll) ^ kSign); }
  static Key from_key(Key key) { return static_cast<Key>(key - kSign); }
};

/// Calls f(KeyType<...>{}) for the element type; false if it has no such mapping.
template <class F>
bool with_key_type(DType type, F&& f) {
  using enum DTypeClass;
  switch (type) {
    case DType::kPred: f(KeyType<uint8_t, kUnsigned>{}); return true;
    case DType::kU8: f(KeyType<uint8_t, kUnsigned>{}); return true;
    case DType::kU16: f(KeyType<uint16_t, kUnsigned>{}); return true;
    case DType::kU32: f(KeyType<uint32_t, kUnsigned>{}); return true;
    case DType::kU64: f(KeyType<uint64_t, kUnsigned>{}); return true;
    case DType::kS8: f(KeyType<uint8_t, kSigned>{}); return true;
    case DType::kS16: f(KeyType<uint16_t, kSigned>{}); return true;
    case DType::kS32: f(KeyType<uint32_t, kSigned>{}); return true;
    case DType::kS64: f(KeyType<uint64_t, kSigned>{}); return true;
    case DType::kS2: f(NarrowKeyType<kSigned, 2>{}); return true;
    case DType::kU2: f(NarrowKeyType<kUnsigned, 2>{}); return true;
    case DType::kS4: f(NarrowKeyType<kSigned, 4>{}); return true;
    case DType::kU4: f(NarrowKeyType<kUnsigned, 4>{}); return true;
    case DType::kF8E5M2: f(KeyType<uint8_t, kFloat, 0x7c>{}); return true;
    case DType::kF8E4M3: f(KeyType<uint8_t, kFloat, 0x78>{}); return true;
    case DType::kF8E3M4: f(KeyType<uint8_t, kFloat, 0x70>{}); return true;
    case DType::kF8E4M3FN: f(KeyType<uint8_t, kFloat, 0x7e>{}); return true;  // no infinity: the greatest number
    case DType::kF16: f(KeyType<uint16_t, kFloat, 0x7c00>{}); return true;
    case DType::kBF16: f(KeyType<uint16_t, kFloat, 0x7f80>{}); return true;
    case DType::kF32: f(KeyType<uint32_t, kFloat, 0x7f80'0000>{}); return true;
    case DType::kF64: f(KeyType<uint64_t, kFloat, 0x7ff0'0000'0000'0000>{}); return true;
    default: return false;
  }
}

}  // namespace hlojit

// See sort_key_loops.h.
#include "runtime/kernels/sort_key_loops.h"

#include <cstring>

namespace hlojit {
namespace {

template <class Type, bool kCanonical>
[[gnu::always_inline]] inline typename Type::Key keys_of(const typename Type::Key* in, typename Type::Key* out,
                                                         int64_t n, typename Type::Key flip) {
  using Key = typename Type::Key;
  Key lost = 0;
#pragma clang loop vectorize(assume_safety)
  for (int64_t k = 0; k < n; ++k) {
    Key bits = kCanonical ? Type::canonical(in[k]) : in[k];
    lost |= static_cast<Key>(bits ^ in[k]);
    out[k] = static_cast<Key>(Type::to_key(bits) ^ flip);
  }
  return lost;
}

// (In place, too: a test for overlap would send it the slow way.)
template <class Type>
[[gnu::always_inline]] inline void elements_of(const typename Type::Key* keys, typename Type::Key* out, int64_t n,
                                               typename Type::Key flip) {
#pragma clang loop vectorize(assume_safety)
  for (int64_t k = 0; k < n; ++k) out[k] = Type::from_key(static_cast<typename Type::Key>(keys[k] ^ flip));
}

template <class Type>
[[gnu::always_inline]] inline int64_t step_below(const typename Type::Key* in, int64_t at, int64_t end,
                                                 typename Type::Key flip, typename Type::Key limit, uint8_t* below) {
  using Key = typename Type::Key;
  for (; at + kKeyStep <= end; at += kKeyStep) {
    Key some = 0;
    for (int64_t j = 0; j < kKeyStep; ++j)
      some |= static_cast<Key>(static_cast<Key>(Type::to_key(in[at + j]) ^ flip) < limit ? ~Key{0} : Key{0});
    if (some == 0) continue;
    uint8_t found[kKeyStep];  // apart from the elements, as the compiler sees
    for (int64_t j = 0; j < kKeyStep; ++j) found[j] = static_cast<Key>(Type::to_key(in[at + j]) ^ flip) < limit;
    std::memcpy(below, found, sizeof found);
    break;
  }
  return at;
}

}  // namespace

// A function template has no clones.
#define HLOJIT_EACH_WIDTH __attribute__((target_clones("default", "avx2", "avx512f")))
#define HLOJIT_KEY_LOOPS(name, bits, ...)                                                                    \
  using name = __VA_ARGS__;                                                                                  \
  HLOJIT_EACH_WIDTH bits make_##name(const bits* in, bits* out, int64_t n, bool canonical, bits flip) {      \
    return canonical ? keys_of<name, true>(in, out, n, flip) : keys_of<name, false>(in, out, n, flip);       \
  }                                                                                                          \
  HLOJIT_EACH_WIDTH void take_##name(const bits* keys, bits* out, int64_t n, bits flip) {                    \
    elements_of<name>(keys, out, n, flip);                                                                   \
  }                                                                                                          \
  HLOJIT_EACH_WIDTH int64_t below_##name(const bits* in, int64_t at, int64_t end, bits flip, bits limit,     \
                                         uint8_t* below) {                                                   \
    return step_below<name>(in, at, end, flip, limit, below);                                                \
  }                                                                                                          \
  template <>                                                                                                \
  bits make_keys<name>(const bits* in, bits* out, int64_t n, bool canonical, bits flip) {                    \
    return make_##name(in, out, n, canonical, flip);                                                         \
  }                                                                                                          \
  template <>                                                                                                \
  void take_keys<name>(const bits* keys, bits* out, int64_t n, bits flip) {                                  \
    take_##name(keys, out, n, flip);                                                                         \
  }                                                                                                          \
  template <>                                                                                                \
  int64_t next_below<name>(const bits* in, int64_t at, int64_t end, bits flip, bits limit, uint8_t* below) { \
    return below_##name(in, at, end, flip, limit, below);                                                    \
  }

HLOJIT_KEY_LOOPS(KeyU8, uint8_t, KeyType<uint8_t, DTypeClass::kUnsigned>)
HLOJIT_KEY_LOOPS(KeyU16, uint16_t, KeyType<uint16_t, DTypeClass::kUnsigned>)
HLOJIT_KEY_LOOPS(KeyU32, uint32_t, KeyType<uint32_t, DTypeClass::kUnsigned>)
HLOJIT_KEY_LOOPS(KeyU64, uint64_t, KeyType<uint64_t, DTypeClass::kUnsigned>)
HLOJIT_KEY_LOOPS(KeyS8, uint8_t, KeyType<uint8_t, DTypeClass::kSigned>)
HLOJIT_KEY_LOOPS(KeyS16, uint16_t, KeyType<uint16_t, DTypeClass::kSigned>)
HLOJIT_KEY_LOOPS(KeyS32, uint32_t, KeyType<uint32_t, DTypeClass::kSigned>)
HLOJIT_KEY_LOOPS(KeyS64, uint64_t, KeyType<uint64_t, DTypeClass::kSigned>)
HLOJIT_KEY_LOOPS(KeyS2, uint8_t, NarrowKeyType<DTypeClass::kSigned, 2>)
HLOJIT_KEY_LOOPS(KeyU2, uint8_t, NarrowKeyType<DTypeClass::kUnsigned, 2>)
HLOJIT_KEY_LOOPS(KeyS4, uint8_t, NarrowKeyType<DTypeClass::kSigned, 4>)
HLOJIT_KEY_LOOPS(KeyU4, uint8_t, NarrowKeyType<DTypeClass::kUnsigned, 4>)
HLOJIT_KEY_LOOPS(KeyF8E5M2, uint8_t, KeyType<uint8_t, DTypeClass::kFloat, 0x7c>)
HLOJIT_KEY_LOOPS(KeyF8E4M3, uint8_t, KeyType<uint8_t, DTypeClass::kFloat, 0x78>)
HLOJIT_KEY_LOOPS(KeyF8E3M4, uint8_t, KeyType<uint8_t, DTypeClass::kFloat, 0x70>)
HLOJIT_KEY_LOOPS(KeyF8E4M3FN, uint8_t, KeyType<uint8_t, DTypeClass::kFloat, 0x7e>)
HLOJIT_KEY_LOOPS(KeyF16, uint16_t, KeyType<uint16_t, DTypeClass::kFloat, 0x7c00>)
HLOJIT_KEY_LOOPS(KeyBF16, uint16_t, KeyType<uint16_t, DTypeClass::kFloat, 0x7f80>)
HLOJIT_KEY_LOOPS(KeyF32, uint32_t, KeyType<uint32_t, DTypeClass::kFloat, 0x7f80'0000>)
HLOJIT_KEY_LOOPS(KeyF64, uint64_t, KeyType<uint64_t, DTypeClass::kFloat, 0x7ff0'0000'0000'0000>)

}  // namespace hlojit

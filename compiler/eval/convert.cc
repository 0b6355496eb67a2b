// convert between any two element types, and the codecs of the narrow floats.
//
// Every source is read exactly (f32, f64, int64 or uint64) and rounded once into the target:
// nearest even between floats and from integers, truncated and saturated into integers (NaN gives
// 0), modulo 2^n between integers, `!= 0` into pred.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "compiler/eval/elementwise.h"
#include "compiler/ir/narrow.h"
#include "compiler/math/convert.h"

namespace hlojit::eval {
namespace {

// Values of all codes of a one-byte float format.
std::array<float, 256> code_values(DType type) {
  std::array<float, 256> values;
  const uint32_t mask = (1u << dtype_bits(type)) - 1;
  for (uint32_t code = 0; code < 256; ++code) {
    values[code] = static_cast<float>(narrow_to_double(type, code & mask));
  }
  return values;
}

const std::array<float, 256>& decode_table(DType type) {
  static const std::array<std::array<float, 256>, 64> tables = [] {
    std::array<std::array<float, 256>, 64> made{};
    for (int t = 1; t < 64; ++t) {
      DType each = static_cast<DType>(t);
      if (dtype_class(each) == DTypeClass::kFloat && dtype_bytes(each) == 1) {
        made[t] = code_values(each);
      }
    }
    return made;
  }();
  return tables[static_cast<size_t>(type)];
}

// Towards zero, saturating, NaN to 0.
template <class T>
T to_integer(double value, int bits) {
  return static_cast<T>(math::to_int_saturating(value, bits, std::is_signed_v<T>).v);
}

template <class T>
T cut_integer(uint64_t value, int bits) {
  const int shift = 64 - bits;
  if (std::is_signed_v<T>) return static_cast<T>(static_cast<int64_t>(value << shift) >> shift);
  return static_cast<T>(value << shift >> shift);
}

// One element into the target type; S is int64_t, uint64_t, float or double.
template <class S>
void store_from(DType to, int64_t n, const S* in, void* out);

template <class T, class S>
void store_integers(DType to, int64_t n, const S* in, void* out) {
  T* r = static_cast<T*>(out);
  const int bits = dtype_bits(to);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<S>) {
      r[i] = to_integer<T>(in[i], bits);
    } else {
      r[i] = cut_integer<T>(static_cast<uint64_t>(in[i]), bits);
    }
  }
}

// An integer as a double that a later rounding to at most 24 bits cannot tell from the integer
// itself: above 2^53 the low bits are folded into one sticky bit.
template <class S>
double sticky_double(S value) {
  if constexpr (std::is_floating_point_v<S>) {
    return value;
  } else {
    const bool negative = value < S{0};
    uint64_t magnitude = negative ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    if (magnitude >> 53) magnitude = (magnitude & ~uint64_t{0x7FF}) | ((magnitude & 0x7FF) != 0) << 11;
    return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
  }
}

template <class S>
void store_floats(DType to, int64_t n, const S* in, void* out) {
  if constexpr (std::is_same_v<S, float>) {
    encode_narrow(to, n, in, out);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t code = narrow_from_double(to, sticky_double(in[i]));
      if (dtype_bytes(to) == 2) {
        static_cast<uint16_t*>(out)[i] = static_cast<uint16_t>(code);
      } else {
        static_cast<uint8_t*>(out)[i] = static_cast<uint8_t>(code);
      }
    }
  }
}

template <class S>
void store_from(DType to, int64_t n, const S* in, void* out) {
  switch (to) {
    case DType::kPred:
      for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(out)[i] = in[i] != 0;
      return;
    case DType::kF32:
      for (int64_t i = 0; i < n; ++i) static_cast<float*>(out)[i] = static_cast<float>(in[i]);
      return;
    case DType::kF64:
      for (int64_t i = 0; i < n; ++i) static_cast<double*>(out)[i] = static_cast<double>(in[i]);
      return;
    case DType::kC64:
      for (int64_t i = 0; i < n; ++i) {
        static_cast<std::complex<float>*>(out)[i] = static_cast<float>(in[i]);
      }
      return;
    case DType::kC128:
      for (int64_t i = 0; i < n; ++i) {
        static_cast<std::complex<double>*>(out)[i] = static_cast<double>(in[i]);
      }
      return;
    default: break;
  }
  if (is_float(to)) return store_floats(to, n, in, out);
  const bool sign = is_signed(to);
  switch (dtype_bytes(to)) {
    case 1: return sign ? store_integers<int8_t>(to, n, in, out) : store_integers<uint8_t>(to, n, in, out);
    case 2: return sign ? store_integers<int16_t>(to, n, in, out) : store_integers<uint16_t>(to, n, in, out);
    case 4: return sign ? store_integers<int32_t>(to, n, in, out) : store_integers<uint32_t>(to, n, in, out);
    default: return sign ? store_integers<int64_t>(to, n, in, out) : store_integers<uint64_t>(to, n, in, out);
  }
}

template <class T, class S>
void widen(int64_t n, const void* in, S* out) {
  const T* a = static_cast<const T*>(in);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<S>(a[i]);
}

void load_integers(DType from, int64_t n, const void* in, int64_t* out) {
  const bool sign = is_signed(from);
  switch (dtype_bytes(from)) {
    case 1: return sign ? widen<int8_t>(n, in, out) : widen<uint8_t>(n, in, out);
    case 2: return sign ? widen<int16_t>(n, in, out) : widen<uint16_t>(n, in, out);
    default: return sign ? widen<int32_t>(n, in, out) : widen<uint32_t>(n, in, out);
  }
}

void convert_block(DType from, DType to, int64_t n, const void* in, void* out) {
  constexpr int64_t kBlock = 256;
  union {
    float f32[kBlock];
    double f64[kBlock];
    int64_t integer[kBlock];
  } buffer;
  switch (from) {
    case DType::kF32: return store_from(to, n, static_cast<const float*>(in), out);
    case DType::kF64: return store_from(to, n, static_cast<const double*>(in), out);
    case DType::kS64: return store_from(to, n, static_cast<const int64_t*>(in), out);
    case DType::kU64: return store_from(to, n, static_cast<const uint64_t*>(in), out);
    case DType::kC64: {
      const auto* z = static_cast<const std::complex<float>*>(in);
      if (to == DType::kC128) {
        for (int64_t i = 0; i < n; ++i) static_cast<std::complex<double>*>(out)[i] = z[i];
        return;
      }
      if (to == DType::kPred) {
        for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(out)[i] = z[i] != 0.0f;
        return;
      }
      for (int64_t i = 0; i < n; ++i) buffer.f32[i] = z[i].real();
      return store_from(to, n, buffer.f32, out);
    }
    case DType::kC128: {
      const auto* z = static_cast<const std::complex<double>*>(in);
      if (to == DType::kC64) {
        for (int64_t i = 0; i < n; ++i) {
          static_cast<std::complex<float>*>(out)[i] = std::complex<float>(z[i]);
        }
        return;
      }
      if (to == DType::kPred) {
        for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(out)[i] = z[i] != 0.0;
        return;
      }
      for (int64_t i = 0; i < n; ++i) buffer.f64[i] = z[i].real();
      return store_from(to, n, buffer.f64, out);
    }
    default: break;
  }
  if (is_float(from)) {
    decode_narrow(from, n, in, buffer.f32);
    return store_from(to, n, buffer.f32, out);
  }
  load_integers(from, n, in, buffer.integer);
  store_from(to, n, buffer.integer, out);
}

}  // namespace

void decode_narrow(DType type, int64_t n, const void* in, float* out) {
  if (dtype_bytes(type) == 1) {
    const auto& table = decode_table(type);
    for (int64_t i = 0; i < n; ++i) out[i] = table[static_cast<const uint8_t*>(in)[i]];
    return;
  }
  const uint16_t* codes = static_cast<const uint16_t*>(in);
  const math::NarrowFormat format = math::narrow_format(type);
  for (int64_t i = 0; i < n; ++i) out[i] = math::decode_narrow(0.0f, {codes[i]}, format);
}

void encode_narrow(DType type, int64_t n, const float* in, void* out) {
  const math::NarrowFormat format = math::narrow_format(type);
  if (dtype_bytes(type) == 1) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<uint8_t*>(out)[i] = static_cast<uint8_t>(math::encode_narrow(in[i], format).v);
  } else {
    for (int64_t i = 0; i < n; ++i)
      static_cast<uint16_t*>(out)[i] = static_cast<uint16_t>(math::encode_narrow(in[i], format).v);
  }
}

void convert(DType from, DType to, int64_t n, const void* in, void* out) {
  if (from == to) {
    if (in != out && n > 0) std::memcpy(out, in, n * dtype_bytes(from));
    return;
  }
  constexpr int64_t kBlock = 256;
  const int width = dtype_bytes(from), result_width = dtype_bytes(to);
  for (int64_t at = 0; at < n; at += kBlock) {
    convert_block(from, to, std::min(kBlock, n - at), static_cast<const std::byte*>(in) + at * width,
                  static_cast<std::byte*>(out) + at * result_width);
  }
}

void stochastic_convert(DType from, DType to, int64_t n, const void* in, const void* random, void* out) {
  if (!is_signed(to)) {
    throw Error(ErrorKind::kUnsupported, "stochastic-convert to " + std::string(dtype_name(to)) + " is not evaluated");
  }
  const int random_bits = dtype_bits(from);
  const DType random_type = random_bits == 64   ? DType::kU64
                            : random_bits == 32 ? DType::kU32
                            : random_bits == 16 ? DType::kU16
                                                : DType::kU8;
  std::vector<double> x(n), rounded(n);
  std::vector<uint64_t> bits(n);
  convert(from, DType::kF64, n, in, x.data());
  convert(random_type, DType::kU64, n, random, bits.data());
  for (int64_t i = 0; i < n; ++i) {
    const double whole = std::floor(std::fabs(x[i])), fraction = std::fabs(x[i]) - whole;
    const bool up = fraction > 0 && bits[i] < static_cast<uint64_t>(std::ldexp(fraction, random_bits));
    rounded[i] = std::isfinite(x[i]) ? std::copysign(whole + (up ? 1 : 0), x[i]) : x[i];
  }
  convert(DType::kF64, to, n, rounded.data(), out);
}

}  // namespace hlojit::eval

// Conversions over the number type against a codec written differently, and against plain arithmetic.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/math/convert.h"
#include "tests/compiler/plain_codec.h"

using namespace hlojit;

namespace {

constexpr DType kNarrow[] = {DType::kF16,        DType::kBF16,     DType::kF8E5M2,        DType::kF8E4M3,
                             DType::kF8E3M4,     DType::kF8E4M3FN, DType::kF8E4M3B11FNUZ, DType::kF8E4M3FNUZ,
                             DType::kF8E5M2FNUZ, DType::kF4E2M1FN, DType::kF8E8M0FNU};

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// Encodes, rounds and decodes x three ways; code and value must agree with the literals' codec.
template <class F>
void check(DType type, F x) {
  CAPTURE(dtype_name(type));
  CAPTURE(x);
  math::NarrowFormat f = math::narrow_format(type);
  auto code = static_cast<uint32_t>(math::encode_narrow(x, f).v);
  double want = test::plain_to_double(type, test::plain_from_double(type, static_cast<double>(x)));
  CHECK(same(test::plain_to_double(type, code), want));
  F rounded = math::round_narrow(x, f);
  CHECK(same(static_cast<double>(rounded), want));
  CHECK(static_cast<uint32_t>(math::code_of(rounded, f).v) == code);
  if (!std::isnan(x)) CHECK(code == test::plain_from_double(type, static_cast<double>(x)));
}

}  // namespace

TEST_CASE("convert: every code of every narrow float decodes exactly and encodes to itself") {
  for (DType type : kNarrow) {
    CAPTURE(dtype_name(type));
    math::NarrowFormat f = math::narrow_format(type);
    for (int code = 0; code < 1 << f.bits; ++code) {
      double want = test::plain_to_double(type, static_cast<uint32_t>(code));
      float f32 = math::decode_narrow(0.0f, {code}, f);
      double f64 = math::decode_narrow(0.0, {code}, f);
      bool ok = same(static_cast<double>(f32), want) && same(f64, want);
      if (!std::isnan(want)) ok = ok && math::encode_narrow(f32, f).v == code && math::code_of(f64, f).v == code;
      ok = ok && math::code_of(f32, f).v == math::encode_narrow(f32, f).v;
      if (!ok) FAIL_CHECK("code ", code, ": ", f32, " ", f64, " for ", want);
    }
  }
}

TEST_CASE("convert: rounding agrees at, just below and just above every midpoint") {
  for (DType type : kNarrow) {
    math::NarrowFormat f = math::narrow_format(type);
    int step = f.bits == 16 ? 7 : 1;
    for (int code = 0; code < f.max_code; code += step) {
      double a = test::plain_to_double(type, static_cast<uint32_t>(code));
      double b = test::plain_to_double(type, static_cast<uint32_t>(code + 1));
      double middle = a + (b - a) / 2;
      for (double x : {a, middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e300)}) {
        check(type, x);
        check(type, -x);
        check(type, static_cast<float>(x));
        check(type, -static_cast<float>(x));
      }
    }
  }
}

TEST_CASE("convert: overflow, infinities, NaN, subnormals") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType type : kNarrow) {
    for (double x : {0.0,     inf,     nan,   3.4e38, 1e30,  448.0, 464.0, 465.0, 480.0, 57344.0, 61439.0, 61440.0,
                     65519.0, 65520.0, 240.0, 247.0,  248.0, 249.0, 15.5,  15.75, 16.0,  30.0,    31.0,    6.0,
                     7.0,     9.0,     1e-38, 1e-39,  2e-39, 5e-39, 9e-39, 1e-45, 6e-8,  2.98e-8, 2.99e-8}) {
      for (double y : {x, -x}) {
        check(type, y);
        check(type, static_cast<float>(y));
      }
    }
    for (double x : {1e300, 5e-324, 1e-300, 1e40, 3.3961e38, 3.3961776e38}) check(type, x);
  }
  // One rounding: through f32 this would be a tie and give 1.
  CHECK(math::round_narrow(1.0039062500000002, math::narrow_format(DType::kBF16)) == 1.0078125);
  // A NaN whose payload lies in the bits that bf16 drops.
  CHECK(std::isnan(math::round_bf16(std::bit_cast<float>(0x7F800001))));
}

TEST_CASE("convert: float to integer truncates, saturates, NaN gives zero") {
  std::mt19937_64 random(1);
  const float edges[] = {0.0f,   -0.5f, 0.99f, -1.0f,         127.5f,        128.0f,        -128.9f, -129.0f, 255.0f,
                         256.0f, 3e9f,  -3e9f, 2147483520.0f, 4294967040.0f, 4294967296.0f, 1e20f,   -1e20f};
  auto check_all = [&](auto x) {
    using T = decltype(x);
    for (int bits : {1, 2, 4, 8, 16, 32, 64}) {
      if (bits > static_cast<int>(sizeof(T)) * 8) continue;
      for (bool is_signed : {false, true}) {
        CAPTURE(x);
        CAPTURE(bits);
        CAPTURE(is_signed);
        long double low = is_signed ? -std::ldexp(1.0L, bits - 1) : 0.0L;
        long double high = std::ldexp(1.0L, is_signed ? bits - 1 : bits) - 1;
        long double t = std::isnan(x) ? 0.0L : std::trunc(static_cast<long double>(x));
        long double want = t < low ? low : t > high ? high : t;
        auto got = math::to_int_saturating(x, bits, is_signed).v;
        using U = std::make_unsigned_t<decltype(got)>;
        long double value = is_signed ? static_cast<long double>(got) : static_cast<long double>(static_cast<U>(got));
        CHECK(value == want);
      }
    }
  };
  for (float x : edges) check_all(x), check_all(static_cast<double>(x));
  for (double x : {9.2233720368547748e18, 9.2233720368547758e18, 1.8446744073709550e19, 1.8446744073709552e19, -9.3e18,
                   4294967295.0, 4294967295.9}) {
    check_all(x);
  }
  check_all(std::numeric_limits<float>::quiet_NaN());
  check_all(std::numeric_limits<double>::infinity());
  check_all(-std::numeric_limits<double>::infinity());
  for (int i = 0; i < 2000; ++i) {
    check_all(std::bit_cast<float>(static_cast<uint32_t>(random())));
    check_all(std::bit_cast<double>(random()));
  }
}

TEST_CASE("convert: reduce-precision") {
  auto reduce = [](float x, int e, int m) {
    float r = math::reduce_precision(x, {e, m, -126});
    CHECK(static_cast<double>(r) == math::reduce_precision(static_cast<double>(x), {e, m, -1022}));
    return r;
  };
  CHECK(std::isinf(reduce(65520, 5, 10)));
  CHECK(reduce(65519, 5, 10) == 65504);
  CHECK(reduce(6e-8f, 5, 10) == 0);
  CHECK(std::isinf(math::reduce_precision(3.4e38f, {8, 7, -126})));
  CHECK(reduce(1, 1, 0) == 0);
  CHECK(std::isinf(reduce(65520, 1, 0)));
  CHECK(reduce(1.5f, 8, 0) == 2);
  CHECK(reduce(-3.14159f, 8, 23) == -3.14159f);
  CHECK(std::isnan(math::reduce_precision(std::bit_cast<float>(0x7F800001), {5, 2, -126})));
  CHECK(std::signbit(reduce(-1e-9f, 5, 10)));
  CHECK(math::reduce_precision(0x1.8p-1030, {11, 52, -1022}) == 0x1.8p-1030);
  // Subnormal numbers of f16 have fewer bits to keep.
  const math::Precision two_bits = math::reduced_precision(DType::kF16, 5, 2);
  CHECK(math::reduce_precision(0x1.4p-14f, two_bits) == 0x1.4p-14f);
  CHECK(math::reduce_precision(0x1.4p-15f, two_bits) == 0x1p-15f);
  CHECK(math::reduce_precision(0x1.8p-16f, two_bits) == 0x1p-15f);
  CHECK(std::signbit(math::reduce_precision(-0x1p-20f, two_bits)));
  CHECK(math::reduce_precision(-0x1p-20f, two_bits) == 0);
}

// Literals: storage, narrow floats, text.
#include "compiler/ir/literal.h"

#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <random>

#include "compiler/ir/narrow.h"
#include "compiler/text/literal_text.h"

namespace hlojit {
namespace {

constexpr DType kNarrow[] = {DType::kF16,      DType::kBF16,          DType::kF8E5M2,     DType::kF8E4M3,
                             DType::kF8E4M3FN, DType::kF8E4M3B11FNUZ, DType::kF8E4M3FNUZ, DType::kF8E5M2FNUZ,
                             DType::kF8E3M4,   DType::kF4E2M1FN,      DType::kF8E8M0FNU};

TEST_CASE("every code of a narrow float survives the way through double") {
  for (DType type : kNarrow) {
    CAPTURE(dtype_name(type));
    for (uint32_t code = 0; code < 1u << dtype_bits(type); ++code) {
      double value = narrow_to_double(type, code);
      if (!std::isnan(value)) {
        CHECK(narrow_from_double(type, value) == code);
      } else {
        CHECK(std::isnan(narrow_to_double(type, narrow_from_double(type, value))));
      }
    }
  }
}

TEST_CASE("between two codes: nearest, ties to even") {
  for (DType type : kNarrow) {
    if (type == DType::kF8E8M0FNU) continue;  // ties up, below
    CAPTURE(dtype_name(type));
    for (uint32_t code = 0; code + 1 < 1u << (dtype_bits(type) - 1); ++code) {
      double low = narrow_to_double(type, code), high = narrow_to_double(type, code + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) break;
      double middle = low + (high - low) / 2;
      CHECK(narrow_from_double(type, middle) == code + (code & 1));
      CHECK(narrow_from_double(type, std::nextafter(middle, -1.0)) == code);
      CHECK(narrow_from_double(type, std::nextafter(middle, HUGE_VAL)) == code + 1);
    }
  }
}

TEST_CASE("f16 as the compiler has it") {
  std::mt19937_64 random(1);
  for (uint32_t code = 0; code < 1 << 16; ++code) {
    double expected = static_cast<double>(std::bit_cast<_Float16>(static_cast<uint16_t>(code)));
    double value = narrow_to_double(DType::kF16, code);
    if (std::isnan(expected)) {
      CHECK(std::isnan(value));
    } else {
      CHECK(value == expected);
    }
  }
  for (int i = 0; i < 100000; ++i) {
    double value =
        std::ldexp(static_cast<double>(static_cast<int64_t>(random())), static_cast<int>(random() % 50) - 95);
    CHECK(narrow_from_double(DType::kF16, value) == std::bit_cast<uint16_t>(static_cast<_Float16>(value)));
  }
}

TEST_CASE("limits of the narrow floats") {
  struct Row {
    DType type;
    double value;
    uint32_t code;
  };
  const double inf = HUGE_VAL;
  const Row rows[] = {
      {DType::kF16, 65519, 0x7BFF},      {DType::kF16, 65520, 0x7C00},
      {DType::kF16, -inf, 0xFC00},       {DType::kBF16, 1.0039062500000002, 0x3F81},
      {DType::kBF16, 257, 0x4380},       {DType::kBF16, 1e39, 0x7F80},
      {DType::kF8E5M2, 1, 0x3C},         {DType::kF8E5M2, 57344, 0x7B},
      {DType::kF8E5M2, 61440, 0x7C},     {DType::kF8E4M3, 1, 0x38},
      {DType::kF8E4M3, 240, 0x77},       {DType::kF8E4M3, 300, 0x78},
      {DType::kF8E4M3FN, 1, 0x38},       {DType::kF8E4M3FN, 464, 0x7E},
      {DType::kF8E4M3FN, 465, 0x7F},     {DType::kF8E4M3FN, -inf, 0xFF},
      {DType::kF8E4M3FN, -0.0, 0x80},    {DType::kF8E4M3B11FNUZ, 1, 0x58},
      {DType::kF8E4M3B11FNUZ, 30, 0x7F}, {DType::kF8E4M3B11FNUZ, 32, 0x80},
      {DType::kF8E4M3B11FNUZ, -0.0, 0},  {DType::kF8E4M3FNUZ, 1, 0x40},
      {DType::kF8E4M3FNUZ, 240, 0x7F},   {DType::kF8E4M3FNUZ, -1e-9, 0},
      {DType::kF8E4M3FNUZ, inf, 0x80},   {DType::kF8E5M2FNUZ, 1, 0x40},
      {DType::kF8E5M2FNUZ, 57344, 0x7F}, {DType::kF8E3M4, 1, 0x30},
      {DType::kF8E3M4, 15.5, 0x6F},      {DType::kF8E3M4, 16, 0x70},
      {DType::kF4E2M1FN, 100, 7},        {DType::kF4E2M1FN, -inf, 15},
      {DType::kF4E2M1FN, NAN, 8},        {DType::kF4E2M1FN, 0.75, 2},
      {DType::kF4E2M1FN, -0.0, 8},       {DType::kF8E8M0FNU, 1, 0x7F},
      {DType::kF8E8M0FNU, 3, 0x81},      {DType::kF8E8M0FNU, 2.9, 0x80},
      {DType::kF8E8M0FNU, 6, 0x82},      {DType::kF8E8M0FNU, 0, 0xFF},
      {DType::kF8E8M0FNU, -1, 0xFF},     {DType::kF8E8M0FNU, 1e-300, 0},
      {DType::kF8E8M0FNU, 1e300, 0xFF},
  };
  for (const Row& row : rows) {
    CAPTURE(dtype_name(row.type));
    CAPTURE(row.value);
    CHECK(narrow_from_double(row.type, row.value) == row.code);
  }
}

TEST_CASE("elements by double, int, complex") {
  Literal s4(Shape::array(DType::kS4, {3}));
  s4.set_int(0, -8);
  s4.set_int(1, 9);  // wraps
  CHECK(s4.as_int(0) == -8);
  CHECK(s4.as_int(1) == -7);
  CHECK(static_cast<uint8_t>(s4.bytes()[1]) == 0xF9);  // sign-extended in its byte
  Literal u64(Shape::scalar(DType::kU64));
  u64.set_double(0, 0x1p63);
  CHECK(u64.data<uint64_t>()[0] == uint64_t{1} << 63);
  CHECK(u64.as_double(0) == 0x1p63);
  Literal pred(Shape::scalar(DType::kPred));
  pred.set_double(0, -0.5);
  CHECK(pred.as_int(0) == 1);
  Literal c64(Shape::array(DType::kC64, {2}));
  c64.set_complex(1, {1.5, -2});
  CHECK(c64.as_complex(1) == std::complex<double>(1.5, -2));
  CHECK(c64.as_complex(0) == 0.0);
  Literal f(Shape::scalar(DType::kF32));
  f.set_double(0, -1e30);
  CHECK(f.as_int(0) == std::numeric_limits<int64_t>::min());
  CHECK(Literal::scalar<int32_t>(DType::kS32, 7).as_int(0) == 7);
}

TEST_CASE("splat and identical") {
  Literal a(Shape::array(DType::kF32, {2, 2}));
  CHECK(a.is_splat());
  Literal b = a;
  CHECK(a.identical(b));
  b.set_double(3, -0.0);
  CHECK(!b.is_splat());
  CHECK(!a.identical(b));
  CHECK(!Literal(Shape::array(DType::kF32, {0})).is_splat());
  CHECK(Literal::tuple({a, b}).identical(Literal::tuple({a, b})));
  CHECK(!Literal::tuple({a, b}).identical(Literal::tuple({b, a})));
}

TEST_CASE("a literal too large is an error") {
  CHECK_THROWS_AS(Literal(Shape::array(DType::kF64, {int64_t{1} << 40, int64_t{1} << 40})), Error);
  CHECK_THROWS_AS(Literal(Shape::array(DType::kF64, {int64_t{1} << 58})), Error);
}

TEST_CASE("text gives back the bits") {
  std::mt19937_64 random(2);
  for (DType type :
       {DType::kPred, DType::kS8, DType::kU16, DType::kS64, DType::kU64, DType::kF16, DType::kBF16, DType::kF32,
        DType::kF64, DType::kC64, DType::kC128, DType::kF8E5M2, DType::kF8E4M3, DType::kF8E4M3FN, DType::kF8E4M3B11FNUZ,
        DType::kF8E4M3FNUZ, DType::kF8E5M2FNUZ, DType::kF8E3M4, DType::kF8E8M0FNU}) {
    CAPTURE(dtype_name(type));
    Literal literal(Shape::array(type, {20, 5, 10}));
    for (std::byte& b : literal.bytes()) {
      b = static_cast<std::byte>(type == DType::kPred ? random() & 1 : random());
    }
    std::string text = literal_to_string(literal);
    CHECK(parse_literal(literal.shape(), text).identical(literal));
  }
}

TEST_CASE("forms of literals") {
  auto reprint = [](std::string_view shape, std::string_view text) {
    return literal_to_string(parse_literal(Shape::parse(shape), text));
  };
  CHECK(reprint("f32[]", "1.") == "1");
  CHECK(reprint("f32[]", ".5") == "0.5");
  CHECK(reprint("f32[]", "-2.5E+7") == "-2.5e+07");
  CHECK(reprint("f32[]", "-0") == "-0");
  CHECK(reprint("s32[]", "-0") == "0");
  CHECK(reprint("f32[]", "1e-60") == "0");
  CHECK(reprint("pred[3]", "{false, 7, true}") == "{0, 1, 1}");
  CHECK(reprint("pred[]", "2") == "true");
  CHECK(reprint("c64[2]", "{1, (nan,-inf)}") == "{(1, 0), (nan, -inf)}");
  CHECK(reprint("f8e4m3fn[]", "inf") == "nan");
  CHECK(reprint("f16[]", "65519") == "65504");
  CHECK(reprint("f32[2,1]", "{/*i0=0*/{1},\n{2} // end\n}") == "{ { 1 }, { 2 } }");
  CHECK(reprint("(f32[],(s8[2]))", "(1,({1,2}))") == "(1, ({1, 2}))");
  CHECK(reprint("f32[0]", "{}") == "{}");
  CHECK_THROWS_AS(reprint("f32[]", "1 2"), Error);
  // Text is in logical order whatever the layout.
  CHECK(parse_literal(Shape::parse("s32[2,3]{0,1}"), "{{1,2,3},{4,5,6}}").as_int(1) == 2);
}

TEST_CASE("a million values are read in a fraction of a second") {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  Literal literal(Shape::array(DType::kF32, {1000, 1000}));
  for (float& f : literal.data<float>()) f = normal(random);
  std::string text = literal_to_string(literal);
  auto start = std::chrono::steady_clock::now();
  Literal back = parse_literal(literal.shape(), text);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(back.identical(literal));
  MESSAGE((text.size() / 1000) << " kB in " << (seconds.count() * 1e3) << " ms");
  CHECK(seconds.count() < 20);  // for sanitizers and busy machines
}

}  // namespace
}  // namespace hlojit

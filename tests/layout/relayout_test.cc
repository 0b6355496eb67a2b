// Conversions between all layouts of equal sizes, packed elements included.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "layout/index.h"
#include "tests/layout/many_layouts.h"

namespace hlojit {
namespace {

// Every element's row-major number, modulo what fits, in the given shape; padding is `fill`.
std::vector<unsigned char> numbered(const Shape& shape, unsigned char fill) {
  int64_t bits = element_bits(shape), prefix = shape.layout.metadata_prefix_bytes;
  std::vector<unsigned char> out(static_cast<size_t>(physical_size(shape)), fill);
  int64_t n = 0;
  for_each_index(shape.dims, [&](std::span<const int64_t> i) {
    int64_t at = linear_index(shape, i);
    uint64_t value = static_cast<uint64_t>(n++) * 0x9e3779b97f4a7c15u;
    if (bits < 8) {
      unsigned mask = (1u << bits) - 1, shift = static_cast<unsigned>(at * bits % 8);
      unsigned char& byte = out[static_cast<size_t>(prefix + at * bits / 8)];
      byte = static_cast<unsigned char>((byte & ~(mask << shift)) | ((value & mask) << shift));
    } else {
      unsigned char bytes[16] = {};
      std::memcpy(bytes, &value, 8);
      std::memcpy(&out[static_cast<size_t>(prefix + at * bits / 8)], bytes, bits / 8);
    }
  });
  return out;
}

void check_conversion(const Shape& from, const Shape& to) {
  CAPTURE(from.to_string());
  CAPTURE(to.to_string());
  std::vector<unsigned char> src = numbered(from, 0xee);
  std::vector<unsigned char> dst(static_cast<size_t>(physical_size(to)), 0xdd);
  relayout(from, src.data(), to, dst.data());
  CHECK(dst == numbered(to, 0));
}

// ROWS: 25
TEST_CASE("all pairs of layouts") {
  std::vector<Shape> all = many_layouts();
  for (Shape from : all) {
    if (from.layout.element_size_in_bits != 0) continue;
    for (Shape to : all) {
      if (to.layout.element_size_in_bits != 0 || !same_dimensions(from, to)) continue;
      for (DType type : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64, DType::kC128}) {
        from.type = to.type = type;
        check_conversion(from, to);
      }
    }
    Shape dense = Shape::array(from.type, from.dims);
    check_conversion(from, dense);
    check_conversion(dense, from);
  }
}

TEST_CASE("dimensions side by side in both") {
  for (const char* layout : {"[3,4,5]{2,0,1}", "[3,4,8]{2,0,1}", "[3,40,2]{2,0,1}", "[3,4,2,2]{3,2,0,1}",
                             "[2,3,4,5]{3,1,2,0}", "[3,4,1]{2,0,1}", "[3,4,16]{2,0,1:T(8)}", "[3,4,5]{2,1,0:M(8)}"}) {
    for (const char* type : {"u8", "bf16", "f32", "c128"}) {
      const Shape shape = Shape::parse(std::string(type) + layout), dense = Shape::array(shape.type, shape.dims);
      check_conversion(shape, dense);
      check_conversion(dense, shape);
    }
  }
}

TEST_CASE("blocks larger than one, with and without runs") {
  for (const char* text :
       {"f32[70,90]{1,0}", "f32[70,90]{0,1}", "f32[70,90]{1,0:T(8,128)}", "f32[70,90]{0,1:T(8,128)}",
        "f32[70,90]{1,0:T(8,128)(2,1)}", "f32[70,90]{1,0:T(*,64)}", "f32[70,90]{1,0:L(4096)M(24)}"}) {
    for (const char* other : {"f32[70,90]{1,0}", "f32[70,90]{0,1}", "f32[70,90]{1,0:T(8,128)(2,1)}"}) {
      check_conversion(Shape::parse(text), Shape::parse(other));
      check_conversion(Shape::parse(other), Shape::parse(text));
    }
  }
}

TEST_CASE("tiles with several rows in each column") {
  for (const char* type : {"u8", "bf16", "f32", "f64"}) {
    for (const char* layout :
         {"[70,300]{1,0:T(8,128)(2,1)}", "[70,300]{1,0:T(8,128)(4,1)}", "[300,71]{0,1:T(32,128)(4,1)}",
          "[3,37,130]{2,0,1:T(16,128)(8,1)}", "[37,9]{1,0:T(8,128)(2,1)}", "[1,300]{1,0:T(8,128)(4,1)}"}) {
      const Shape shape = Shape::parse(std::string(type) + layout);
      for (std::vector<int> order : {std::vector<int>{2, 1, 0}, std::vector<int>{0, 1, 2}, std::vector<int>{1, 0, 2}}) {
        std::erase_if(order, [&](int d) { return d >= static_cast<int>(shape.rank()); });
        Shape dense = Shape::array(shape.type, shape.dims);
        dense.layout.minor_to_major.assign(order.begin(), order.end());
        check_conversion(shape, dense);
        check_conversion(dense, shape);
      }
    }
  }
}

TEST_CASE("packed elements") {
  for (const char* text :
       {"u4[3,3]{1,0:E(4)}", "u4[3,3]{0,1:E(4)}", "u4[3,3]{1,0:T(2,2)E(4)}", "u4[3,3]{1,0:T(2,2)L(32)E(4)}"}) {
    for (const char* other : {"u4[3,3]{1,0:E(4)}", "u4[3,3]{0,1:T(2,2)(2,1)E(4)}"}) {
      check_conversion(Shape::parse(text), Shape::parse(other));
    }
  }
  // Low bits first; unpacked signed elements are sign-extended, unsigned ones are not.
  const unsigned char packed[2] = {0x21, 0x0f};
  signed char bytes[3];
  relayout(Shape::parse("s4[3]{0:E(4)}"), packed, Shape::parse("s4[3]"), bytes);
  CHECK(bytes[0] == 1);
  CHECK(bytes[1] == 2);
  CHECK(bytes[2] == -1);
  relayout(Shape::parse("u4[3]{0:E(4)}"), packed, Shape::parse("u4[3]"), bytes);
  CHECK(bytes[2] == 15);
  unsigned char again[2];
  const signed char values[3] = {1, 2, -1};
  relayout(Shape::parse("s4[3]"), values, Shape::parse("s4[3]{0:E(4)}"), again);
  CHECK(std::memcmp(packed, again, 2) == 0);
  // Elements wider than their type: the low bytes hold the value.
  const unsigned char narrow[2] = {7, 9};
  unsigned char wide[4];
  relayout(Shape::parse("u8[2]"), narrow, Shape::parse("u8[2]{0:E(16)}"), wide);
  CHECK(std::vector<unsigned char>(wide, wide + 4) == std::vector<unsigned char>{7, 0, 9, 0});
}

TEST_CASE("different arrays are refused") {
  float x[6] = {};
  CHECK_THROWS_AS(relayout(Shape::parse("f32[2,3]"), x, Shape::parse("f32[3,2]"), x), Error);
  CHECK_THROWS_AS(relayout(Shape::parse("f32[2,3]"), x, Shape::parse("s32[2,3]"), x), Error);
  CHECK_THROWS_AS(relayout(Shape::token(), x, Shape::token(), x), Error);
}

}  // namespace
}  // namespace hlojit

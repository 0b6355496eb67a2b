// The vectors of the layout page, and the formula against its inverse over many layouts.
#include "layout/index.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/layout/many_layouts.h"

namespace hlojit {
namespace {

int64_t linear(const char* shape, std::vector<int64_t> index) { return linear_index(Shape::parse(shape), index); }

std::vector<int64_t> all_positions(const char* text) {
  Shape shape = Shape::parse(text);
  std::vector<int64_t> out;
  for_each_index(shape.dims, [&](std::span<const int64_t> i) { out.push_back(linear_index(shape, i)); });
  return out;
}

// ROWS: 17-20, 28
TEST_CASE("untiled: minor_to_major decides") {
  CHECK(all_positions("f32[2,3]{1,0}") == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(all_positions("f32[2,3]{0,1}") == std::vector<int64_t>{0, 2, 4, 1, 3, 5});
  CHECK(linear("f32[2,3]{1,0}", {1, 2}) == 5);
  CHECK(linear("f32[2,3]{0,1}", {1, 2}) == 5);
  CHECK(linear("f32[2,3]{1,0}", {0, 1}) == 1);
  CHECK(linear("f32[2,3]{0,1}", {0, 1}) == 2);
  CHECK(linear("bf16[8,1,1280,16384]{3,2,0,1}", {3, 0, 7, 11}) == (3 * 1280 + 7) * 16384 + 11);
  CHECK(linear("f32[]", {}) == 0);
}

// ROWS: 20, 26, 29, 40, 41
TEST_CASE("one tile") {
  CHECK(all_positions("f32[3,5]{1,0:T(2,2)}") ==
        std::vector<int64_t>{0, 1, 4, 5, 8, 2, 3, 6, 7, 10, 12, 13, 16, 17, 20});
  CHECK(linear("f32[3,5]{1,0:T(2,2)}", {2, 3}) == 17);
  CHECK(linear("f32[10,130]{1,0:T(8,128)}", {0, 128}) == 1024);
  CHECK(linear("f32[10,130]{1,0:T(8,128)}", {8, 0}) == 2048);
  CHECK(linear("f32[10,130]{1,0:T(8,128)}", {9, 129}) == 3201);
  CHECK(linear("f32[5]{0:T(4)}", {4}) == 4);
  CHECK(linear("f32[2,100]{1,0:T(2,128)}", {1, 99}) == 227);
  CHECK(linear("f32[7,1280]{1,0:T(2,128)}", {6, 1279}) == 10111);
}

// ROWS: 31
TEST_CASE("a tile of fewer or more dims than the array") {
  CHECK(linear("f32[5,3,4]{2,1,0:T(2,2)}", {1, 0, 0}) == 16);
  CHECK(linear("f32[5,3,4]{2,1,0:T(2,2)}", {0, 2, 1}) == 9);
  CHECK(linear("f32[5,3,4]{2,1,0:T(2,2)}", {4, 2, 3}) == 77);
  CHECK(linear("f32[3,5]{1,0:T(1,1,2)}", {2, 4}) == 16);
  CHECK(linear("f32[]{:T(128)}", {}) == 0);
  CHECK(physical_elements(Shape::parse("f32[]{:T(128)}")) == 128);
}

// ROWS: 34-37, 42-44
TEST_CASE("repeated tiles") {
  CHECK(all_positions("bf16[4,8]{1,0:T(2,4)(2,1)}") == std::vector<int64_t>{0,  2,  4,  6,  8,  10, 12, 14, 1,  3,  5,
                                                                            7,  9,  11, 13, 15, 16, 18, 20, 22, 24, 26,
                                                                            28, 30, 17, 19, 21, 23, 25, 27, 29, 31});
  struct Vector {
    const char* shape;
    std::vector<int64_t> index;
    int64_t position;
  };
  for (const Vector& v : std::vector<Vector>{
           {"f32[4,8]{1,0:T(2,4)(2,2,1)}", {1, 0}, 1},
           {"f32[4,8]{1,0:T(2,4)(2,2,1)}", {0, 1}, 4},
           {"f32[4,8]{1,0:T(2,4)(2,2,1)}", {0, 4}, 2},
           {"f32[4,8]{1,0:T(2,4)(2,2,1)}", {2, 5}, 22},
           {"f32[4,8]{1,0:T(2,4)(2,2,1)}", {3, 7}, 31},
           {"f32[4,8]{1,0:T(2,4)(2,2,4)}", {1, 0}, 4},
           {"f32[4,8]{1,0:T(2,4)(2,2,4)}", {0, 4}, 8},
           {"f32[4,8]{1,0:T(2,4)(2,2,4)}", {3, 7}, 31},
           {"f32[4,8]{1,0:T(2,4)(2,1,4)}", {1, 0}, 8},
           {"f32[4,8]{1,0:T(2,4)(2,1,4)}", {0, 4}, 4},
           {"f32[4,8]{1,0:T(2,4)(2,1,4)}", {3, 7}, 31},
           {"bf16[16,256]{1,0:T(8,128)(2,1)}", {1, 0}, 1},
           {"bf16[16,256]{1,0:T(8,128)(2,1)}", {0, 1}, 2},
           {"bf16[16,256]{1,0:T(8,128)(2,1)}", {2, 0}, 256},
           {"bf16[16,256]{1,0:T(8,128)(2,1)}", {7, 127}, 1023},
           {"bf16[16,256]{1,0:T(8,128)(2,1)}", {0, 128}, 1024},
           {"bf16[16,256]{1,0:T(8,128)(2,1)}", {8, 0}, 2048},
           {"bf16[16,256]{1,0:T(8,128)(2,1)}", {15, 255}, 4095},
           {"s8[32,128]{1,0:T(8,128)(4,1)}", {1, 0}, 1},
           {"s8[32,128]{1,0:T(8,128)(4,1)}", {3, 0}, 3},
           {"s8[32,128]{1,0:T(8,128)(4,1)}", {0, 1}, 4},
           {"s8[32,128]{1,0:T(8,128)(4,1)}", {4, 0}, 512},
           {"s8[32,128]{1,0:T(8,128)(4,1)}", {31, 127}, 4095},
           {"pred[64,256]{1,0:T(32,128)(32,1)E(1)}", {1, 0}, 1},
           {"pred[64,256]{1,0:T(32,128)(32,1)E(1)}", {31, 0}, 31},
           {"pred[64,256]{1,0:T(32,128)(32,1)E(1)}", {0, 1}, 32},
           {"pred[64,256]{1,0:T(32,128)(32,1)E(1)}", {0, 128}, 4096},
           {"pred[64,256]{1,0:T(32,128)(32,1)E(1)}", {32, 0}, 8192},
           {"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", {0, 0, 1, 0, 0}, 3},
           {"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", {0, 0, 0, 1, 0}, 19},
           {"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", {0, 1, 0, 0, 2}, 890},
           {"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", {1, 3, 5, 7, 9}, 9484},
           {"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", {1, 6, 7, 10, 9}, 12430},
       }) {
    CAPTURE(v.shape);
    CHECK(linear(v.shape, v.index) == v.position);
  }
}

// ROWS: 37, 38
TEST_CASE("combined dims are the tile of the merged array") {
  Shape split = Shape::parse("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}");
  Shape merged = Shape::parse("f32[112,110]{1,0:T(2,3)}");
  CHECK(physical_elements(split) == physical_elements(merged));
  for_each_index(split.dims, [&](std::span<const int64_t> i) {
    std::vector<int64_t> m = {(i[0] * 7 + i[1]) * 8 + i[2], i[3] * 10 + i[4]};
    REQUIRE(linear_index(split, i) == linear_index(merged, m));
  });
}

// ROWS: 22, 33, 45
TEST_CASE("physical sizes") {
  struct Size {
    const char* shape;
    int64_t elements, bytes;
  };
  for (const Size& s : std::vector<Size>{
           {"f32[3,5]{1,0:T(2,2)}", 24, 96},
           {"f32[3,5]{1,0:T(2,2)L(32)}", 32, 128},
           {"f32[3,5]{1,0:L(8)}", 16, 64},
           {"s4[3,3]{1,0:E(4)}", 9, 5},
           {"s4[3,3]{1,0}", 9, 9},
           {"bf16[10,130]{1,0:T(8,128)(2,1)}", 4096, 8192},
           {"pred[40,130]{1,0:T(32,128)(32,1)E(1)}", 16384, 2048},
           {"pred[64,256]{1,0:T(32,128)(32,1)E(1)}", 16384, 2048},
           {"f32[100]{0:T(128)}", 128, 512},
           {"f32[5]{0:T(4)}", 8, 32},
           {"f32[10,130]{1,0:T(8,128)}", 4096, 16384},
           {"bf16[4,8]{1,0:T(2,4)(2,1)}", 32, 64},
           {"f32[2,100]{1,0:T(2,128)}", 256, 1024},
           {"f32[7,1280]{1,0:T(2,128)}", 10240, 40960},
           {"f32[5,3,4]{2,1,0:T(2,2)}", 80, 320},
           {"f32[3,5]{1,0:T(1,1,2)}", 18, 72},
           {"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", 12432, 49728},
           {"f32[0,5]{1,0:T(2,2)}", 0, 0},
           {"f32[0]", 0, 0},
           {"f32[]", 1, 4},
           {"c128[2]{0:M(16)}", 2, 48},
       }) {
    CAPTURE(s.shape);
    Shape shape = Shape::parse(s.shape);
    CHECK(physical_elements(shape) == s.elements);
    CHECK(physical_size(shape) == s.bytes);
  }
}

TEST_CASE("a split array: one buffer holds all, one memory its largest piece") {
  Shape shape = Shape::parse("f32[10,4]{1,0:SC(0:3,4)}");
  CHECK(physical_elements(shape) == 40);
  CHECK(physical_elements_per_memory(shape) == 24);
  CHECK(physical_elements_per_memory(Shape::parse("f32[4,10]{0,1:SC(0:7)}")) == 28);
  CHECK(physical_elements_per_memory(Shape::parse("f32[3,5]{1,0:T(2,2)}")) == 24);
}

// ROWS: 21, 27, 32
TEST_CASE("every position is one element or padding") {
  for (const Shape& shape : many_layouts()) {
    CAPTURE(shape.to_string());
    std::vector<int> hits(physical_elements(shape), 0);
    for_each_index(shape.dims, [&](std::span<const int64_t> i) {
      int64_t p = linear_index(shape, i);
      REQUIRE(p >= 0);
      REQUIRE(p < static_cast<int64_t>(hits.size()));
      ++hits[p];
      REQUIRE(multi_index(shape, p) == Index(i.begin(), i.end()));
    });
    for (size_t p = 0; p < hits.size(); ++p) {
      REQUIRE(hits[p] <= 1);
      REQUIRE(multi_index(shape, static_cast<int64_t>(p)).has_value() == (hits[p] == 1));
    }
  }
}

TEST_CASE("iteration in memory order") {
  for (const Shape& shape : many_layouts()) {
    CAPTURE(shape.to_string());
    int64_t count = 0, last = -1;
    for_each_in_memory_order(shape, [&](std::span<const int64_t> i, int64_t p) {
      REQUIRE(p > last);
      REQUIRE(linear_index(shape, i) == p);
      last = p;
      ++count;
    });
    CHECK(count == shape.element_count());
  }
}

TEST_CASE("what memory has along a dim is filled up to whole tiles") {
  auto stored = [](const char* text) {
    const Shape shape = Shape::parse(text);
    std::vector<int64_t> all;
    for (size_t d = 0; d < shape.dims.size(); ++d) all.push_back(stored_extent(shape, d));
    return all;
  };
  using Sizes = std::vector<int64_t>;
  CHECK(stored("f32[3,5]{1,0}") == Sizes{3, 5});
  CHECK(stored("f32[7,3,5]{2,1,0:T(2,4)}") == Sizes{7, 4, 8});
  CHECK(stored("f32[7,3,5]{0,2,1:T(2,4)}") == Sizes{8, 3, 6});
  CHECK(stored("bf16[9,130]{1,0:T(8,128)(2,1)}") == Sizes{16, 256});
  CHECK(stored("f32[3,5]{1,0:T(*,4)}") == Sizes{3, 5});
}

TEST_CASE("out of range is an input error") {
  Shape shape = Shape::parse("f32[3,5]{1,0:T(2,2)}");
  auto kind_of = [](auto&& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.kind();
    }
    return ErrorKind::kFailed;
  };
  for (std::vector<int64_t> index : {std::vector<int64_t>{3, 0}, {0, -1}, {0}, {0, 0, 0}}) {
    CHECK(kind_of([&] { linear_index(shape, index); }) == ErrorKind::kInput);
  }
  CHECK(kind_of([&] { multi_index(shape, 24); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { multi_index(shape, -1); }) == ErrorKind::kInput);
  CHECK(multi_index(shape, 9) == std::nullopt);
}

}  // namespace
}  // namespace hlojit

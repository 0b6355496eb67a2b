// Text of shapes both ways, the rules of validation, hostile text.
#include "layout/shape.h"
#include "layout/dimension.h"

#include <doctest/doctest.h>

#include <string>

#include "layout/shape_text.h"

namespace hlojit {
namespace {

// what() of the error that parsing throws; empty if it does not.
std::string error_of(const std::string& text) {
  try {
    Shape::parse(text);
  } catch (const Error& e) {
    CHECK((e.kind() == ErrorKind::kInvalid || e.kind() == ErrorKind::kUnsupported));
    CHECK(e.diagnostics()[0].message.find('\n') == std::string::npos);
    return e.what();
  }
  return {};
}

std::string repeat(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

// ROWS: 13-15, 23
TEST_CASE("text survives a round trip") {
  for (const char* text : {
           "f32[]",
           "f32[3,5]{1,0}",
           "f32[0]{0}",
           "pred[2,3]{0,1}",
           "()",
           "token[]",
           "opaque[]",
           "(f32[2]{0}, (s32[], pred[]), ())",
           "f32[<=8,3]{1,0}",
           "f32[]{:T(128)}",
           "bf16[8,16]{1,0:T(8,128)(2,1)L(1024)E(16)S(1)M(8)}",
           "f32[3,5]{1,0:T(2,2)}",
           "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
           "s4[8]{0:E(4)}",
           "f32[8]{0:S(5)}",
           "f32[10,4]{1,0:SC(0:3,4)(1:2)}",
           "f8e4m3b11fnuz[2]{0}",
           "c128[1]{0}",
           "u1[3]{0}",
           "f32[2,3]{1,0:L(8)M(16)}",
       }) {
    CAPTURE(text);
    CHECK(Shape::parse(text).to_string() == text);
  }
}

// ROWS: 11, 16
TEST_CASE("defaults are filled in, blanks and comments skipped") {
  CHECK(Shape::parse("f32[3,5]").to_string() == "f32[3,5]{1,0}");
  CHECK(Shape::parse("f32[3,5]") == Shape::array(DType::kF32, {3, 5}));
  CHECK(Shape::parse(" f32[ 3 , 5 ] { 1 , 0 : T ( 2 , 2 ) } ").to_string() == "f32[3,5]{1,0:T(2,2)}");
  CHECK(Shape::parse("(f32[2], /*index=1*/ s32[] // last\n)").to_string() == "(f32[2]{0}, s32[])");
  CHECK(Shape::parse("f32[3,5]{1,0:D(D,C+,S~,H+~)T(2,2)}").to_string() == "f32[3,5]{1,0:T(2,2)}");
  CHECK(Shape::parse("f32[3,5]{1,0:T(2,2)}").to_string(false) == "f32[3,5]");
  CHECK(Shape::parse("f32[3,5]{0,1}").layout.is_default() == false);
  CHECK(Shape::parse("f32[<=8]").has_dynamic_dims());
}

TEST_CASE("a brace after a shape is a layout only before an integer or a colon") {
  std::string text = "f32[42] { ROOT x }";
  size_t pos = 0;
  CHECK(parse_shape_at(text, pos) == Shape::parse("f32[42]"));
  CHECK(pos == 7);
  text = "x f32[]{:S(1)} y";
  pos = 2;
  CHECK(parse_shape_at(text, pos).layout.memory_space == 1);
  CHECK(text.substr(pos) == " y");
}

TEST_CASE("without validation the sizes and rules are left to the verifier") {
  for (const char* text : {"f32[?,3]{1,0}", "f32[2,3]{0,0}", "f32[2,3]{7,0}", "f32[2]{0:#(u32)*(u8)}",
                           "f32[9223372036854775807,3]{1,0}"}) {
    CAPTURE(text);
    size_t pos = 0;
    CHECK(parse_shape_at(text, pos).to_string() == text);
    CHECK(!error_of(text).empty());
  }
}

// ROWS: 15
TEST_CASE("each rule has its message and its place") {
  struct Case {
    std::string text, error;
  };
  for (const Case& c : std::vector<Case>{
           {"", "1:1: expected a shape"},
           {"F32[2]", "1:1: unknown element type 'F32'"},
           {"f33[2]", "1:1: unknown element type 'f33'"},
           {"tuple[2]", "1:1: unknown element type 'tuple'"},
           {"f32", "1:4: expected '[' after the element type"},
           {"f32[2", "1:6: expected ']' or ',' after a dimension size"},
           {"f32[2,]", "1:7: expected a dimension size"},
           {"f32[-1]", "1:5: dimension size -1 is negative"},
           {"f32[1.5]", "1:6: expected ']' or ',' after a dimension size"},
           {"f32[99999999999999999999]", "1:5: a dimension size does not fit in 64 bits"},
           {"f32[2]]", "1:7: unexpected text after the shape"},
           {"f32[]{}", "1:6: unexpected text after the shape"},
           {"f32[3,5]{0,1,2}", "1:9: layout has 3 entries in minor_to_major but the array has rank 2"},
           {"f32[3,5]{:T(2)}", "1:9: layout has 0 entries in minor_to_major but the array has rank 2"},
           {"f32[3,5]{0,0}", "1:9: minor_to_major names dimension 0 twice"},
           {"f32[3,5]{2,0}", "1:9: minor_to_major names dimension 2 but the array has rank 2"},
           {"f32[3,5]{-1,0}", "1:9: minor_to_major names dimension -1 but the array has rank 2"},
           {"f32[3,5]{1,0:T(0,2)}", "1:16: tile dimension 0 is not positive"},
           {"f32[3,5]{1,0:T(-1)}", "1:16: tile dimension -1 is not positive"},
           {"f32[3,5]{1,0:T()}", "1:16: a tile has no dimensions"},
           {"f32[3,5]{1,0:T(2,*)}", "1:9: the last dimension of a tile is '*', which has nothing to combine into"},
           {"f32[3,5]{1,0:L(0)}", "1:16: the tail padding alignment must be positive"},
           {"f32[3,5]{1,0:E(-4)}", "1:16: the element size in bits is negative"},
           {"f32[3,5]{1,0:E(16)}", "1:9: E(16) cannot hold the 32 bits of f32"},
           {"u2[3]{0:E(3)}", "1:6: E(3) is neither 1, 2, 4 nor whole bytes"},
           {"f32[3,5]{1,0:S(-1)}", "1:9: memory space S(-1) is negative"},
           {"f32[3,5]{1,0:S(1)T(8,128)}",
            "1:18: layout attribute T is out of order or repeated (the order is D T L # * E S SC P "
            "M)"},
           {"f32[3,5]{1,0:S(1)S(1)}",
            "1:18: layout attribute S is out of order or repeated (the order is D T L # * E S SC P "
            "M)"},
           {"f32[3,5]{1,0:P(f32[2])}", "1:14: P(...) belongs to sparse arrays, which do not exist any more"},
           {"f32[3]{0:#(u32)}", "1:7: #(...) and *(...) belong to sparse arrays, which do not exist any more"},
           {"f32[3]{0:#(f32)}", "1:12: expected an unsigned integer type"},
           {"f32[3]{0:Q(1)}", "1:10: expected a layout attribute (D T L # * E S SC P M) or '}'"},
           {"f32[3]{0:SC(1:2)}", "1:7: SC splits physical dimension 1 but the array has rank 1"},
           {"f32[3]{0:SC(0:2,1)}", "1:7: SC indices must be positive and ascend, but 1 follows 2"},
           {"(f32[2], f32[3]){0}", "1:17: a tuple has no layout of its own: give one to each element"},
           {"token[2]", "1:7: token cannot have dimensions"},
           {"token[]{:S(1)}", "1:8: only an array can have a layout"},
           {"(f32[2] s32[])", "1:9: expected ')' or ',' after a tuple element"},
           {"f32[?]", "1:1: a dimension is unbounded ('?'): every dimension needs a size or a bound"},
           {"f32[9223372036854775807]", "1:1: the size of the array overflows 64 bits"},
           {"f32[4294967296,4294967296]", "1:1: the size of the array overflows 64 bits"},
           {"s8[9223372036854775807]", "1:1: the size of the array overflows 64 bits"},
           {"s8[4294967296]{0:T(8589934592)(2,4611686018427387904)}",
            "1:1: the size of the array's tiled storage overflows 64 bits"},
           {"f32[3]{0:L(9223372036854775807)}", "1:1: the size of the array's tiled storage overflows 64 bits"},
           {"f32[2] /* x", "1:8: unterminated comment"},
           {"(f32[2],\n  f32[x])", "2:7: expected a dimension size"},
       }) {
    CAPTURE(c.text);
    CHECK(error_of(c.text) == c.error);
  }
}

TEST_CASE("a size of zero stops no overflow check from ending well") {
  CHECK(Shape::parse("f32[0,4294967296,4294967296]").element_count() == 0);
  CHECK(Shape::parse("f32[0,4611686018427387904,4]{2,1,0:T(*,*,8)}").element_count() == 0);
}

TEST_CASE("buffer shapes are refused as unsupported") {
  CHECK_THROWS_WITH(Shape::parse("b(f32[2]{0})"), "1:1: buffer shapes b(...) are not supported");
}

TEST_CASE("hostile text gives errors") {
  CHECK(error_of(repeat("(", 100000)).find("nest deeper than 500 levels") != std::string::npos);
  CHECK(error_of(repeat("(", 400) + repeat(")", 400)).empty());
  CHECK(error_of("f32[2]{0:T" + repeat("(", 100000)) != "");
  CHECK(error_of("f32[2]{0:T" + repeat("(1)", 50000) + "}").empty());
  CHECK(error_of("f32[2]{0:T(" + repeat("*,", 50000) + "2)}").empty());
  CHECK(error_of("f32[" + repeat("2,", 50000) + "2]").find("overflows") != std::string::npos);
  CHECK(error_of("f32[2]{0:T" + repeat("(9,9)", 50000) + "}").empty());
  CHECK(error_of(std::string("f32[2]\0", 7)) == "1:7: unexpected text after the shape");
}

TEST_CASE("every prefix and every changed byte of a shape is read or refused") {
  std::string text = "(bf16[8,<=16]{1,0:D(D,S+)T(8,128)(*,1)L(1024)E(16)S(1)SC(0:1)M(8)}, token[])";
  for (size_t i = 0; i <= text.size(); ++i) {
    error_of(text.substr(0, i));
    for (char c : std::string("0-9(){}[],:*#TLESM?<=/\n\0 ", 25)) {
      std::string changed = text;
      changed.insert(i, 1, c);
      error_of(changed);
      if (i < text.size()) changed.erase(i + 1, 1);
      error_of(changed);
    }
  }
}

TEST_CASE("levels of equality") {
  Shape a = Shape::parse("f32[2,3]{1,0}"), b = Shape::parse("f32[2,3]{0,1:T(2,2)}");
  CHECK(a != b);
  CHECK(compatible(a, b));
  CHECK(same_dimensions(a, Shape::parse("s8[2,3]")));
  CHECK_FALSE(compatible(a, Shape::parse("bf16[2,3]")));
  CHECK(compatible_ignoring_fp_precision(a, Shape::parse("bf16[2,3]")));
  CHECK_FALSE(compatible_ignoring_fp_precision(a, Shape::parse("s32[2,3]")));
  CHECK(compatible_ignoring_element_type(a, Shape::parse("s32[2,3]")));
  CHECK_FALSE(compatible(a, Shape::parse("f32[3,2]")));
  CHECK(compatible(Shape::tuple({a}), Shape::tuple({b})));
  CHECK_FALSE(compatible(Shape::tuple({a}), a));
  CHECK_FALSE(compatible(Shape::tuple({a}), Shape::tuple({})));
  CHECK(a != Shape::parse("f32[<=2,3]{1,0}"));
  CHECK(compatible(Shape::token(), Shape::token()));
}

TEST_CASE("leaves, depth first; tokens have no storage") {
  Shape shape = Shape::parse("(f32[2], (token[], s32[], ()), pred[3])");
  CHECK(leaf_count(shape) == 3);
  CHECK(leaves(shape)[1]->type == DType::kS32);
  CHECK(leaf_count(Shape::parse("f32[]")) == 1);
}

// ROWS: 10
TEST_CASE("dimensions above size 1 are the true ones") {
  CHECK(true_rank(Shape::parse("f32[1,5,1,2]")) == 2);
  CHECK(true_rank(Shape::parse("f32[]")) == 0);
  CHECK(true_rank(Shape::parse("f32[1,1]")) == 0);
}

TEST_CASE("dims are found again past those of size 1") {
  auto past = [](const char* from, const char* to) { return past_unit_dims(Shape::parse(from), Shape::parse(to)); };
  using Places = std::vector<int64_t>;
  CHECK(past("f32[1,5,3]", "f32[5,1,3,1]") == Places{-1, 0, 2});
  CHECK(past("f32[5,3]", "f32[5,3]") == Places{0, 1});
  CHECK(past("f32[5,3]", "f32[3,5]") == Places{-1, -1});
  CHECK(past("f32[5,3]", "f32[1,5]") == Places{-1, -1});
  CHECK(past("f32[5]", "f32[5,3]") == Places{-1});
  CHECK(past("f32[1]", "f32[]") == Places{-1});
}

TEST_CASE("all broken rules are listed") {
  Shape shape = Shape::array(DType::kF32, {2, 3});
  shape.layout.minor_to_major = {0, 0};
  shape.layout.tail_padding_alignment = 0;
  shape.layout.tiles = {Tile{{-1}}};
  CHECK(layout_errors(shape).size() == 3);
  CHECK_THROWS_WITH(check_shape(shape, {3, 7}), "3:7: minor_to_major names dimension 0 twice");
  Shape tuple = Shape::tuple({shape});
  CHECK(shape_errors(tuple).size() == 3);
  tuple.dims = {1};
  CHECK(shape_errors(tuple).front() == "(tuple) cannot have dimensions");
  CHECK(shape_errors(Shape{}).front() == "the shape has no valid type");
}

TEST_CASE("types: names both ways, classes, widths") {
  for (int i = 0; i < 40; ++i) {
    DType t = static_cast<DType>(i);
    if (is_array_type(t)) {
      CHECK(dtype_from_name(dtype_name(t)) == t);
      CHECK(dtype_bits(t) > 0);
    }
  }
  CHECK(dtype_from_name("token") == DType::kToken);
  CHECK(dtype_from_name("(tuple)") == std::nullopt);
  CHECK(dtype_bits(DType::kS4) == 4);
  CHECK(dtype_bytes(DType::kS4) == 1);
  CHECK(dtype_bytes(DType::kC128) == 16);
  CHECK(component_type(DType::kC64) == DType::kF32);
  CHECK(complex_of(DType::kF64) == DType::kC128);
  CHECK(complex_of(DType::kF16) == DType::kInvalid);
  CHECK(is_narrow_float(DType::kBF16));
  CHECK_FALSE(is_narrow_float(DType::kF32));
  CHECK(has_zero(DType::kF8E5M2FNUZ));
  CHECK_FALSE(has_zero(DType::kF8E8M0FNU));
}

}  // namespace
}  // namespace hlojit

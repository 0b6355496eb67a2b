// The drawing as a reader sees it, and its bounds: 100 columns, few lines, any shape.
#include <doctest/doctest.h>

#include <sstream>

#include "layout/index.h"
#include "tests/layout/many_layouts.h"

namespace hlojit {
namespace {

TEST_CASE("the first figure of the tiling documents") {
  CHECK(draw(Shape::parse("f32[3,5]{1,0:T(2,2)}"), 17) ==
        R"(f32[3,5]{1,0:T(2,2)}: 24 positions, 15 elements, 9 padding

         0    1     2    3     4    .
     +----------+----------+----------+
   0 |   0    1 |   4    5 |   8    . |
   1 |   2    3 |   6    7 |  10    . |
     +----------+----------+----------+
   2 |  12   13 |  16  [17]|  20    . |
   . |   .    . |   .    . |   .    . |
     +----------+----------+----------+

in memory (position: index, . is padding)
   0: 0,0  0,1  1,0  1,1  | 0,2  0,3  1,2  1,3  | 0,4    .  1,4    .  | 2,0  2,1    .    .
  16: 2,2 [2,3]   .    .  | 2,4    .    .    .
)");
}

void check_bounds(const std::string& text) {
  std::istringstream in(text);
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    // The first line repeats the shape, which may be of any length.
    if (lines > 0) CHECK(line.size() <= 100);
  }
  CHECK(lines < 1400);
}

TEST_CASE("every layout fits a terminal") {
  for (const Shape& shape : many_layouts()) {
    CAPTURE(shape.to_string());
    check_bounds(draw(shape));
    int64_t stored = physical_elements(shape);
    for (int64_t p : {int64_t{0}, stored / 2, stored - 1}) {
      if (p >= 0 && p < stored) {
        std::string text = draw(shape, p);
        check_bounds(text);
        CHECK(text.find('[', text.find('\n')) != std::string::npos);
      }
    }
  }
}

TEST_CASE("large arrays are cut around the element asked for") {
  Shape shape = Shape::parse("f32[3000,5000]{1,0:T(8,128)}");
  int64_t p = linear_index(shape, Index{2345, 4321});
  std::string text = draw(shape, p);
  check_bounds(text);
  CHECK(text.find("[" + std::to_string(p) + "]") != std::string::npos);
  CHECK(text.find("[2345,4321]") != std::string::npos);
  for (const char* huge :
       {"s8[4611686018427387904]{0:T(1024)}", "s8[2147483648,2147483648]{0,1}",
        "s8[1,1,1]{2,1,0:T(1000000,1000000,1000000)}", "s8[100000,100000,100000]{2,1,0:T(*,8,128)}"}) {
    CAPTURE(huge);
    Shape s = Shape::parse(huge);
    check_bounds(draw(s));
    check_bounds(draw(s, physical_elements(s) - 1));
  }
  CHECK_THROWS_AS(draw(Shape::parse("()")), Error);
  CHECK_THROWS_AS(draw(Shape::parse("f32[2]"), 2), Error);
}

}  // namespace
}  // namespace hlojit

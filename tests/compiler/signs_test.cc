// What an exponential is taken of, and cannot be above zero by its form.
#include <doctest/doctest.h>

#include "compiler/analysis/signs.h"
#include "compiler/text/parser.h"

namespace hlojit::test {
namespace {

/// Of `r`, made from two arrays of 4x4 floats and scalars.
bool nonpositive(std::string_view body) {
  auto module = parse_module(R"(
    most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
    sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ENTRY e {
      x = f32[4,4] parameter(0) y = f32[4,4] parameter(1)
      half = f32[4,4] broadcast(f32[] constant(0.5)), dimensions={}
      low = f32[4,4] broadcast(f32[] constant(-inf)), dimensions={}
      none = f32[4,4] broadcast(f32[] constant(nan)), dimensions={}
      rows = f32[4] reduce(x, f32[] constant(-inf)), dimensions={1}, to_apply=most
  )" + std::string(body) + "\n}");
  return is_nonpositive(*module->entry()->root());
}

TEST_CASE("elements less the largest of their row") {
  CHECK(nonpositive("b = f32[4,4] broadcast(rows), dimensions={0} ROOT r = f32[4,4] subtract(x, b)"));
  CHECK(nonpositive(R"(l = f32[4] broadcast(f32[] constant(3)), dimensions={} m = f32[4] maximum(l, rows)
    k = f32[4,1] reshape(m) k1 = f32[4] reshape(k) b = f32[4,4] broadcast(k1), dimensions={0}
    ROOT r = f32[4,4] subtract(x, b))"));
  CHECK(nonpositive(R"(all = f32[] reduce(x, f32[] constant(-inf)), dimensions={0,1}, to_apply=most
    b = f32[4,4] broadcast(all), dimensions={} ROOT r = f32[4,4] subtract(x, b))"));
  CHECK_FALSE(nonpositive("b = f32[4,4] broadcast(rows), dimensions={1} ROOT r = f32[4,4] subtract(x, b)"));
  CHECK_FALSE(nonpositive("b = f32[4,4] broadcast(rows), dimensions={0} ROOT r = f32[4,4] subtract(y, b)"));
  CHECK_FALSE(nonpositive("b = f32[4,4] broadcast(rows), dimensions={0} ROOT r = f32[4,4] subtract(b, x)"));
  CHECK_FALSE(nonpositive(R"(s = f32[4] reduce(x, f32[] constant(0)), dimensions={1}, to_apply=sum
    b = f32[4,4] broadcast(s), dimensions={0} ROOT r = f32[4,4] subtract(x, b))"));
  CHECK_FALSE(nonpositive(R"(l = f32[4] broadcast(f32[] constant(3)), dimensions={} m = f32[4] minimum(l, rows)
    b = f32[4,4] broadcast(m), dimensions={0} ROOT r = f32[4,4] subtract(x, b))"));
}

TEST_CASE("what is widened is the same, what is narrowed not") {
  CHECK(nonpositive(R"(n = bf16[4,4] parameter(2) w = f32[4,4] convert(n)
    m = f32[4] reduce(w, f32[] constant(-inf)), dimensions={1}, to_apply=most b = f32[4,4] broadcast(m), dimensions={0}
    w2 = f32[4,4] convert(n) ROOT r = f32[4,4] subtract(w2, b))"));
  CHECK_FALSE(nonpositive(R"(n = bf16[4,4] convert(x) w = f32[4,4] convert(n)
    m = f32[4] reduce(w, f32[] constant(-inf)), dimensions={1}, to_apply=most b = f32[4,4] broadcast(m), dimensions={0}
    ROOT r = f32[4,4] subtract(x, b))"));
}

TEST_CASE("signs of products, bounds and choices") {
  CHECK(nonpositive("s = f32[4,4] multiply(x, x) ROOT r = f32[4,4] negate(s)"));
  CHECK(nonpositive("s = f32[4,4] multiply(x, x) n = f32[4,4] negate(half) ROOT r = f32[4,4] multiply(s, n)"));
  CHECK(nonpositive(
      "a = f32[4,4] abs(x) n = f32[4,4] negate(a) ROOT r = f32[4,4] select(pred[4,4] parameter(2), n, low)"));
  CHECK(nonpositive("z = f32[4,4] subtract(low, half) ROOT r = f32[4,4] minimum(x, z)"));
  CHECK_FALSE(nonpositive("s = f32[4,4] multiply(x, y) ROOT r = f32[4,4] negate(s)"));
  CHECK_FALSE(nonpositive("ROOT r = f32[4,4] minimum(x, half)"));
  CHECK_FALSE(nonpositive("ROOT r = f32[4,4] minimum(x, none)"));
  CHECK_FALSE(nonpositive("a = f32[4,4] abs(x) n = f32[4,4] negate(a) ROOT r = f32[4,4] add(n, half)"));
  CHECK_FALSE(nonpositive("a = f32[4,4] abs(x) n = f32[4,4] negate(a) ROOT r = f32[4,4] maximum(n, x)"));
}

TEST_CASE("quotients, whose divisor may be zero") {
  CHECK(nonpositive(R"(s = f32[4,4] multiply(x, x) n = f32[4,4] negate(s) t = f32[4,4] multiply(y, y)
    d = f32[4,4] multiply(t, half) ROOT r = f32[4,4] divide(n, d))"));
  CHECK(nonpositive("a = f32[4,4] abs(x) n = f32[4,4] negate(a) ROOT r = f32[4,4] divide(n, half)"));
  CHECK_FALSE(nonpositive(R"(z = f32[4,4] subtract(low, half) d = f32[4,4] minimum(y, z) a = f32[4,4] abs(x)
    ROOT r = f32[4,4] divide(a, d))"));
  CHECK_FALSE(nonpositive(R"(a = f32[4,4] abs(x) n = f32[4,4] negate(a) q = f32[4,4] sqrt(y)
    ROOT r = f32[4,4] divide(n, q))"));
  CHECK_FALSE(nonpositive(R"(a = f32[4,4] abs(x) z = f32[4,4] broadcast(f32[] constant(-0)), dimensions={}
    n = f32[4,4] negate(a) ROOT r = f32[4,4] divide(n, z))"));
}

}  // namespace
}  // namespace hlojit::test

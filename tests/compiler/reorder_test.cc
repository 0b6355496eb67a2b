// Which selections may take their elements in any order, and what may be combined from the last element.
#include <limits>

#include <doctest/doctest.h>

#include "compiler/analysis/reorder.h"
#include "compiler/text/parser.h"

namespace hlojit::test {
namespace {

/// Of a reduction of values and their numbers by the tuple of `v` and `k`, made from (a, i) and (b, j).
Reorder order(std::string_view body, std::string_view numbers = "iota(), iota_dimension=1",
              std::string_view dims = "1") {
  auto module = parse_module(
      "f { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)\n" +
      std::string(body) + "\nROOT t = (f32[], s32[]) tuple(v, k) }\n" +
      "ENTRY e { p = f32[4,8] parameter(0) w = s32[4,1,8] iota(), iota_dimension=2 n = s32[4,8] " +
      std::string(numbers) + " x = f32[] constant(0) y = s32[] constant(0)\n" +
      "ROOT r = (f32[4], s32[4]) reduce(p, n, x, y), dimensions={" + std::string(dims) + "}, to_apply=f }\n");
  return selection_order(*module->entry()->root());
}

TEST_CASE("selections that may be reordered") {
  Reorder extrema = order("v = f32[] maximum(a, b) k = s32[] minimum(i, j)");
  CHECK(extrema.allowed);
  CHECK(extrema.position == -1);
  // JAX: the first NaN, else the first of the largest.
  constexpr std::string_view kArgmax = R"(
    gt = pred[] compare(a, b), direction=GT ne = pred[] compare(a, a), direction=NE pick = pred[] or(gt, ne)
    v = f32[] select(pick, a, b) eq = pred[] compare(a, b), direction=EQ lt = pred[] compare(i, j), direction=LT
    tie = pred[] and(eq, lt) first = pred[] or(pick, tie) k = s32[] select(first, i, j))";
  Reorder argmax = order(kArgmax);
  CHECK(argmax.allowed);
  CHECK(argmax.position == 1);
  CHECK(!order(kArgmax, "parameter(1)").allowed);
  CHECK(!order(kArgmax, "iota(), iota_dimension=0").allowed);
  CHECK(order(kArgmax, "reshape(w)").position == 1);
  CHECK(!order(kArgmax, "reshape(w)", "0").allowed);
}

TEST_CASE("elements met in order have greater numbers, unless the first one's matters") {
  auto by = [](std::string_view choice) {
    return std::string("lt = pred[] compare(i, j), direction=LT eq = pred[] compare(a, b), direction=EQ ") +
           "gt = pred[] compare(a, b), direction=GT tie = pred[] and(eq, lt) first = pred[] or(gt, tie) " +
           "k = s32[] select(first, i, j) v = f32[] select(" + std::string(choice) + ", a, b)";
  };
  CHECK(order(by("first")).numbers == 1);
  CHECK(order(by("first"), "reshape(w)").numbers == 1);
  CHECK(order(by("first"), "parameter(1)").numbers == -1);
  CHECK(order(by("lt")).numbers == -1);
}

TEST_CASE("selections that may not") {
  CHECK(!order("never = pred[] constant(false) v = f32[] select(never, a, b) k = s32[] minimum(i, j)").allowed);
  CHECK(!order("g = pred[] compare(a, b), direction=GT v = f32[] select(g, a, b) k = s32[] maximum(i, j)").allowed);
  CHECK(!order("v = f32[] maximum(a, b) k = s32[] and(i, j)").allowed);
  CHECK(!order("v = f32[] maximum(a, b) m = s32[] constant(1) c = pred[] compare(i, m), direction=LT k = s32[] "
               "select(c, i, j)")
             .allowed);
}

/// A computation that makes r from a and b.
std::unique_ptr<Module> made(std::string_view body) {
  return parse_module("f { a = f32[] parameter(0) b = f32[] parameter(1)\n" + std::string(body) +
                      "\n}\nENTRY e { p = f32[8] parameter(0) x = f32[] constant(0)\n"
                      "ROOT r = f32[8] reduce-window(p, x), window={size=8 pad=0_7}, to_apply=f }\n");
}

bool backwards(std::string_view body) {
  auto module = made(body);
  return regroups(*module->entry()->root()->to_apply());
}

// JAX: log(exp(a) + exp(b)).
constexpr std::string_view kLogOfSum = R"(d = f32[] subtract(a, b) no = pred[] compare(d, d), direction=NE
    s = f32[] add(a, b) m = f32[] maximum(a, b) z = f32[] abs(d) n = f32[] negate(z) x = f32[] exponential(n)
    l = f32[] log-plus-one(x) t = f32[] add(m, l) ROOT r = f32[] select(no, s, t))";

TEST_CASE("what may be combined from the last element") {
  CHECK(backwards("ROOT r = f32[] maximum(b, a)"));
  CHECK(backwards("s = f32[] multiply(a, a) t = f32[] multiply(b, b) u = f32[] add(s, t) ROOT r = f32[] sqrt(u)"));
  CHECK(backwards(kLogOfSum));
  CHECK(!backwards("ROOT r = f32[] subtract(a, b)"));
  CHECK(!backwards("s = f32[] add(a, b) ROOT r = f32[] abs(s)"));
}

TEST_CASE("numbers that change nothing") {
  auto neutral = [](std::string_view body, double number) {
    auto module = made(body);
    Literal literal(Shape::scalar(DType::kF32));
    literal.set_double(0, number);
    return is_neutral(literal, *module->entry()->root()->to_apply());
  };
  CHECK(neutral(kLogOfSum, -std::numeric_limits<double>::infinity()));
  CHECK(!neutral(kLogOfSum, 0));
  CHECK(!neutral(kLogOfSum, std::numeric_limits<double>::quiet_NaN()));
  CHECK(neutral("ROOT r = f32[] add(a, b)", 0));
  CHECK(!neutral("s = f32[] multiply(a, a) t = f32[] multiply(b, b) u = f32[] add(s, t) ROOT r = f32[] sqrt(u)", 0));
}

TEST_CASE("what a few numbers do not tell") {
  CHECK(!backwards("n = f32[] constant(-1) d = pred[] compare(b, n), direction=NE ROOT r = f32[] convert(d)"));
  CHECK(!backwards("n = f32[] constant(-50) s = f32[] add(a, b) ROOT r = f32[] maximum(s, n)"));
  CHECK(!backwards("e = f32[] exponential(b) ROOT r = f32[] sign(e)"));
}

}  // namespace
}  // namespace hlojit::test

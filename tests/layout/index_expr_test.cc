// The simplifier against plain evaluation: identities it must find, and random expressions whose
// value must not change.
#include "layout/index_expr.h"

#include <doctest/doctest.h>

#include <random>

#include "layout/index.h"
#include "layout/tiling.h"
#include "tests/layout/many_layouts.h"

namespace hlojit {
namespace {

IndexExpr v(int id, int64_t extent) { return IndexExpr::var(id, extent); }

TEST_CASE("digits make division vanish") {
  IndexExpr k = v(0, 4), j = v(1, 8);
  IndexExpr d = k * 8 + j;
  CHECK(floordiv(d, 8) == k);
  CHECK(mod(d, 8) == j);
  CHECK(floordiv(d + 8, 8) == k + 1);
  CHECK(mod(d + 16, 8) == j);
  CHECK(floordiv(k * 8 + v(1, 4) + 4, 8) == k);               // a run of a period
  CHECK(floordiv(IndexExpr(31) - d, 8) == IndexExpr(3) - k);  // reversed
  CHECK(mod(IndexExpr(31) - d, 8) == IndexExpr(7) - j);
  CHECK(floordiv(d * 2, 8) == k * 2 + floordiv(j, 4));
  CHECK(floordiv(d, 4) == k * 2 + floordiv(j, 4));
  CHECK(floordiv(k * 24 + v(1, 4) * 2 + 8, 12) == k * 2 + floordiv(v(1, 4) + 4, 6));
}

TEST_CASE("common divisors are taken out") {
  IndexExpr a = v(0, 8), b = v(1, 4);
  CHECK(floordiv(a * 4 + b, 8) == floordiv(a, 2));
  CHECK(mod(a * 4 + b, 8) == mod(a, 2) * 4 + b);
  CHECK(floordiv(a * 4 + 2, 8) == floordiv(a, 2));
  CHECK(floordiv(a * 6 + b * 2 + v(2, 2), 12) == floordiv(a * 3 + b, 6));
}

TEST_CASE("two values are always affine") {
  IndexExpr k = v(0, 5), a = v(1, 2), b = v(2, 4);
  CHECK(floordiv(k * 24 + a * 4 + b + 8, 12) == k * 2 + a);
  CHECK(floordiv(k * 8 + a * 4 + b + 4, 8) == k + a);
  CHECK(floordiv(IndexExpr(59) - k * 8 - a * 4 - b, 8) == IndexExpr(7) - k - a);
  CHECK(mod(a * 5 + 1, 3).is_affine());
}

// A vector of 64 across the border of rows of 96, which are three lines of 32: all digits are told by the lines.
TEST_CASE("a single step") {
  IndexExpr k = v(0, 5), d = v(1, 64), line = floordiv(d, 32);
  CHECK(floordiv(d + 64, 96) == line);
  CHECK(floordiv(k * 96 + d + 64, 96) == k + line);
  CHECK(floordiv(d - 32, 96) == line - 1);
  CHECK(floordiv(d + 48, 96) != line);  // it is another place's step
  CHECK(floordiv(v(1, 65) + 64, 96) != floordiv(v(1, 65), 32));
  CHECK(floordiv(d + 64, 96) * 96 + mod(floordiv(d + 64, 32), 3) * 32 + mod(d, 32) == d + 64);
}

TEST_CASE("division of division, mod of mod") {
  IndexExpr m = v(0, 1000);
  CHECK(floordiv(floordiv(m, 3), 5) == floordiv(m, 15));
  CHECK(floordiv(floordiv(m, 3) + 2, 5) == floordiv(m + 6, 15));
  CHECK(floordiv(v(1, 9) + floordiv(m, 3), 5) == floordiv(v(1, 9) * 3 + m, 15));
  CHECK(mod(mod(m, 24), 8) == mod(m, 8));
  CHECK(floordiv(mod(m, 24), 8) == mod(floordiv(m, 8), 3));
  CHECK(mod(m, 1) == IndexExpr(0));
  CHECK(floordiv(m, 1000) == IndexExpr(0));
  CHECK(mod(m, 1000) == m);
}

TEST_CASE("quotient and remainder rejoin") {
  IndexExpr m = v(0, 1000);
  CHECK(floordiv(m, 7) * 7 + mod(m, 7) == m);
  CHECK(floordiv(m + 3, 7) * 14 + mod(m + 3, 7) * 2 == m * 2 + 6);
  CHECK(floordiv(m, 24) * 24 + mod(floordiv(m, 8), 3) * 8 + mod(m, 8) == m);
  CHECK(floordiv(m * 4 + 2, 8) * 8 + mod(m * 4 + 2, 8) == m * 4 + 2);
  IndexExpr vectors = v(1, 9) * 32 + m;
  CHECK(floordiv(floordiv(vectors, 32), 5) * 160 + mod(vectors, 160) == vectors);
  CHECK(mod(m, 8) + mod(floordiv(m, 8), 3) * 8 == mod(m, 24));
  // Every third of rows of 25, which begin with one of them: so many apart throughout.
  IndexExpr third = mod(m, 25) * 3;
  CHECK(floordiv(m, 25) * 75 + floordiv(third, 25) * 25 + mod(third, 25) == m * 3);
}

TEST_CASE("reshape of reshape is the identity") {
  std::vector<int64_t> a = {6, 35, 4}, b = {10, 21, 4}, flat = {840};
  std::vector<IndexExpr> x = {v(0, 6), v(1, 35), v(2, 4)};
  CHECK(reshape_coordinates(a, flat, reshape_coordinates(flat, a, x)) == x);
  std::vector<IndexExpr> y = reshape_coordinates(b, a, x);
  CHECK(y[2] == x[2]);  // an unchanged dimension passes untouched
  CHECK(reshape_coordinates(a, b, y) == x);
  // Cutting and merging where the dims nest needs no division at all.
  std::vector<IndexExpr> merged = reshape_coordinates(std::vector<int64_t>{840}, a, x);
  CHECK(merged[0] == x[0] * 140 + x[1] * 4 + x[2]);
  std::vector<IndexExpr> cut = reshape_coordinates(std::vector<int64_t>{6, 1, 35, 1, 4}, a, x);
  CHECK(cut[2] == x[1]);
  CHECK(cut[1] == IndexExpr(0));
}

// Many sums have digits that could rejoin and do not; looking for them must not take all subsets (a minute).
TEST_CASE("a position of many digits in another order") {
  const std::vector<int64_t> dims = {3, 2, 2, 3, 2, 4, 2, 3, 2, 2, 4, 4, 2, 4};
  const std::vector<size_t> order = {2, 5, 1, 8, 10, 0, 6, 3, 9, 7, 12, 4, 11, 13};
  std::vector<int64_t> turned;
  for (size_t k : order) turned.push_back(dims[k]);
  const IndexExpr position = v(0, 221184) * 4 + 1;
  const std::vector<IndexExpr> at = delinearize(turned, position);
  std::vector<IndexExpr> back(dims.size());
  for (size_t k = 0; k < order.size(); ++k) back[order[k]] = at[k];
  const IndexExpr there = linearize(dims, back);
  CHECK(there.terms().size() > 8);
  CHECK(linearize(turned, delinearize(turned, position)) == position);
  for (int64_t x : {0, 1, 77, 12345, 221183}) {
    const std::vector<int64_t> values = {x};
    int64_t left = 4 * x + 1, sum = 0;
    std::vector<int64_t> digits(dims.size());
    for (size_t k = order.size(); k-- > 0;) {
      digits[order[k]] = left % dims[order[k]];
      left /= dims[order[k]];
    }
    for (size_t k = 0; k < dims.size(); ++k) sum = sum * dims[k] + digits[k];
    CHECK(there.evaluate(values) == sum);
  }
}

TEST_CASE("reshape between different counts is refused, empty arrays are not") {
  std::vector<IndexExpr> x = {v(0, 6)};
  CHECK_THROWS_AS(reshape_coordinates(std::vector<int64_t>{5}, std::vector<int64_t>{6}, x), Error);
  std::vector<IndexExpr> none = {IndexExpr(0), IndexExpr(0)};
  CHECK(reshape_coordinates(std::vector<int64_t>{0}, std::vector<int64_t>{3, 0}, none).size() == 1);
}

TEST_CASE("coefficient, variables, substitution") {
  IndexExpr a = v(0, 10), b = v(3, 10);
  IndexExpr e = a * 3 + floordiv(b, 4) - 2;
  CHECK(e.coefficient(0) == 3);
  CHECK(e.coefficient(1) == 0);
  CHECK(e.coefficient(3) == std::nullopt);
  CHECK(e.variables() == std::vector<int>{0, 3});
  CHECK(e.depends_on(3));
  CHECK_FALSE(e.is_affine());
  CHECK(e.div_mod_atoms().size() == 1);
  CHECK(e.to_string() == "3*v0 + floordiv(v3, 4) - 2");
  CHECK(e.range() == Range{-2, 27});
  CHECK(e.substitute(3, v(4, 3) * 4 + v(5, 4)) == a * 3 + v(4, 3) - 2);
  CHECK(v(7, 1) == IndexExpr(0));
  CHECK(b.sole_variable() == 3);
  for (const IndexExpr& more : {e, b + 1, b * 2, a + b, floordiv(b, 4), IndexExpr(3)})
    CHECK(more.sole_variable() == -1);
}

TEST_CASE("symbolic linear index equals the plain one") {
  for (const Shape& shape : many_layouts()) {
    CAPTURE(shape.to_string());
    std::vector<IndexExpr> coordinates;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      coordinates.push_back(v(static_cast<int>(d), shape.dims[d]));
    }
    IndexExpr e = linear_index(shape, coordinates);
    for_each_index(shape.dims, [&](std::span<const int64_t> i) { REQUIRE(e.evaluate(i) == linear_index(shape, i)); });
    if (!shape.layout.tiled()) CHECK(e.is_affine());
  }
}

// A random expression built twice: simplified, and as a plain evaluation.
struct Twin {
  IndexExpr expr;
  std::function<int64_t(std::span<const int64_t>)> plain;
};

Twin random_twin(std::mt19937& rng, const std::vector<Range>& ranges, int depth) {
  auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  int kind = depth == 0 ? 0 : pick(0, 4);
  if (kind == 0) {
    int id = pick(0, static_cast<int>(ranges.size()) - 1);
    return {IndexExpr::var(id, ranges[id]), [id](auto values) { return values[id]; }};
  }
  Twin a = random_twin(rng, ranges, depth - 1);
  if (kind <= 2) {
    Twin b = random_twin(rng, ranges, depth - 1);
    int64_t c = pick(-12, 12), k = pick(-9, 9);
    return {a.expr * c + b.expr + k, [=](auto values) { return a.plain(values) * c + b.plain(values) + k; }};
  }
  int64_t w = pick(1, 12);
  if (kind == 3) {
    return {floordiv(a.expr, w), [=](auto values) { return floordiv(a.plain(values), w); }};
  }
  return {mod(a.expr, w), [=](auto values) { return mod(a.plain(values), w); }};
}

TEST_CASE("random expressions keep their value, ranges hold") {
  std::mt19937 rng(7);
  for (int round = 0; round < 20000; ++round) {
    std::vector<Range> ranges;
    for (int i = 0; i < 3; ++i) {
      int64_t lo = static_cast<int64_t>(rng() % 5) - 2;
      ranges.push_back({lo, lo + static_cast<int64_t>(rng() % 6)});
    }
    Twin twin = random_twin(rng, ranges, 4);
    CAPTURE(twin.expr.to_string());
    Range r = twin.expr.range();
    for (int64_t a = ranges[0].lo; a <= ranges[0].hi; ++a) {
      for (int64_t b = ranges[1].lo; b <= ranges[1].hi; ++b) {
        for (int64_t c = ranges[2].lo; c <= ranges[2].hi; ++c) {
          int64_t values[] = {a, b, c};
          int64_t value = twin.expr.evaluate(values);
          REQUIRE(value == twin.plain(values));
          REQUIRE(value >= r.lo);
          REQUIRE(value <= r.hi);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hlojit

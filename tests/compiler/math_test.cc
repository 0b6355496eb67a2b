// The functions of compiler/math against libm and MPFR on a strided sample, and their special
// values.
//
// `test_compiler --no-skip -tc='ulp table*'` measures densely and rewrites the generated part of
// compiler/math/README.md. Minutes: HLOJIT_ULP_STRIDE (default 63) is the step over all 2^32
// floats.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "compiler/math/functions.h"
#include "tests/compiler/math_cases.h"

using namespace hlojit;
using namespace hlojit::math::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Same value, and the same sign of zero; NaNs are one class.
template <class T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T, class F>
void check_specials(F f, std::initializer_list<std::pair<float, float>> rows) {
  for (auto [x, y] : rows) {
    CAPTURE(x);
    CHECK(same(f(static_cast<T>(x)), static_cast<T>(y)));
  }
}

#define CHECK_SPECIALS(f, ...)                                                \
  do {                                                                        \
    INFO(#f);                                                                 \
    check_specials<float>([](float x) { return math::f(x); }, __VA_ARGS__);   \
    check_specials<double>([](double x) { return math::f(x); }, __VA_ARGS__); \
  } while (false)

using Rows = std::initializer_list<std::pair<float, float>>;

}  // namespace

TEST_CASE("math: unary functions stay within their ulp") {
  for (const Case1& c : unary_cases()) {
    CAPTURE(c.name);
    Worst f32 = worst_f32(c, 131071), f64 = worst_f64(c, 4000);
    CHECK_MESSAGE(f32.ulp <= c.allowed32, fmt::format("f32 {} ulp at {:a}", f32.ulp, f32.x));
    CHECK_MESSAGE(f64.ulp <= c.allowed64, fmt::format("f64 {} ulp at {:a}", f64.ulp, f64.x));
  }
}

TEST_CASE("math: binary functions stay within their ulp") {
  for (const Case2& c : binary_cases()) {
    CAPTURE(c.name);
    Worst f32 = worst_f32(c, 40000), f64 = worst_f64(c, 4000);
    CHECK_MESSAGE(f32.ulp <= c.allowed32, fmt::format("f32 {} ulp at {:a}, {:a}", f32.ulp, f32.x, f32.y));
    CHECK_MESSAGE(f64.ulp <= c.allowed64, fmt::format("f64 {} ulp at {:a}, {:a}", f64.ulp, f64.x, f64.y));
  }
}

TEST_CASE("math: special values of unary functions") {
  CHECK_SPECIALS(exp, Rows{{0, 1}, {-0.f, 1}, {kInf, kInf}, {-kInf, 0}, {kNan, kNan}, {1e4f, kInf}});
  CHECK_SPECIALS(expm1, Rows{{0, 0}, {-0.f, -0.f}, {kInf, kInf}, {-kInf, -1}, {kNan, kNan}, {-99, -1}});
  CHECK_SPECIALS(
      log,
      Rows{{0, -kInf}, {-0.f, -kInf}, {1, 0}, {-1, kNan}, {kInf, kInf}, {-kInf, kNan}, {kNan, kNan}, {-kNan, kNan}});
  CHECK_SPECIALS(
      log1p,
      Rows{{0, 0}, {-0.f, -0.f}, {-1, -kInf}, {-2, kNan}, {kInf, kInf}, {-kInf, kNan}, {kNan, kNan}, {1e-30f, 1e-30f}});
  CHECK_SPECIALS(logistic, Rows{{0, .5f}, {-0.f, .5f}, {kInf, 1}, {-kInf, 0}, {kNan, kNan}, {1e4f, 1}});
  CHECK_SPECIALS(tanh, Rows{{0, 0}, {-0.f, -0.f}, {kInf, 1}, {-kInf, -1}, {kNan, kNan}});
  CHECK_SPECIALS(erf, Rows{{0, 0}, {-0.f, -0.f}, {kInf, 1}, {-kInf, -1}, {kNan, kNan}, {9, 1}});
  CHECK_SPECIALS(sin, Rows{{0, 0}, {-0.f, -0.f}, {kInf, kNan}, {-kInf, kNan}, {kNan, kNan}});
  CHECK_SPECIALS(cos, Rows{{0, 1}, {-0.f, 1}, {kInf, kNan}, {-kInf, kNan}, {kNan, kNan}});
  CHECK_SPECIALS(tan, Rows{{0, 0}, {-0.f, -0.f}, {kInf, kNan}, {-kInf, kNan}, {kNan, kNan}});
  CHECK_SPECIALS(sqrt, Rows{{0, 0}, {-0.f, -0.f}, {4, 2}, {-1, kNan}, {kInf, kInf}, {kNan, kNan}});
  CHECK_SPECIALS(rsqrt, Rows{{0, kInf}, {-0.f, -kInf}, {4, .5f}, {-1, kNan}, {kInf, 0}, {kNan, kNan}});
  CHECK_SPECIALS(cbrt, Rows{{0, 0}, {-0.f, -0.f}, {-8, -2}, {27, 3}, {kInf, kInf}, {-kInf, -kInf}, {kNan, kNan}});
  CHECK_SPECIALS(asin, Rows{{0, 0}, {-0.f, -0.f}, {1.5f, kNan}, {-kInf, kNan}, {kNan, kNan}});
  CHECK_SPECIALS(acos, Rows{{1, 0}, {1.5f, kNan}, {-1.5f, kNan}, {kInf, kNan}, {kNan, kNan}});
  CHECK_SPECIALS(asinh, Rows{{0, 0}, {-0.f, -0.f}, {kInf, kInf}, {-kInf, -kInf}, {kNan, kNan}});
  CHECK_SPECIALS(acosh, Rows{{1, 0}, {0, kNan}, {-kInf, kNan}, {kInf, kInf}, {kNan, kNan}});
  CHECK_SPECIALS(atanh, Rows{{0, 0}, {-0.f, -0.f}, {1, kInf}, {-1, -kInf}, {2, kNan}, {-kInf, kNan}, {kNan, kNan}});
  CHECK_SPECIALS(sinh, Rows{{0, 0}, {-0.f, -0.f}, {kInf, kInf}, {-kInf, -kInf}, {kNan, kNan}});
  CHECK_SPECIALS(cosh, Rows{{0, 1}, {-0.f, 1}, {kInf, kInf}, {-kInf, kInf}, {kNan, kNan}});
  CHECK_SPECIALS(sign, Rows{{0, 0}, {-0.f, -0.f}, {3, 1}, {-kInf, -1}, {kNan, kNan}});
  CHECK_SPECIALS(round_afz, Rows{{.5f, 1},
                                 {-.5f, -1},
                                 {0.49999997f, 0},
                                 {-0.25f, -0.f},
                                 {8388609, 8388609},
                                 {2.5f, 3},
                                 {kInf, kInf},
                                 {kNan, kNan}});
}

TEST_CASE("math: special values of binary functions equal libm's") {
  const float values[] = {0,    -0.f,  1,    -1,    2,      -2,     3,       -3,    0.5f,    -0.5f, 2.5f,
                          kInf, -kInf, kNan, 1e30f, -1e30f, 1e-40f, -1e-40f, 1e38f, 8388609, 1e-30f};
  for (float x : values) {
    for (float y : values) {
      CAPTURE(x);
      CAPTURE(y);
      auto dx = static_cast<double>(x), dy = static_cast<double>(y);
      CHECK(same(math::remainder(x, y), std::fmod(x, y)));
      CHECK(same(math::remainder(dx, dy), std::fmod(dx, dy)));
      // Where libm is exact, so are we; elsewhere the ulp tests compare.
      for (auto [got, want] :
           {std::pair{math::pow(dx, dy), std::pow(dx, dy)},
            std::pair{static_cast<double>(math::pow(x, y)), static_cast<double>(static_cast<float>(std::pow(dx, dy)))},
            std::pair{math::atan2(dx, dy), std::atan2(dx, dy)}}) {
        bool close = std::fabs(got - want) <= std::fabs(want) * 1.2e-7 + 1.5e-45;
        CHECK((same(got, want) || (close && std::signbit(got) == std::signbit(want))));
      }
      bool nan = std::isnan(x) || std::isnan(y);
      float zero_max = std::signbit(x) && std::signbit(y) ? -0.f : 0.f;
      float zero_min = std::signbit(x) || std::signbit(y) ? -0.f : 0.f;
      CHECK(same(math::maximum(x, y), nan ? kNan : x == 0 && y == 0 ? zero_max : std::fmax(x, y)));
      CHECK(same(math::minimum(x, y), nan ? kNan : x == 0 && y == 0 ? zero_min : std::fmin(x, y)));
    }
  }
}

TEST_CASE("math: every routine of the cold blocks is registered under its name") {
  auto registered = [](const char* name) {
    for (auto& f : math::scalar_functions()) {
      if (std::string_view(f.name) == name) return f.address;
    }
    return static_cast<void*>(nullptr);
  };
  CHECK(registered("hlojit_sinf") == reinterpret_cast<void*>(&hlojit_sinf));
  CHECK(registered("hlojit_fmod") == reinterpret_cast<void*>(&hlojit_fmod));
  CHECK(registered(math::kColdCos<float>.name) != nullptr);
  CHECK(registered(math::kColdTan<double>.name) != nullptr);
  for (const auto& f : math::scalar_functions().first(8)) CHECK(registered((std::string(f.name) + "_lanes").c_str()));
}

TEST_CASE("math: lanes of the cold blocks have the scalar routines' bits") {
  const auto& table = math::scalar_functions();
  auto lanes = [&]<class T>(const std::string& name, T (*scalar)(T)) {
    const auto row = std::ranges::find_if(table, [&](const auto& f) { return f.name == name + "_lanes"; });
    auto* call = reinterpret_cast<void (*)(T*, int64_t)>(row->address);
    const T huge = std::numeric_limits<T>::max(), inf = std::numeric_limits<T>::infinity();
    for (std::vector<T> x :
         {std::vector<T>{2e5, -3e5, 1e9, 0, -7e8, T(1) / 3}, std::vector<T>{1e5, huge, -huge, inf, 5}}) {
      std::vector<T> y = x;
      call(y.data(), std::ssize(y));
      for (size_t k = 0; k < x.size(); ++k) CHECK(same(y[k], scalar(x[k])));
    }
  };
  lanes("hlojit_sinf", &hlojit_sinf);
  lanes("hlojit_cosf", &hlojit_cosf);
  lanes("hlojit_tanf", &hlojit_tanf);
  lanes("hlojit_sin", &hlojit_sin);
  lanes("hlojit_cos", &hlojit_cos);
  lanes("hlojit_tan", &hlojit_tan);
}

TEST_CASE("ulp table of compiler/math/README.md" * doctest::skip()) {
  const char* step = std::getenv("HLOJIT_ULP_STRIDE");
  // Odd, or the low bits of the mantissa would always be zero.
  uint32_t stride = (step ? static_cast<uint32_t>(std::strtoul(step, nullptr, 10)) : 63) | 1;
  constexpr int kPairs = 1 << 25, kDoubles = 1 << 19;
  std::string table = "| function | f32 | worst at | f64 | worst at |\n|---|--:|---|--:|---|\n";
  for (const Case1& c : unary_cases()) {
    Worst a = worst_f32(c, stride), b = worst_f64(c, kDoubles);
    table += fmt::format("| {} | {:.2f} | {:a} | {:.2f} | {:a} |\n", c.name, a.ulp, a.x, b.ulp, b.x);
  }
  for (const Case2& c : binary_cases()) {
    Worst a = worst_f32(c, kPairs), b = worst_f64(c, kDoubles);
    table +=
        fmt::format("| {} | {:.2f} | {:a}, {:a} | {:.2f} | {:a}, {:a} |\n", c.name, a.ulp, a.x, a.y, b.ulp, b.x, b.y);
  }
  table += fmt::format("\nf32 of one argument: {} 2^32 bit patterns; of two: {} pairs; f64: {}, against MPFR.\n",
                       stride == 1 ? "all" : fmt::format("1 in {} of all", stride), kPairs, kDoubles);
  std::string path = HLOJIT_SOURCE_DIR "/compiler/math/README.md", mark = "<!-- generated -->\n";
  std::stringstream old;
  old << std::ifstream(path).rdbuf();
  std::string text = old.str();
  size_t at = text.find(mark);
  REQUIRE(at != std::string::npos);
  std::ofstream(path) << text.substr(0, at) << mark << table;
}

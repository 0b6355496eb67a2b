// A kernel's key: what may change it, and what must not.
#include "codegen/kernel_key.h"

#include <doctest/doctest.h>

#include <bit>

#include "codegen/target.h"
#include "compiler/text/parser.h"

namespace hlojit::codegen {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

const std::string kProgram = R"(
HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
fused {
  p = f32[8,33]{1,0} parameter(0)
  h = f32[] constant(0.5)
  w = f32[8,33]{1,0} broadcast(h), dimensions={}
  x = f32[8,33]{1,0} multiply(p, w)
  z = f32[] constant(0)
  ROOT r = f32[8]{0} reduce(x, z), dimensions={1}, to_apply=sum
}
ENTRY e {
  q = f32[8,33]{1,0} parameter(0)
  ROOT f = f32[8]{0} fusion(q), kind=kInput, calls=fused, backend_config={"hlojit":{"kernel":"rows","stages":["inner reduce %r","outer store %r"]}}
}
)";

const Surroundings kApart = {{{true, false}, {false, true}}, {false}};

std::string key(const std::string& program, const Surroundings& around = kApart, EmitOptions options = {}) {
  options.target = &Target::get("avx2");
  auto module = parse_module(program);
  return kernel_key(*module->entry()->root(), around, option_text(options));
}

TEST_CASE("names, metadata and places change no key") {
  const std::string own = key(kProgram);
  CHECK(own.size() == 64);
  CHECK(key(kProgram) == own);
  CHECK(key(replaced(kProgram, "HloModule m", "HloModule other")) == own);
  std::string renamed = replaced(kProgram, "x = f32[8,33]{1,0} multiply", "add = f32[8,33]{1,0} multiply");
  CHECK(key(replaced(renamed, "reduce(x, z)", "reduce(add, z)")) == own);
  renamed = replaced(kProgram, "ROOT r = f32[8]{0} reduce", "ROOT total.7 = f32[8]{0} reduce");
  renamed = replaced(replaced(renamed, "reduce %r", "reduce %total.7"), "store %r", "store %total.7");
  CHECK(key(renamed) == own);
  CHECK(key(replaced(kProgram, "multiply(p, w)", "multiply(p, w), metadata={op_name=\"x\"}")) == own);
  CHECK(key(replaced(kProgram, "ROOT r = f32[] add(a, b)", "ROOT s = f32[] add(a, b)")) == own);
}

TEST_CASE("whatever code depends on changes the key") {
  const std::string own = key(kProgram);
  for (auto [from, to] : {std::pair("multiply(p, w)", "add(p, w)"),
                          {"multiply(p, w)", "multiply(w, p)"},
                          {"constant(0.5)", "constant(0.25)"},
                          {"constant(0)", "constant(-0)"},
                          {"add(a, b)", "maximum(a, b)"},
                          {"\"rows\"", "\"nest\""},
                          {"reduce %r", "reduce %x"},
                          {"reduce(x, z)", "reduce(p, z)"}}) {
    CHECK_MESSAGE(key(replaced(kProgram, from, to)) != own, to);
  }
  std::string tiled = replaced(kProgram, "q = f32[8,33]{1,0}", "q = f32[8,33]{1,0:T(8,128)}");
  CHECK(key(replaced(tiled, "p = f32[8,33]{1,0}", "p = f32[8,33]{1,0:T(8,128)}")) != own);
  CHECK(key(kProgram, {{{true, true}, {true, true}}, {false}}) != own);
  CHECK(key(kProgram, {kApart.overlap, {true}}) != own);
  CHECK(key(kProgram, kApart, {.strict = true}) != own);
  CHECK(key(kProgram, kApart, {.fast = true}) != own);
  CHECK(key(kProgram, kApart, {.vector_bytes = 4}) != own);
}

// A name that looks like a number of the key's text must not be taken for one.
TEST_CASE("a program cannot spell another's key") {
  std::string one = replaced(kProgram, "%r\",\"outer store %r", "%r\",\"outer store %5");
  CHECK(key(one) != key(kProgram));
}

TEST_CASE("constants are their bits") {
  const std::string nan = replaced(kProgram, "constant(0.5)", "constant(nan)");
  CHECK(key(nan) != key(replaced(kProgram, "constant(0.5)", "constant(-nan)")));
}

}  // namespace
}  // namespace hlojit::codegen

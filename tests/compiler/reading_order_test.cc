// Which operands a fusion goes through in the order of its results, and how much of them it reads and writes.
#include "compiler/analysis/reading_order.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "compiler/text/parser.h"

namespace hlojit {
namespace {

/// Of a fusion with this computation; f32[64,512] p and f32[512] q are its operands if it takes both.
std::vector<Reading> readings_of(const std::string& body, const std::string& result) {
  auto module = parse_module(
      "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
      "fused {\n  p = f32[64,512] parameter(0)\n  q = f32[512] parameter(1)\n"
      "  z = f32[] constant(0)\n" +
      body + "}\nENTRY e {\n  x = f32[64,512] parameter(0)\n  y = f32[512] parameter(1)\n" + "  ROOT f = " + result +
      " fusion(x, y), kind=kLoop, calls=fused\n}\n");
  return readings(*module->entry()->root());
}

TEST_CASE("a kernel shared out by stretches reads what lies in order") {
  auto sum =
      readings_of("  b = f32[64,512] broadcast(q), dimensions={1}\n  ROOT r = f32[64,512] add(p, b)\n", "f32[64,512]");
  CHECK(sum[0].in_order);
  CHECK_FALSE(sum[1].in_order);  // each row reads all of it
  CHECK(sum[0].bytes == 64 * 512 * 4);
  CHECK(sum[1].bytes == 512 * 4);
  CHECK(readings_of("  ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=add\n", "f32[64]")[0].in_order);
  CHECK_FALSE(readings_of("  ROOT r = f32[512] reduce(p, z), dimensions={0}, to_apply=add\n", "f32[512]")[0].in_order);
  CHECK_FALSE(readings_of("  ROOT r = f32[512,64] transpose(p), dimensions={1,0}\n", "f32[512,64]")[0].in_order);
  // The same transpose, where it lies.
  CHECK(readings_of("  ROOT r = f32[512,64]{0,1} transpose(p), dimensions={1,0}\n", "f32[512,64]{0,1}")[0].in_order);
}

TEST_CASE("neighbours of a stencil are in order, and parts are no more than they are") {
  auto stencil = readings_of(
      "  u = f32[62,512] slice(p), slice={[0:62], [0:512]}\n  v = f32[62,512] slice(p), slice={[2:64], [0:512]}\n"
      "  ROOT r = f32[62,512] add(u, v)\n",
      "f32[62,512]");
  CHECK(stencil[0].in_order);
  CHECK(stencil[1].bytes == 0);
  auto column = readings_of("  ROOT r = f32[64,1] slice(p), slice={[0:64], [511:512]}\n", "f32[64,1]");
  CHECK(column[0].in_order);
  CHECK(column[0].bytes == 64 * 64);  // a line each
}

TEST_CASE("places that are known at run time only are anywhere") {
  auto picked = readings_of(
      "  c = s32[512] convert(q)\n  i = s32[512,1] reshape(c)\n"
      "  ROOT r = f32[512,512] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=1, slice_sizes={1,512}\n",
      "f32[512,512]");
  CHECK_FALSE(picked[0].in_order);
  CHECK(picked[1].in_order);
}

TEST_CASE("an update in place writes what it changes") {
  auto module = parse_module(R"(
fused {
  p = f32[64,512] parameter(0)
  q = f32[1,512] parameter(1)
  i = s32[] parameter(2)
  j = s32[] constant(0)
  ROOT u = f32[64,512] dynamic-update-slice(p, q, i, j)
}
ENTRY e {
  x = f32[64,512] parameter(0)
  y = f32[1,512] parameter(1)
  i = s32[] parameter(2)
  ROOT f = f32[64,512] fusion(x, y, i), kind=kLoop, calls=fused
})");
  const Instruction& fusion = *module->entry()->root();
  CHECK(written_elements(fusion, 0) == 512);
  CHECK(readings(fusion)[0].bytes == 512 * 4);
  CHECK_FALSE(readings(fusion)[0].in_order);
}

}  // namespace
}  // namespace hlojit

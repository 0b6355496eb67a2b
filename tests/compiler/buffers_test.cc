// Buffers of planned modules: no two live values overlap, in the benchmark programs and in modules that
// are written to make it hard.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/pipeline.h"
#include "compiler/text/parser.h"
#include "compiler/text/printer.h"
#include "tests/compiler/memory_checker.h"

namespace hlojit::test {
namespace {

std::unique_ptr<Module> planned(std::string_view text, const PipelineOptions& options = {}) {
  auto module = parse_module(text);
  PipelineOptions checked = options;
  checked.verify = true;
  run_pipeline(*module, checked);
  return module;
}

void expect_sound(const Module& module) {
  BufferPlan plan = assign_buffers(module);
  for (bool donated : {false, true}) {
    auto errors = check_memory(module, plan, donated);
    for (const std::string& e : errors) FAIL_CHECK(e);
    if (!errors.empty()) MESSAGE(to_string(module));
  }
}

void expect_sound(std::string_view text) {
  for (bool fused : {true, false}) {
    PipelineOptions options;
    if (!fused) options.disabled = {"fuse"};
    expect_sound(*planned(text, options));
  }
}

int64_t count(const Module& module, Opcode opcode) {
  int64_t n = 0;
  for (const auto& c : module.computations()) {
    for (const auto& i : c->instructions()) n += i->is(opcode);
  }
  return n;
}

int64_t copy_fusions(const Module& module) {
  int64_t n = 0;
  for (const auto& c : module.computations()) n += c->name.starts_with("fused_copy");
  return n;
}

constexpr std::string_view kLess = R"(
less {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(100)
  ROOT c = pred[] compare(i, n), direction=LT
}
)";

TEST_CASE("the benchmark programs") {
  for (const auto& file : std::filesystem::directory_iterator(std::string(HLOJIT_SOURCE_DIR) + "/bench/hlo")) {
    if (file.path().extension() != ".hlo") continue;
    CAPTURE(file.path().string());
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    try {
      expect_sound(text.str());
    } catch (const Error& e) {
      CHECK_MESSAGE(e.kind() == ErrorKind::kUnsupported, e.what());
    }
  }
}

TEST_CASE("the checker sees two values in one place") {
  auto module = planned(R"(
ENTRY e {
  x = f32[64,64] parameter(0)
  a = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[64,64] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[64,64] dot(c, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)");
  BufferPlan plan = assign_buffers(*module);
  CHECK(check_memory(*module, plan, false).empty());
  CHECK(plan.arena_bytes == 2 * 64 * 64 * 4);
  for (auto& [instruction, slices] : plan.slices) {
    for (BufferSlice& s : slices) s.offset = 0;
  }
  CHECK(!check_memory(*module, plan, false).empty());
}

TEST_CASE("what is over before a result begins is its guest") {
  constexpr std::string_view kRoots = R"(
ENTRY e {
  x = f32[64,64] parameter(0)
  a = f32[64,64] cholesky(x), lower=true
  b = f32[64,64] cholesky(a), lower=true
  c = f32[64,64] cholesky(b), lower=true
  ROOT d = f32[64,64] cholesky(c), lower=true
}
)";
  constexpr int64_t kBytes = 64 * 64 * 4;
  auto module = planned(kRoots);
  BufferPlan plan = assign_buffers(*module);
  CHECK(check_memory(*module, plan, false).empty());
  CHECK(plan.arena_bytes == kBytes);  // a and c in turn; b is the guest
  // Donated, the result is x until a has been made.
  auto donated = planned("HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n" + std::string(kRoots));
  plan = assign_buffers(*donated);
  CHECK(check_memory(*donated, plan, true).empty());
  CHECK(plan.arena_bytes == 2 * kBytes);
}

TEST_CASE("scalars take turns with those of their size alone") {
  PipelineOptions options;
  options.disabled = {"fuse"};
  auto module = planned(R"(
HloModule turns
ENTRY e {
  a = s32[] parameter(0)
  b = s32[] negate(a)
  c = pred[] compare(b, a), direction=LT
  d = s16[] convert(c)
  f = s32[] convert(d)
  g = pred[] compare(f, a), direction=GE
  h = s16[] convert(g)
  i = s32[] convert(h)
  ROOT r = s32[] add(i, a)
})",
                        options);
  const BufferPlan plan = assign_buffers(*module);
  int turns = 0;
  for (const auto& a : plan.allocations) {
    for (const auto& b : plan.allocations) {
      if (&a == &b || a.offset != b.offset) continue;
      CHECK(a.size == b.size);
      ++turns;
    }
  }
  CHECK(turns > 0);
  expect_sound(*module);
}

TEST_CASE("a swap costs one temporary") {
  std::string text = std::string(kLess) + R"(
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, b, a)
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  s = (s32[], f32[8], f32[8]) tuple(z, x, y)
  w = (s32[], f32[8], f32[8]) while(s), condition=less, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
)";
  auto module = planned(text);
  expect_sound(*module);
  CHECK(copy_fusions(*module) == 3 + 3);  // the initial state, the swap with its temporary
}

TEST_CASE("loop state that no iteration changes is not copied") {
  std::string text = std::string(kLess) + R"(
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  c = f32[8] multiply(a, b)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, c, b)
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  s = (s32[], f32[8], f32[8]) tuple(z, x, y)
  w = (s32[], f32[8], f32[8]) while(s), condition=less, body=body
  r = f32[8] get-tuple-element(w), index=1
  q = f32[8] get-tuple-element(w), index=2
  ROOT both = (f32[8], f32[8]) tuple(r, q)
}
)";
  auto module = planned(text);
  expect_sound(*module);
  CHECK(copy_fusions(*module) == 3);  // z, x, and y where it leaves as a result
}

TEST_CASE("state handed on shifted, doubled, constant, and read after the loop") {
  expect_sound(std::string(kLess) + R"(
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, a, a)
}
body2 {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[8] reverse(a), dimensions={0}
  d = f32[8] add(v, b)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, d, d)
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  s = (s32[], f32[8], f32[8]) tuple(z, n, n)
  w = (s32[], f32[8], f32[8]) while(s), condition=less, body=body
  w2 = (s32[], f32[8], f32[8]) while(w), condition=less, body=body2
  p = f32[8] get-tuple-element(w2), index=1
  q = f32[8] get-tuple-element(w), index=2
  m = f32[8] multiply(n, q)
  ROOT r = (f32[8], f32[8], f32[8], s32[]) tuple(p, m, n, z)
}
)");
}

TEST_CASE("an update moves only the updated bytes") {
  std::string text = R"(
less {
  s = (s32[], f32[64,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(64)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[64,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[64,8] get-tuple-element(s), index=1
  zero = s32[] constant(0)
  old = f32[1,8] dynamic-slice(a, i, zero), dynamic_slice_sizes={1,8}
  new = f32[1,8] exponential(old)
  b = f32[64,8] dynamic-update-slice(a, new, i, zero)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[64,8]) tuple(j, b)
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[64,8] parameter(0)
  y = f32[64,8] negate(x)
  s = (s32[], f32[64,8]) tuple(z, y)
  w = (s32[], f32[64,8]) while(s), condition=less, body=body
  ROOT r = f32[64,8] get-tuple-element(w), index=1
}
)";
  auto module = planned(text);
  expect_sound(*module);
  CHECK(copy_fusions(*module) == 1);  // the counter's initial value
}

TEST_CASE("an update whose target lives on") {
  expect_sound(R"(
ENTRY e {
  x = f32[64] parameter(0)
  u = f32[4] parameter(1)
  i = s32[] parameter(2)
  y = f32[64] negate(x)
  a = f32[64] dynamic-update-slice(y, u, i)
  b = f32[64] dynamic-update-slice(y, u, i)
  c = f32[64] dynamic-update-slice(a, u, i)
  v = f32[64] reverse(y), dimensions={0}
  d = f32[64] add(b, v)
  ROOT r = (f32[64], f32[64], f32[64]) tuple(d, a, c)
}
)");
}

TEST_CASE("donated parameters") {
  // Updated in place.
  std::string cache = R"(
HloModule m, input_output_alias={ {0}: (0, {}, must-alias) }
ENTRY e {
  k = f32[64] parameter(0)
  u = f32[4] parameter(1)
  i = s32[] parameter(2)
  d = f32[64] dynamic-update-slice(k, u, i)
  n = f32[64] negate(d)
  ROOT r = (f32[64], f32[64]) tuple(d, n)
}
)";
  auto module = planned(cache);
  expect_sound(*module);
  int64_t plain = 0;
  for (const auto& i : module->entry()->instructions()) plain += i->is(Opcode::kCopy);
  CHECK(plain == 1);
  CHECK(copy_fusions(*module) == 0);
  // A reader of the old value that depends on the new one; a reader through another index map.
  expect_sound(R"(
HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
ENTRY e {
  k = f32[64] parameter(0)
  p = f32[64] parameter(1)
  u = f32[4] parameter(2)
  i = s32[] parameter(3)
  d = f32[64] dynamic-update-slice(k, u, i)
  v = f32[64] reverse(k), dimensions={0}
  s = f32[64] add(v, d)
  q = f32[64] reverse(p), dimensions={0}
  ROOT r = (f32[64], f32[64], f32[64]) tuple(d, q, s)
}
)");
  // Swapped, and handed through unchanged.
  expect_sound(R"(
HloModule m, input_output_alias={ {0}: (1, {}), {1}: (0, {}), {2}: (2, {}) }
ENTRY e {
  a = f32[64] parameter(0)
  b = f32[64] parameter(1)
  c = f32[64] parameter(2)
  ROOT r = (f32[64], f32[64], f32[64]) tuple(a, b, c)
}
)");
  // State of a loop that also reads another donated parameter all the time.
  expect_sound(std::string("HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }\n") + std::string(kLess) +
               R"(
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  c = f32[8] multiply(a, b)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, c, b)
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  s = (s32[], f32[8], f32[8]) tuple(z, x, y)
  w = (s32[], f32[8], f32[8]) while(s), condition=less, body=body
  r = f32[8] get-tuple-element(w), index=1
  q = f32[8] reverse(r), dimensions={0}
  ROOT both = (f32[8], f32[8]) tuple(r, q)
}
)");
}

TEST_CASE("nested loops and branches") {
  expect_sound(R"(
inner_less {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(100)
  ROOT c = pred[] compare(i, n), direction=LT
}
inner {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[8] reverse(a), dimensions={0}
  b = f32[8] add(a, v)
  ROOT t = (s32[], f32[8]) tuple(j, b)
}
yes {
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  ROOT t = (f32[8], f32[8]) tuple(b, a)
}
no {
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  ROOT t = (f32[8], f32[8]) tuple(n, n)
}
outer_less {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(100)
  ROOT c = pred[] compare(i, n), direction=LT
}
outer {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  start = (s32[], f32[8]) tuple(zero, a)
  w = (s32[], f32[8]) while(start), condition=inner_less, body=inner
  c = f32[8] get-tuple-element(w), index=1
  odd = pred[] compare(i, one), direction=EQ
  both = (f32[8], f32[8]) tuple(a, c)
  k = (f32[8], f32[8]) conditional(odd, both, b), true_computation=yes, false_computation=no
  d = f32[8] get-tuple-element(k), index=0
  e = f32[8] get-tuple-element(k), index=1
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, d, e)
}
ENTRY m {
  z = s32[] constant(0)
  x = f32[8] parameter(0)
  s = (s32[], f32[8], f32[8]) tuple(z, x, x)
  w = (s32[], f32[8], f32[8]) while(s), condition=outer_less, body=outer
  ROOT r = f32[8] get-tuple-element(w), index=2
}
)");
}

TEST_CASE("results of their own") {
  auto module = planned(R"(
ENTRY e {
  x = f32[8] parameter(0)
  c = f32[32] constant({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32})
  n = f32[8] negate(x)
  t = (f32[8], f32[8]) tuple(n, x)
  empty = () tuple()
  ROOT r = (f32[8], f32[8], (f32[8], f32[8]), f32[32], ()) tuple(n, n, t, c, empty)
}
)");
  expect_sound(*module);
  CHECK(count(*module, Opcode::kFusion) == 5);
}

TEST_CASE("a planned module that was printed is planned the same") {
  for (const char* name : {"lstm", "decode_step", "transformer_block", "branch_index", "adam"}) {
    std::ifstream in(std::string(HLOJIT_SOURCE_DIR) + "/bench/hlo/" + name + ".hlo");
    std::stringstream text;
    text << in.rdbuf();
    std::string once = to_string(*planned(text.str()));
    std::string twice = to_string(*planned(once));
    CHECK(once == twice);
  }
}

TEST_CASE("a long module") {
  std::string text = "ENTRY e {\n  v0 = f32[16] parameter(0)\n  w0 = f32[16] parameter(1)\n";
  int n = 5000;
  for (int k = 1; k <= n; ++k) {
    std::string a = std::to_string(k), b = std::to_string(k - 1);
    text += "  v" + a + " = f32[16] add(v" + b + ", w" + b + ")\n";
    text += "  w" + a + " = f32[16] " + (k % 7 ? "negate(w" + b + ")\n" : "reverse(v" + a + "), dimensions={0}\n");
  }
  text += "  ROOT r = f32[16] multiply(v" + std::to_string(n) + ", w" + std::to_string(n) + ")\n}\n";
  auto module = parse_module(text);
  run_pipeline(*module, {});
  BufferPlan plan = assign_buffers(*module);
  CHECK(plan.arena_bytes < 100 * 64);
}

}  // namespace
}  // namespace hlojit::test

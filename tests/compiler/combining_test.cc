// What reductions combine with, and the traits of the op table against the evaluator: an op that says it
// commutes, associates, is idempotent or starts from a number does.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "compiler/analysis/access.h"
#include "compiler/analysis/movement.h"
#include "compiler/eval/evaluator.h"
#include "compiler/ir/combining.h"
#include "compiler/ir/module.h"
#include "compiler/text/parser.h"

namespace hlojit::test {
namespace {

int64_t applied(Opcode op, int64_t x, int64_t y) {
  std::string text = "e { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] " + std::string(op_name(op)) +
                     "(a, b) }\nENTRY m { p = s32[] parameter(0) q = s32[] parameter(1) ROOT c = s32[] call(p, q), "
                     "to_apply=e }";
  Literal a(Shape::scalar(DType::kS32)), b = a;
  a.set_int(0, x);
  b.set_int(0, y);
  Literal both[] = {a, b};
  return evaluate(*parse_module(text)->entry(), both).as_int(0);
}

}  // namespace

TEST_CASE("the op of a reducer") {
  auto module = parse_module(R"(
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
crossed { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(b, a) }
twice { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, a) }
ordered { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] subtract(a, b) }
more { a = f32[] parameter(0) b = f32[] parameter(1) n = f32[] negate(b) ROOT r = f32[] add(a, n) }
ENTRY e {
  p = f32[] parameter(0)
  a = f32[] call(p, p), to_apply=sum
  b = f32[] call(a, p), to_apply=crossed
  c = f32[] call(b, p), to_apply=twice
  d = f32[] call(c, p), to_apply=ordered
  ROOT f = f32[] call(d, p), to_apply=more
}
)");
  CHECK(combining_op(*module->find("sum")) == Opcode::kAdd);
  CHECK(combining_op(*module->find("crossed")) == Opcode::kMaximum);
  for (const char* name : {"twice", "ordered", "more"}) CHECK(!combining_op(*module->find(name)));
}

TEST_CASE("what changes nothing") {
  CHECK(std::signbit(neutral_number(Opcode::kAdd, DType::kF32)->as_double(0)));
  CHECK(neutral_number(Opcode::kAdd, DType::kS32)->as_int(0) == 0);
  CHECK(neutral_number(Opcode::kMultiply, DType::kBF16)->as_double(0) == 1);
  CHECK(!neutral_number(Opcode::kMaximum, DType::kF32));
}

TEST_CASE("traits of ops that combine") {
  const int64_t numbers[] = {-7, -1, 0, 1, 2, 5, 12};
  int combining = 0;
  for (int k = 0; k < op_count(); ++k) {
    const OpInfo& op = op_info(static_cast<Opcode>(k));
    if (!has_trait(op.opcode, op_trait::kCombines)) continue;
    ++combining;
    CAPTURE(op.name);
    auto f = [&](int64_t x, int64_t y) { return applied(op.opcode, x, y); };
    for (int64_t x : numbers) {
      if (has_trait(op.opcode, op_trait::kIdempotent)) CHECK(f(x, x) == x);
      constexpr uint32_t kFromOther =
          op_trait::kFromOne | op_trait::kFromOnes | op_trait::kFromLeast | op_trait::kFromGreatest;
      if (!has_trait(op.opcode, kFromOther)) CHECK(f(0, x) == x);
      if (has_trait(op.opcode, op_trait::kFromOne)) CHECK(f(1, x) == x);
      if (has_trait(op.opcode, op_trait::kFromOnes)) CHECK(f(-1, x) == x);
      if (has_trait(op.opcode, op_trait::kFromLeast)) CHECK(f(std::numeric_limits<int32_t>::min(), x) == x);
      if (has_trait(op.opcode, op_trait::kFromGreatest)) CHECK(f(std::numeric_limits<int32_t>::max(), x) == x);
      for (int64_t y : numbers) {
        CHECK(f(x, y) == f(y, x));
        CHECK(f(f(x, y), 3) == f(x, f(y, 3)));
      }
    }
  }
  CHECK(combining == 7);
}

TEST_CASE("which data movement has a fixed map") {
  auto module = parse_module(R"(ENTRY e {
  x = f32[4,6] parameter(0)
  i = s32[] parameter(1)
  z = f32[] constant(0)
  transpose = f32[6,4] transpose(x), dimensions={1,0}
  slice = f32[2,3] slice(x), slice={[0:4:2], [1:4]}
  reverse = f32[4,6] reverse(x), dimensions={0}
  pad = f32[5,6] pad(x, z), padding=1_0x0_0
  concatenate = f32[8,6] concatenate(x, x), dimensions={0}
  dynamic = f32[1,6] dynamic-slice(x, i, i), dynamic_slice_sizes={1,6}
  ROOT t = tuple(transpose, slice, reverse, pad, concatenate, dynamic)
}
)");
  const Computation& c = *module->entry();
  for (const char* name : {"transpose", "slice", "reverse"}) CHECK(moves_by_fixed_map(*c.find(name)));
  for (const char* name : {"pad", "concatenate", "dynamic"}) CHECK(!moves_by_fixed_map(*c.find(name)));
}

}  // namespace hlojit::test

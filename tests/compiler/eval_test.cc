// The evaluator's edges: resources, arguments, codecs, and what folding may ask of it. What the ops
// mean is stated in tests/hlo/run.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "compiler/eval/elementwise.h"
#include "compiler/eval/evaluator.h"
#include "compiler/text/parser.h"
#include "tests/compiler/plain_codec.h"

namespace hlojit {
namespace {

ErrorKind kind_of(const std::string& text, const EvalOptions& options = {}) {
  const auto module = parse_module(text);
  try {
    evaluate(*module->entry(), {}, options);
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind{};
}

const Instruction* root(const Module& module) { return module.entry()->root(); }

}  // namespace

TEST_CASE("a value too large to evaluate fails before memory is asked for") {
  CHECK(kind_of("HloModule m\nENTRY e { ROOT i = f32[1000000000,1000000000] iota(), "
                "iota_dimension=0 }") == ErrorKind::kFailed);
  CHECK(kind_of("HloModule m\nENTRY e { ROOT i = f32[9000000000] iota(), iota_dimension=0 }", {.max_bytes = 1 << 20}) ==
        ErrorKind::kFailed);
  CHECK(kind_of("HloModule m\nENTRY e { ROOT i = f32[0,9000000000000000000] iota(), "
                "iota_dimension=0 }") == ErrorKind{});
}

TEST_CASE("an endless loop ends at max_steps") {
  const std::string text = R"(HloModule m
forever { p = s32[] parameter(0) ROOT t = pred[] constant(true) }
same { ROOT p = s32[] parameter(0) }
ENTRY e { z = s32[] constant(0) ROOT w = s32[] while(z), condition=forever, body=same })";
  CHECK(kind_of(text, {.max_steps = 1000}) == ErrorKind::kFailed);
}

TEST_CASE("calls nested deep are an error, not a stack overflow") {
  Module module("m");  // the parser would refuse it
  const Shape shape = Shape::parse("s32[]");
  Computation* callee = nullptr;
  for (int i = 0; i < 20000; ++i) {
    Computation* c = module.add_computation("level");
    Instruction* value = c->add_parameter(0, shape);
    value = c->add(callee ? Opcode::kCall : Opcode::kNegate, shape, {value});
    if (callee) value->called = {callee};
    c->set_root(value);
    callee = c;
  }
  std::vector<Literal> in;
  in.emplace_back(shape);
  try {
    evaluate(*callee, in);
    FAIL("evaluated");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kFailed);
  }
}

TEST_CASE("a reducer whose calls double at each level does not eat the memory") {
  std::string text =
      "HloModule m\nlevel0 { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, "
      "b) }\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = std::to_string(i - 1);
    text += "level" + std::to_string(i) +
            " { a = s32[] parameter(0) b = s32[] parameter(1) x = s32[] call(a, b), to_apply=level" + below +
            " ROOT r = s32[] call(x, b), to_apply=level" + below + " }\n";
  }
  text += R"(ENTRY e { x = s32[2] constant({1, 1}) z = s32[] constant(0)
ROOT r = s32[] reduce(x, z), dimensions={0}, to_apply=level11 })";
  const auto module = parse_module(text);
  // level0 adds b once, each level twice as often.
  CHECK(evaluate(*module->entry(), {}).as_int(0) == 2 * 2048);
}

TEST_CASE("arguments must fit") {
  const auto module = parse_module("HloModule m\nENTRY e { ROOT p = f32[2] parameter(0) }");
  const std::vector<Literal> none, wrong = [] {
    std::vector<Literal> v;
    v.emplace_back(Shape::parse("f32[3]"));
    return v;
  }();
  for (const auto* arguments : {&none, &wrong}) {
    try {
      evaluate(*module->entry(), *arguments);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kInput);
    }
  }
}

TEST_CASE("a result has the root's shape, layout included") {
  const auto module = parse_module(R"(HloModule m
ENTRY e { p = f32[2,3] parameter(0) ROOT r = f32[2,3]{0,1} copy(p) })");
  std::vector<Literal> in;
  in.emplace_back(Shape::parse("f32[2,3]"));
  for (int i = 0; i < 6; ++i) in[0].data<float>()[i] = static_cast<float>(i);
  const Literal out = evaluate(*module->entry(), in);
  CHECK(out.shape() == Shape::parse("f32[2,3]{0,1}"));
  CHECK(out.data<float>()[5] == 5);
}

TEST_CASE("folding: values of single instructions") {
  const auto module = parse_module(R"(HloModule m
ENTRY e { a = s32[2] constant({1, 2}) b = s32[2] constant({10, 20}) ROOT r = s32[2] add(a, b) })");
  const std::vector<Literal> in = {*root(*module)->operand(0)->literal, *root(*module)->operand(1)->literal};
  const auto sum = evaluate_instruction(*root(*module), in);
  REQUIRE(sum);
  CHECK(sum->as_int(0) == 11);
  CHECK(sum->as_int(1) == 22);
}

TEST_CASE("folding: what has no value of its own is left alone") {
  const auto parameter = parse_module("HloModule m\nENTRY e { ROOT p = f32[2] parameter(0) }");
  CHECK_FALSE(evaluate_instruction(*root(*parameter), {}));
  const auto call = parse_module(R"(HloModule m
ENTRY e { c = f32[2] constant({1, 2}) ROOT r = f32[2] custom-call(c), custom_call_target="f" })");
  const std::vector<Literal> in = {*root(*call)->operand(0)->literal};
  CHECK_FALSE(evaluate_instruction(*root(*call), in));
}

TEST_CASE("narrow floats: every code decodes as the plain codec says, and encodes to itself") {
  using eval::decode_narrow;
  using eval::encode_narrow;
  for (DType type : {DType::kF16, DType::kBF16}) {
    for (uint32_t code = 0; code < 0x10000; ++code) {
      const uint16_t bits = static_cast<uint16_t>(code);
      float value;
      decode_narrow(type, 1, &bits, &value);
      const double plain = test::plain_to_double(type, code);
      const bool nan = std::isnan(plain);
      REQUIRE(std::isnan(value) == nan);
      if (nan) continue;
      REQUIRE(std::bit_cast<uint64_t>(static_cast<double>(value)) == std::bit_cast<uint64_t>(plain));
      uint16_t back;
      encode_narrow(type, 1, &value, &back);
      REQUIRE(back == bits);
    }
  }
}

TEST_CASE("narrow floats: rounding agrees with the plain codec on a sample of all f32") {
  for (DType type : {DType::kF16, DType::kBF16}) {
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 8191) {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (std::isnan(value)) continue;
      uint16_t code;
      eval::encode_narrow(type, 1, &value, &code);
      REQUIRE(code == test::plain_from_double(type, value));
    }
  }
}

TEST_CASE("64-bit integers become narrow floats in one rounding") {
  // Half-way between two bf16 values, and one above: only the last bit tells.
  const int64_t values[] = {(int64_t{1} << 62) + (int64_t{1} << 54), (int64_t{1} << 62) + (int64_t{1} << 54) + 1,
                            std::numeric_limits<int64_t>::min()};
  uint16_t codes[3];
  eval::convert(DType::kS64, DType::kBF16, 3, values, codes);
  CHECK(test::plain_to_double(DType::kBF16, codes[0]) == 0x1p62);
  CHECK(test::plain_to_double(DType::kBF16, codes[1]) == 0x1p62 + 0x1p55);
  CHECK(test::plain_to_double(DType::kBF16, codes[2]) == -0x1p63);
}

}  // namespace hlojit

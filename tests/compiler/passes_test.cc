// The passes keep the meaning: a module and its planned form give the same bits on the evaluator.
// (Passes that reorder sums or contract products would need a tolerance; these do not.)
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/eval/evaluator.h"
#include "compiler/pipeline.h"
#include "compiler/text/parser.h"
#include "compiler/text/printer.h"

namespace hlojit::test {
namespace {

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Literal filled(const Shape& shape, uint32_t& seed) {
  Literal literal(shape);
  if (shape.is_tuple()) {
    for (Literal& e : literal.elements()) e = filled(e.shape(), seed);
    return literal;
  }
  for (int64_t k = 0, n = shape.element_count(); k < n; ++k) {
    seed = seed * 1664525 + 1013904223;
    int32_t bits = static_cast<int32_t>(seed >> 16) - 32768;
    if (is_float(shape.type)) {
      literal.set_double(k, bits / 16384.0);
    } else {
      literal.set_int(k, is_pred(shape.type) ? bits & 1 : bits % 9);
    }
  }
  return literal;
}

// To the bit, but for floats whose sums may have been taken apart: the evaluator adds up a reduction in double
// precision.
bool same(const Literal& a, const Literal& b) {
  if (a.shape().is_tuple()) {
    return std::ranges::equal(a.elements(), b.elements(), same);
  }
  if (std::ranges::equal(a.bytes(), b.bytes())) return true;
  if (a.shape().type != DType::kF32) return false;
  for (int64_t k = 0, n = a.shape().element_count(); k < n; ++k) {
    const double x = a.as_double(k), y = b.as_double(k);
    if (!(std::abs(x - y) <= 1e-6 * (1 + std::abs(x)))) return false;
  }
  return true;
}

void expect_same_meaning(std::string_view text, const PipelineOptions& options) {
  auto before = parse_module(text);
  auto after = parse_module(text);
  try {
    run_pipeline(*after, options);
  } catch (const Error& e) {
    CHECK_MESSAGE(e.kind() == ErrorKind::kUnsupported, e.what());
    return;
  }
  std::vector<Literal> arguments;
  uint32_t seed = 1;
  for (const Instruction* p : before->entry()->parameters()) {
    arguments.push_back(filled(p->shape, seed));
  }
  Literal expected = evaluate(*before->entry(), arguments);
  Literal actual = evaluate(*after->entry(), arguments);
  CHECK(same(expected, actual));
}

TEST_CASE("the benchmark programs mean the same after the passes") {
  std::string folder = std::string(HLOJIT_SOURCE_DIR) + "/bench/hlo";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".hlo") continue;
    CAPTURE(file.path().string());
    std::string text = read(file.path());
    if (text.find("f32[2,128,256]") != std::string::npos) continue;  // too slow on the evaluator
    PipelineOptions exact;
    exact.strict = true;
    expect_same_meaning(text, exact);
  }
}

TEST_CASE("each pass can be left out") {
  std::string text = read(std::string(HLOJIT_SOURCE_DIR) + "/bench/hlo/lstm.hlo");
  for (const char* name : {"squeeze", "dce", "fuse"}) {
    CAPTURE(name);
    PipelineOptions options;
    options.disabled = {name};
    options.verify = true;
    expect_same_meaning(text, options);
  }
}

TEST_CASE("long columns of short rows mean the same in parts, and if these leave some") {
  for (const char* rows : {"8192", "8209"}) {
    CAPTURE(rows);
    const std::string n = rows;
    const std::string text = R"(
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }
ENTRY e {
  p = s32[)" + n + R"(,64] parameter(0)
  q = s32[)" + n + R"(] parameter(1)
  x = f32[)" + n + R"(,64] convert(p)
  v = f32[)" + n + R"(] convert(q)
  five = f32[] constant(5)
  s = f32[64] reduce(x, five), dimensions={0}, to_apply=add
  m = f32[64] reduce(x, five), dimensions={0}, to_apply=max
  d = f32[64] dot(v, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  e = f32[64] dot(x, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT r = (f32[64], f32[64], f32[64], f32[64]) tuple(s, m, d, e)
})";
    PipelineOptions options;
    options.only = {"split_contractions", "split_reductions", "dce"};
    options.verify = true;
    expect_same_meaning(text, options);
    auto module = parse_module(text);
    run_pipeline(*module, options);
    const std::string after = to_string(*module);
    CHECK(after.find(",64]{2,1,0} reshape(") != std::string::npos);
    CHECK(after.find("dimensions={0}, to_apply=max") != std::string::npos);
    CHECK(after.find("lhs_batch_dims={0}") != std::string::npos);
  }
}

TEST_CASE("sums of columns are cut by rows from a last level that is far, but for what is read again with them") {
  constexpr std::string_view kText = R"(
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[1024,1024] parameter(0)
  y = f32[1024,1024] parameter(1)
  zero = f32[] constant(0)
  s = f32[1024] reduce(x, zero), dimensions={0}, to_apply=add
  t = f32[1024] reduce(y, zero), dimensions={0}, to_apply=add
  all = f32[1024,1024] broadcast(t), dimensions={1}
  m = f32[1024,1024] subtract(y, all)
  ROOT r = (f32[1024], f32[1024,1024]) tuple(s, m)
})";
  auto after = [&](bool keeps_up) {
    PipelineOptions options;
    options.only = {"split_reductions"};
    options.target.l2_keeps_up = keeps_up;
    auto module = parse_module(kText);
    run_pipeline(*module, options);
    return to_string(*module);
  };
  CHECK(after(false).find("f32[16,64,1024]{2,1,0} reshape(x)") != std::string::npos);
  CHECK(after(false).find("reshape(y)") == std::string::npos);
  CHECK(after(true).find("reshape(") == std::string::npos);
}

TEST_CASE("large constants are one if every element is equal") {
  constexpr int kCount = 40000, kOther = 25;  // between the first two pieces that are hashed
  auto constant = [](const char* name, int value) {
    std::string text = std::string("  ") + name + " = f32[40000] constant({";
    for (int k = 0; k < kCount; ++k) text += k == 0 ? "0" : k == kOther ? "," + std::to_string(value) : ",7";
    return text + "})\n";
  };
  auto module = parse_module("ENTRY e {\n" + constant("a", 1) + constant("b", 1) + constant("c", 2) +
                             "  ROOT r = (f32[40000], f32[40000], f32[40000]) tuple(a, b, c)\n}");
  PipelineOptions options;
  options.only = {"cse", "dce"};
  run_pipeline(*module, options);
  const Instruction& r = *module->entry()->root();
  CHECK(r.operand(0) == r.operand(1));
  CHECK(r.operand(0) != r.operand(2));
}

TEST_CASE("rows that lie across the depth are copied where a second cache does not keep up with panels") {
  constexpr std::string_view kText = R"(ENTRY e {
  a = f32[300,256] parameter(0)
  b = f32[300,300] parameter(1)
  ROOT d = f32[256,300] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
})";
  PipelineOptions options;
  options.target = {.vector_bytes = 64, .vector_registers = 32, .l2_keeps_up = false, .l2_bytes = 512 << 10};
  options.only = {"pack"};
  options.verify = true;
  auto packed = [&](int64_t l2_bytes) {
    options.target.l2_bytes = l2_bytes;
    auto module = parse_module(kText);
    run_pipeline(*module, options);
    return to_string(*module);
  };
  CHECK(packed(512 << 10).find("a.rows = f32[300,256]{0,1} copy(a)") != std::string::npos);
  CHECK(packed(1 << 20).find("a.rows") == std::string::npos);  // it keeps them for all columns
  expect_same_meaning(kText, options);
}

TEST_CASE("images are padded by a copy, and weights packed once, for registers of rows") {
  PipelineOptions options;
  options.target = {.vector_bytes = 64, .vector_registers = 32, .multiplies_tiles = true, .l2_bytes = 2 << 20};
  options.only = {"pack"};
  options.verify = true;
  auto packed = [&](std::string_view images) {
    auto module =
        parse_module("ENTRY e {\n  x = bf16" + std::string(images) +
                     " parameter(0)\n  w = bf16[3,3,64,64] parameter(1)\n  ROOT c = bf16" + std::string(images) +
                     " convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n}\n");
    run_pipeline(*module, options);
    return to_string(*module);
  };
  const std::string lines = packed("[8,28,28,64]");  // two registers of fourteen
  CHECK(lines.contains("bf16[8,30,30,64]{3,2,1,0} pad(x"));
  CHECK(lines.contains("w.panels = bf16[3,3,64,64]{2,1,0,3:T(32,1,1,2)} copy(w)"));
  CHECK_FALSE(packed("[8,28,29,64]").contains("pad(x"));
}

TEST_CASE("scores of attention are never an array, whatever the second cache is") {
  const std::string text = read(std::string(HLOJIT_SOURCE_DIR) + "/bench/hlo/big/attention_full_1k.hlo");
  for (const bool keeps_up : {true, false}) {
    PipelineOptions options;
    options.target = {
        .vector_bytes = 64, .vector_registers = 32, .l2_keeps_up = keeps_up, .l1_bytes = 48 << 10, .l2_bytes = 2 << 20};
    auto module = parse_module(text);
    run_pipeline(*module, options);
    for (const auto& i : module->entry()->instructions()) CHECK(i->shape.element_count() < 8 * 1024 * 1024);
  }
}

TEST_CASE("pass names are checked") {
  auto module = parse_module("ENTRY e { ROOT x = f32[] parameter(0) }");
  PipelineOptions options;
  options.until = "fuze";
  CHECK_THROWS_AS(run_pipeline(*module, options), Error);
  options = {};
  options.disabled = {"fuze"};
  CHECK_THROWS_AS(run_pipeline(*module, options), Error);
  options = {};
  options.only = {"dce", "fuze"};
  CHECK_THROWS_AS(run_pipeline(*module, options), Error);
}

TEST_CASE("calls that multiply are an error, not a full memory") {
  std::string text = "call0 { p = f32[] parameter(0) ROOT n = f32[] negate(p) }\n";
  for (int k = 1; k <= 40; ++k) {
    std::string f = "call" + std::to_string(k), g = "call" + std::to_string(k - 1);
    text += f + " { p = f32[] parameter(0) a = f32[] call(p), to_apply=" + g +
            " ROOT b = f32[] call(a), to_apply=" + g + " }\n";
  }
  text += "ENTRY e { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=call40 }\n";
  auto module = parse_module(text);
  CHECK_THROWS_AS(run_pipeline(*module, {}), Error);
}

TEST_CASE("maps that multiply are an error, not a full memory") {
  std::string text = "HloModule m\nmap0 { p = f32[] parameter(0) ROOT r = f32[] sine(p) }\n";
  for (int k = 1; k <= 40; ++k) {
    const std::string name = std::to_string(k), callee = std::to_string(k - 1);
    text += "map" + name + " { p = f32[] parameter(0) x = f32[] map(p), to_apply=map" + callee +
            " ROOT y = f32[] map(x), to_apply=map" + callee + " }\n";
  }
  text += "ENTRY e { p = f32[8] parameter(0) ROOT r = f32[8] map(p), dimensions={0}, to_apply=map40 }\n";
  auto module = parse_module(text);
  CHECK_THROWS_AS(run_pipeline(*module, {}), Error);
}

TEST_CASE("calls nested in a line cost no more than they leave") {
  constexpr int kLevels = 5000;  // each level copied into the next would be millions
  Module module("m");
  const Shape shape = Shape::parse("f32[]");
  Computation* callee = nullptr;
  for (int k = 0; k < kLevels; ++k) {
    Computation* c = module.add_computation("level");
    Instruction* value = c->add_parameter(0, shape);
    if (callee) {
      value = c->add(Opcode::kCall, shape, {value});
      value->called = {callee};
    }
    c->set_root(c->add(Opcode::kNegate, shape, {value}));
    callee = c;
  }
  module.set_entry(callee);
  PipelineOptions options;
  options.only = {"inline_calls"};
  run_pipeline(module, options);
  CHECK(module.computations().size() == 1);
  CHECK(module.entry()->instructions().size() == kLevels + 1);
}

// x, and n sums on top of each other.
Instruction* sums(Computation& c, Instruction* x, int n) {
  Instruction* sum = x;
  for (int k = 0; k < n; ++k) sum = c.add(Opcode::kAdd, x->shape, {sum, x});
  return sum;
}

TEST_CASE("what a loop computes anew is looked at without recursion") {
  constexpr int kSteps = 100000;
  const Shape counter = Shape::parse("s32[]"), x = Shape::parse("f32[64]"), state = Shape::tuple({counter, x, x});
  Module module("m");
  auto element = [&](Computation* c, int64_t k) {
    Instruction* e = c->add(Opcode::kGetTupleElement, state.elements[static_cast<size_t>(k)], {c->parameters()[0]});
    e->attrs.tuple_index = k;
    return e;
  };
  Computation* condition = module.add_computation("condition");
  condition->add_parameter(0, state);
  condition->set_root(
      condition->add(Opcode::kCompare, Shape::parse("pred[]"), {element(condition, 0), element(condition, 0)}));
  Computation* body = module.add_computation("body");
  body->add_parameter(0, state);
  Instruction *same = element(body, 2), *dear = body->add(Opcode::kSine, x, {sums(*body, same, kSteps)});
  Instruction* next = body->add(Opcode::kAdd, x, {element(body, 1), dear});
  body->set_root(body->add(Opcode::kTuple, state, {element(body, 0), next, same}));
  Computation* entry = module.add_computation("entry");
  Instruction* loop = entry->add(Opcode::kWhile, state, {entry->add_parameter(0, state)});
  loop->called = {condition, body};
  entry->set_root(loop);
  module.set_entry(entry);
  PipelineOptions options;
  options.only = {"hoist"};
  run_pipeline(module, options);
  CHECK(body->instructions().size() < 10);
  CHECK(entry->instructions().size() > kSteps);
}

TEST_CASE("reshapes of reshapes are made narrow without recursion") {
  std::string text = "HloModule m\nENTRY e {\n  x0 = f32[1,2,3] parameter(0)\n";
  constexpr int kMany = 200'000;
  for (int k = 1; k <= kMany; ++k) {
    text += "  x" + std::to_string(k) + " = f32[1," + (k % 2 ? "3,2" : "2,3") + "] reshape(x" + std::to_string(k - 1) +
            ")\n";
  }
  text += "  ROOT r = f32[1,2,3] negate(x" + std::to_string(kMany) + ")\n}\n";
  auto module = parse_module(text);
  PipelineOptions options;
  options.only = {"squeeze"};
  run_pipeline(*module, options);
  CHECK(module->entry()->root()->is(Opcode::kReshape));
}

TEST_CASE("who reads a short sum is looked for without recursion") {
  constexpr int kSteps = 200000;
  Module module("m");
  const Shape scalar = Shape::parse("f32[]");
  Computation* sum = module.add_computation("sum");
  sum->set_root(sum->add(Opcode::kAdd, scalar, {sum->add_parameter(0, scalar), sum->add_parameter(1, scalar)}));
  Computation* entry = module.add_computation("entry");
  Instruction* x =
      entry->add(Opcode::kSine, Shape::parse("f32[8,3]"), {entry->add_parameter(0, Shape::parse("f32[8,3]"))});
  x = entry->add(Opcode::kReduce, Shape::parse("f32[8]"), {x, entry->add_parameter(1, scalar)});
  x->attrs.dimensions = {1};
  x->called = {sum};
  for (int k = 0; k < kSteps; ++k) x = entry->add(Opcode::kReshape, Shape::parse(k % 2 ? "f32[8]" : "f32[2,4]"), {x});
  entry->set_root(x);
  module.set_entry(entry);
  PipelineOptions options;
  options.only = {"expand"};
  run_pipeline(module, options);
  CHECK(entry->instructions().size() > kSteps);
}

}  // namespace
}  // namespace hlojit::test

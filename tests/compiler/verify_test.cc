// The verifier on modules that no text can express, on broken numbers of every kind, and on large
// ones; shape inference where it is called without a declared shape. What text can say is tested by
// tests/errors/.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "compiler/text/parser.h"
#include "compiler/verify/shape_inference.h"
#include "compiler/verify/verifier.h"

namespace {

using namespace hlojit;

const Shape kScalar = Shape::scalar(DType::kF32);
const Shape kVector = Shape::array(DType::kF32, {4});

// A computation with parameters of these shapes.
Computation* computation(Module& module, const char* name, std::vector<Shape> parameters) {
  Computation* c = module.add_computation(name);
  for (size_t i = 0; i < parameters.size(); ++i) {
    c->add_parameter(static_cast<int64_t>(i), parameters[i], "p" + std::to_string(i));
  }
  return c;
}

// x -> negate(x), as the entry.
Instruction* negating_entry(Module& module) {
  Computation* c = computation(module, "main", {kVector});
  Instruction* n = c->add(Opcode::kNegate, kVector, {c->parameters()[0]}, "n");
  c->set_root(n);
  module.set_entry(c);
  return n;
}

std::vector<std::string> rules_broken(const Module& module) {
  std::vector<std::string> rules;
  for (const Diagnostic& d : verify(module)) rules.push_back(d.rule);
  return rules;
}

// Verifies a text with some of its digits changed, many times. Returns how often it could be
// parsed.
int mutate_and_verify(const std::string& text, std::mt19937& random) {
  std::vector<size_t> digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') digits.push_back(i);
  }
  int parsed = 0;
  for (int round = 0; round < 50 && !digits.empty(); ++round) {
    std::string mutated = text;
    for (int k = 0; k < 3; ++k) {
      size_t at = digits[random() % digits.size()];
      mutated[at] = static_cast<char>('0' + random() % 10);
      if (random() % 8 == 0) mutated.insert(at, "-");
      if (random() % 8 == 0) mutated.insert(at, "922337203685477580");
    }
    try {
      verify(*parse_module(mutated));
      ++parsed;
    } catch (const Error&) {
    }
  }
  return parsed;
}

using Rules = std::vector<std::string>;

}  // namespace

TEST_CASE("a module without an entry") {
  Module module("m");
  CHECK(rules_broken(module) == Rules{"entry"});
}

TEST_CASE("a sound module") {
  Module module("m");
  negating_entry(module);
  CHECK(rules_broken(module).empty());
  CHECK_NOTHROW(check(module));
}

TEST_CASE("check throws all findings at once") {
  Module module("m");
  Instruction* n = negating_entry(module);
  n->shape = kScalar;
  Computation* c = module.entry();
  c->set_root(c->add(Opcode::kNot, kScalar, {n}, "m"));
  try {
    check(module);
    FAIL("valid");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInvalid);
    REQUIRE(error.diagnostics().size() == 2);
    CHECK(error.diagnostics()[0].rule == "result-shape");
    CHECK(error.diagnostics()[0].instruction == "n");
    CHECK(error.diagnostics()[0].details == "operand 0 p0: f32[4]");
    CHECK(error.diagnostics()[1].rule == "operand-type");
  }
}

TEST_CASE("roots") {
  Module module("m");
  Instruction* n = negating_entry(module);
  SUBCASE("none") { module.entry()->set_root(nullptr); }
  SUBCASE("of another computation") {
    Computation* other = module.add_computation_before("other", module.entry());
    other->set_root(other->add_constant(Literal(kScalar)));
    module.entry()->set_root(other->root());
  }
  CHECK(n->parent() == module.entry());
  CHECK(rules_broken(module) == Rules{"root"});
}

TEST_CASE("parameter numbers") {
  Module module("m");
  Instruction* n = negating_entry(module);
  SUBCASE("a gap") { module.entry()->add_parameter(2, kVector); }
  SUBCASE("twice") { module.entry()->add(Opcode::kParameter, kVector, {}, "again"); }
  CHECK(n->operand_count() == 1);
  CHECK(rules_broken(module) == Rules{"parameter-numbers"});
}

TEST_CASE("names") {
  Module module("m");
  Instruction* n = negating_entry(module);
  SUBCASE("of instructions") { n->name = "p0"; }
  SUBCASE("of computations") {
    Computation* other = module.add_computation_before("other", module.entry());
    other->set_root(other->add_constant(Literal(kScalar)));
    other->name = "main";
  }
  CHECK(rules_broken(module) == Rules{"name-unique"});
}

TEST_CASE("order of operands") {
  Module module("m");
  Instruction* n = negating_entry(module);
  Computation* c = module.entry();
  SUBCASE("after their user") { n->set_operand(0, c->add(Opcode::kCopy, kVector, {c->parameters()[0]})); }
  SUBCASE("its own operand") { n->set_operand(0, n); }
  SUBCASE("of another computation") {
    Computation* other = computation(module, "other", {kVector});
    other->set_root(other->parameters()[0]);
    n->set_operand(0, other->root());
  }
  SUBCASE("control predecessors too") {
    n->control_predecessors = {c->add(Opcode::kCopy, kVector, {c->parameters()[0]})};
  }
  CHECK(rules_broken(module) == Rules{"operand-order"});
}

TEST_CASE("constants") {
  Module module("m");
  negating_entry(module);
  Instruction* c = module.entry()->add_constant(Literal(kVector));
  CHECK(rules_broken(module).empty());
  SUBCASE("without a value") { c->literal = nullptr; }
  SUBCASE("of another shape") { c->literal = std::make_shared<const Literal>(Literal(kScalar)); }
  CHECK(rules_broken(module) == Rules{"constant-literal"});
}

TEST_CASE("calls") {
  Module module("m");
  Computation* callee = computation(module, "callee", {kVector});
  callee->set_root(callee->parameters()[0]);
  negating_entry(module);
  Computation* main = module.entry();
  Instruction* call = main->add(Opcode::kCall, kVector, {main->parameters()[0]});
  call->called = {callee};
  CHECK(rules_broken(module).empty());
  std::string rule;
  SUBCASE("of the entry") {
    call->called = {main};
    rule = "entry";
  }
  SUBCASE("of what comes later") {
    Computation* later = computation(module, "later", {kVector});
    later->set_root(later->parameters()[0]);
    call->called = {later};
    rule = "call-order";
  }
  SUBCASE("of another module") {
    static Module other("other");
    Computation* foreign = computation(other, "foreign", {kVector});
    foreign->set_root(foreign->parameters()[0]);
    call->called = {foreign};
    rule = "call-order";
  }
  SUBCASE("of nothing") {
    call->called = {nullptr};
    rule = "call-order";
  }
  SUBCASE("of none") {
    call->called = {};
    rule = "called-count";
  }
  SUBCASE("of two") {
    call->called = {callee, callee};
    rule = "called-count";
  }
  CHECK(rules_broken(module) == Rules{rule});
}

TEST_CASE("findings without places keep the order of the walk") {
  Module module("m");
  Instruction* n = negating_entry(module);
  Computation* c = module.entry();
  c->add(Opcode::kNot, kVector, {n}, "a");
  c->add(Opcode::kNot, kVector, {n}, "b");
  std::vector<Diagnostic> found = verify(module);
  REQUIRE(found.size() == 2);
  CHECK(found[0].instruction == "a");
  CHECK(found[1].instruction == "b");
}

TEST_CASE("what passes make is valid") {
  Module module("m");
  Computation* fused = computation(module, "fused", {kVector, kScalar});
  Instruction* x = fused->parameters()[0];
  Instruction* b = fused->add(Opcode::kBroadcast, kVector, {fused->parameters()[1]});
  Instruction* sum = fused->add(Opcode::kAdd, kVector, {x, b});
  Instruction* neg = fused->add(Opcode::kNegate, kVector, {sum});
  fused->set_root(fused->add(Opcode::kTuple, Shape::tuple({kVector, kVector}), {sum, neg}));

  Computation* main = computation(module, "main", {kVector, kScalar});
  module.set_entry(main);
  Instruction* f = main->add(Opcode::kFusion, fused->root()->shape, {main->parameters()[0], main->parameters()[1]});
  f->called = {fused};
  f->attrs.output_to_operand_aliasing = {{{0}, 0, {}, {}}};
  Instruction* g = main->add(Opcode::kGetTupleElement, kVector, {f});
  g->attrs.tuple_index = 1;
  Instruction* square = main->add(Opcode::kBitcast, Shape::array(DType::kF32, {2, 2}), {g});
  Shape columns = square->shape;
  columns.layout.minor_to_major = {0, 1};
  main->set_root(main->add(Opcode::kCopy, columns, {square}));
  CHECK(rules_broken(module).empty());
}

TEST_CASE("inference without a declared shape") {
  Attributes none;
  auto infer = [&](Opcode op, std::vector<Shape> shapes, const Attributes& attrs) {
    std::vector<const Shape*> operands;
    for (const Shape& s : shapes) operands.push_back(&s);
    return infer_shape(op, operands, attrs, {});
  };
  CHECK(infer(Opcode::kAdd, {kVector, kVector}, none) == kVector);
  CHECK(infer(Opcode::kTuple, {}, none) == Shape::tuple({}));
  CHECK(infer(Opcode::kConvert, {kVector}, none).type == DType::kInvalid);
  CHECK(infer(Opcode::kIota, {}, none).type == DType::kInvalid);
  // Layouts stay with a result that is the operand's like.
  Shape tiled = Shape::parse("bf16[16,256]{0,1:T(8,128)(2,1)}");
  CHECK(infer(Opcode::kNegate, {tiled}, none) == tiled);
  Shape packed = Shape::parse("s4[8]{0:E(4)}");
  CHECK(infer(Opcode::kNot, {packed}, none) == packed);
  CHECK(infer(Opcode::kCompare, {packed, packed}, none) == Shape::parse("pred[8]{0}"));
  // Passes ask for slices although text must declare them.
  Attributes slice;
  slice.slice = {{1, 4, 2}};
  CHECK(infer(Opcode::kSlice, {kVector}, slice) == Shape::array(DType::kF32, {2}));
  CHECK_FALSE(shape_may_be_omitted(Opcode::kSlice));
  CHECK(shape_may_be_omitted(Opcode::kDot));
  // The wider operand counts if nothing is declared.
  CHECK(infer(Opcode::kDot, {Shape::parse("bf16[]"), kScalar}, none) == kScalar);
}

TEST_CASE("every op answers to any number of operands of any kind, or refuses") {
  const Shape kinds[] = {
      kScalar,        kVector,        Shape::parse("s32[]"), Shape::parse("pred[2,2]"), Shape::tuple({kScalar}),
      Shape::token(), Shape::opaque()};
  Module module("m");
  Computation* callee = computation(module, "callee", {kScalar, kScalar});
  callee->set_root(callee->parameters()[0]);
  std::vector<Computation*> called = {callee};
  Attributes none;
  int answers = 0;
  for (int op = 0; op < op_count(); ++op) {
    for (size_t count = 0; count <= 6; ++count) {
      for (const Shape& kind : kinds) {
        std::vector<const Shape*> operands(count, &kind);
        for (size_t calls = 0; calls <= 1; ++calls) {
          try {
            infer_shape(static_cast<Opcode>(op), operands, none, std::span(called).first(calls));
            ++answers;
          } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::kInvalid);
            CHECK_FALSE(error.diagnostics()[0].rule.empty());
          }
        }
      }
    }
  }
  CHECK(answers > 0);
}

TEST_CASE("wrong numbers anywhere give findings, never a crash") {
  std::mt19937 random(7);
  int parsed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HLOJIT_SOURCE_DIR "/tests/errors")) {
    std::ifstream in(entry.path());
    std::string text{std::istreambuf_iterator<char>(in), {}};
    for (size_t start = 0; start < text.size();) {
      size_t end = std::min(text.find("// -----", start + 1), text.size());
      parsed += mutate_and_verify(text.substr(start, end - start), random);
      start = end;
    }
  }
  CHECK(parsed > 100);
}

TEST_CASE("time is linear in the size of the module") {
  Module module("m");
  Computation* c = computation(module, "main", {kVector});
  Instruction* x = c->parameters()[0];
  for (int i = 0; i < 100000; ++i) x = c->add(Opcode::kAdd, kVector, {x, c->parameters()[0]});
  c->set_root(x);
  module.set_entry(c);
  auto start = std::chrono::steady_clock::now();
  CHECK(verify(module).empty());
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() < 10);  // quadratic would be minutes; this takes 0.1 s
}

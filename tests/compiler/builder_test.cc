// The builder's forms, with the values that the operation semantics state for them.
#include "compiler/builder.h"

#include <doctest/doctest.h>

#include "compiler/eval/evaluator.h"
#include "compiler/text/parser.h"
#include "compiler/text/printer.h"
#include "compiler/verify/verifier.h"

namespace hlojit {
namespace {

struct Fixture {
  Module module{"m"};
  Builder b{module, "main"};

  Instruction* constant(std::string_view shape, std::string_view text) {
    return b.constant(parse_literal(Shape::parse(shape), text));
  }
  // Value of the instruction; the module is valid and survives printing.
  std::string value(Instruction* root) {
    b.build_entry(root);
    CHECK(verify(module).empty());
    std::string text = to_string(module);
    CHECK(to_string(*parse_module(text)) == text);
    return literal_to_string(evaluate(*b.computation(), {}));
  }
};

std::string rule_of(auto&& build) {
  try {
    build();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInvalid);
    return error.diagnostics()[0].rule;
  }
  return "accepted";
}

// ROWS: 62-64, 67
TEST_CASE_FIXTURE(Fixture, "binary ops broadcast") {
  Instruction* column = constant("s32[2,1]", "{{1},{2}}");
  Instruction* row = constant("s32[1,3]", "{{10,20,30}}");
  CHECK(value(b.binary(Opcode::kAdd, column, row)) == "{ { 11, 21, 31 }, { 12, 22, 32 } }");
  CHECK(value(b.binary(Opcode::kMultiply, row, b.constant(DType::kS32, 2))) == "{ { 20, 40, 60 } }");
  Instruction* vector = constant("s32[4]", "{1,2,3,4}");
  Instruction* pair = constant("s32[1,2]", "{{10,20}}");
  CHECK(value(b.binary(Opcode::kAdd, vector, pair, {0})) == "{ { 11, 21 }, { 12, 22 }, { 13, 23 }, { 14, 24 } }");
  Instruction* cube = b.iota(Shape::parse("s32[4,3,1]"), 1);
  CHECK(b.binary(Opcode::kAdd, pair, cube, {1, 2})->shape.dims == Ints{4, 3, 2});
  CHECK(b.compare(Direction::kLt, vector, b.constant(DType::kS32, 3))->shape.to_string() == "pred[4]{0}");
  CHECK(rule_of([&] { b.binary(Opcode::kAdd, vector, pair); }) == "broadcast-dimensions");
  CHECK(rule_of([&] { b.binary(Opcode::kAdd, vector, cube, {5}); }) == "dimension-range");
  CHECK(rule_of([&] { b.binary(Opcode::kAdd, pair, cube, {2, 1}); }) == "broadcast-dimensions");
  CHECK(rule_of([&] { b.binary(Opcode::kAdd, vector, constant("s32[3]", "{1,2,3}")); }) == "broadcast-size");
}

// ROWS: 106, 107, 109-111, 113
TEST_CASE_FIXTURE(Fixture, "broadcast, collapse, reshape, rev") {
  CHECK(value(b.broadcast(constant("s32[2]", "{1,2}"), {2, 1})) == "{ { { 1, 2 } }, { { 1, 2 } } }");
  CHECK(value(b.broadcast_in_dim(constant("s32[1,2]", "{{1,2}}"), {2, 3}, {1, 0})) == "{ { 1, 1, 1 }, { 2, 2, 2 } }");
  Instruction* v = constant("s32[4,2,3]",
                            "{{{10,11,12},{15,16,17}},{{20,21,22},{25,26,27}},"
                            "{{30,31,32},{35,36,37}},{{40,41,42},{45,46,47}}}");
  CHECK(b.collapse(v, {0, 1, 2})->shape.dims == Ints{24});
  CHECK(value(b.collapse(v, {1, 2})) ==
        "{ { 10, 11, 12, 15, 16, 17 }, { 20, 21, 22, 25, 26, 27 }, { 30, 31, 32, 35, 36, 37 }, "
        "{ 40, 41, 42, 45, 46, 47 } }");
  CHECK(b.collapse(v, {0, 1})->shape.dims == Ints{8, 3});
  CHECK(value(b.reshape(v, {1, 2, 0}, {24})) ==
        "{10, 20, 30, 40, 11, 21, 31, 41, 12, 22, 32, 42, 15, 25, 35, 45, 16, 26, 36, 46, 17, 27, "
        "37, 47}");
  CHECK(value(b.reshape(constant("f32[1,1]", "{{5}}"), {0, 1}, {})) == "5");
  CHECK(value(b.rev(constant("s32[3]", "{1,2,3}"), {0})) == "{3, 2, 1}");
  CHECK(rule_of([&] { b.collapse(v, {0, 2}); }) == "collapse-dimensions");
  CHECK(rule_of([&] { b.reshape(v, {5}); }) == "reshape-count");
}

TEST_CASE_FIXTURE(Fixture, "slices, pads, concatenation") {
  Instruction* x = constant("s32[5]", "{0,1,2,3,4}");
  CHECK(value(b.slice(x, {1}, {5}, {3})) == "{1, 4}");
  CHECK(value(b.slice_in_dim(x, 2, 4, 1, 0)) == "{2, 3}");
  CHECK(value(b.dynamic_slice(x, {b.constant(DType::kS32, 9)}, {2})) == "{3, 4}");
  Instruction* update = constant("s32[2]", "{7,8}");
  CHECK(value(b.dynamic_update_slice(x, update, {b.constant(DType::kS32, 1)})) == "{0, 7, 8, 3, 4}");
  CHECK(value(b.pad(update, b.constant(DType::kS32, 9), {{2, -1, 1}})) == "{9, 9, 7, 9}");
  CHECK(value(b.concat_in_dim({update, x}, 0)) == "{7, 8, 0, 1, 2, 3, 4}");
  CHECK(rule_of([&] { b.slice(x, {1}, {9}); }) != "accepted");
  CHECK(rule_of([&] { b.slice(x, {1, 2}, {3}); }) == "slice-rank");
}

// ROWS: 12
TEST_CASE_FIXTURE(Fixture, "dimension -1 is the last") {
  Instruction* x = b.iota(Shape::parse("s32[2,3]"), -1);
  CHECK(value(x) == "{ { 0, 1, 2 }, { 0, 1, 2 } }");
  CHECK(value(b.slice_in_dim(x, 1, 3, 1, -1)) == "{ { 1, 2 }, { 1, 2 } }");
  CHECK(b.concat_in_dim({x, x}, -2)->shape.dims == Ints{4, 3});
  CHECK(rule_of([&] { b.concat_in_dim({x, x}, -3); }) == "dimension-range");
}

// ROWS: 139, 140, 162
TEST_CASE_FIXTURE(Fixture, "windows, SAME and VALID") {
  Instruction* x = constant("f32[5]", "{10000,1000,100,10,1}");
  Instruction* most = b.constant(DType::kF32, 3e38);
  Computation* min = b.combiner(Opcode::kMinimum, DType::kF32);
  CHECK(value(b.reduce_window({x}, {most}, min, {3}, {2}, Builder::Padding::kValid)) == "{100, 1}");
  CHECK(value(b.reduce_window({x}, {most}, min, {3}, {2}, Builder::Padding::kSame)) == "{1000, 10, 1}");
  Instruction* zero = b.constant(DType::kF32, 0);
  Computation* add = b.combiner(Opcode::kAdd, DType::kF32);
  CHECK(value(b.reduce({x}, {zero}, add, {0})) == "11111");
  Instruction* image = constant("f32[1,1,5]", "{{{1,2,3,4,5}}}");
  Instruction* kernel = constant("f32[1,1,3]", "{{{1,2,3}}}");
  CHECK(value(b.conv(image, kernel, {1}, Builder::Padding::kValid)) == "{ { { 14, 20, 26 } } }");
  CHECK(value(b.conv(image, kernel, {2}, Builder::Padding::kSame)) == "{ { { 8, 20, 14 } } }");
  CHECK(rule_of([&] { b.conv(image, x, {1}, Builder::Padding::kSame); }) == "conv-rank");
}

TEST_CASE_FIXTURE(Fixture, "scans") {
  Builder step(module.add_computation_before("step", b.computation()));
  Instruction* element = step.parameter(Shape::scalar(DType::kF32));
  Instruction* sum = step.binary(Opcode::kAdd, element, step.parameter(Shape::scalar(DType::kF32)));
  Computation* body = step.build(step.tuple({sum, sum}));
  Instruction* x = constant("f32[3]", "{1,2,4}");
  Instruction* zero = b.constant(DType::kF32, 0);
  CHECK(value(b.get_tuple_element(b.scan({x}, {zero}, body, 0), 0)) == "{1, 3, 7}");
  CHECK(value(b.get_tuple_element(b.scan({x}, {zero}, body, 0, true), 0)) == "{7, 6, 4}");
  CHECK(value(b.get_tuple_element(b.scan({x}, {zero}, body, 0), 1)) == "7");
  CHECK(rule_of([&] { b.scan({}, {zero}, body, 0); }) == "scan-carries");
}

TEST_CASE_FIXTURE(Fixture, "dots") {
  Instruction* v = constant("f32[2]", "{1,2}");
  Instruction* m = constant("f32[2,2]", "{{1,2},{3,4}}");
  CHECK(value(b.dot(v, v)) == "5");
  CHECK(value(b.dot(m, v)) == "{5, 11}");
  CHECK(value(b.dot(m, m)) == "{ { 7, 10 }, { 15, 22 } }");
  CHECK(rule_of([&] { b.dot(v, b.constant(DType::kF32, 1)); }) == "dot-rank");
  CHECK(rule_of([&] { b.dot(m, constant("f32[3]", "{1,2,3}")); }) != "accepted");
}

// ROWS: 99
TEST_CASE_FIXTURE(Fixture, "select between tuples, conversions") {
  Instruction* one = b.constant(DType::kF32, 1);
  Instruction* two = b.constant(DType::kF32, 2);
  Instruction* yes = constant("pred[]", "true");
  Instruction* a = b.tuple({one, b.tuple({two})});
  Instruction* c = b.tuple({two, b.tuple({one})});
  CHECK(value(b.select(yes, a, c)) == "(1, (2))");
  CHECK(rule_of([&] { b.select(yes, a, b.tuple({one})); }) == "select-tuple");
  CHECK(value(b.convert(one, DType::kS8)) == "1");
  CHECK(value(b.bitcast_convert(one, DType::kU16)) == "{0, 16256}");
  CHECK(b.bitcast_convert(b.bitcast_convert(one, DType::kU16), DType::kF32)->shape.rank() == 0);
}

// ROWS: 195
TEST_CASE_FIXTURE(Fixture, "control flow") {
  Shape s32 = Shape::scalar(DType::kS32);
  Builder condition(module.add_computation_before("condition", b.computation()));
  condition.build(condition.compare(Direction::kLt, condition.parameter(s32), condition.constant(DType::kS32, 10)));
  Builder body(module.add_computation_before("body", b.computation()));
  body.build(body.binary(Opcode::kAdd, body.parameter(s32), body.constant(DType::kS32, 3)));
  Instruction* zero = b.constant(DType::kS32, 0);
  CHECK(value(b.while_loop(condition.computation(), body.computation(), zero)) == "12");
  CHECK(value(b.call(body.computation(), {zero})) == "3");
  CHECK(value(b.conditional(zero, {body.computation(), body.computation()}, {zero, zero})) == "3");
  Computation* less = [&] {
    Builder inner(module.add_computation_before("less", b.computation()));
    Instruction* x = inner.parameter(s32);
    Instruction* y = inner.parameter(s32);
    return inner.build(inner.compare(Direction::kLt, x, y));
  }();
  CHECK(value(b.sort({constant("s32[3]", "{3,1,2}")}, less, 0, true)) == "{1, 2, 3}");
  b.build_entry(b.cross_replica_sum(constant("f32[2]", "{1,2}")));
  CHECK(verify(module).empty());
  CHECK(rule_of([&] { b.op(Opcode::kCustomCall, {zero}); }) != "accepted");
  CHECK(rule_of([&] { b.op(Opcode::kNegate, Shape::parse("s32[2]"), {zero}); }) == "result-shape");
}

}  // namespace
}  // namespace hlojit

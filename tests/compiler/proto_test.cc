// Binary HLO. The golden pairs of tests/hlo/proto were serialised and printed by XLA from the same
// modules; what the importer cannot get from it (older encodings, damage) is made here, byte by byte.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include <doctest/doctest.h>

#include "compiler/eval/evaluator.h"
#include "compiler/proto/attributes.h"
#include "compiler/proto/proto_parser.h"
#include "compiler/proto/values.h"
#include "compiler/text/attributes.h"
#include "compiler/text/parser.h"
#include "compiler/text/printer.h"
#include "compiler/verify/verifier.h"

namespace hlojit {
namespace {

namespace fs = std::filesystem;

// ---- goldens --------------------------------------------------------------------------------

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Pairs as path without ending.
std::vector<fs::path> goldens() {
  std::vector<fs::path> all;
  for (const auto& f : fs::directory_iterator(HLOJIT_SOURCE_DIR "/tests/hlo/proto")) {
    if (f.path().extension() == ".pb") all.push_back(fs::path(f.path()).replace_extension());
  }
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() >= 10);
  return all;
}

std::string golden_proto(const fs::path& golden) { return read_file(golden.string() + ".pb"); }
std::string golden_text(const fs::path& golden) { return read_file(golden.string() + ".hlo"); }

// The header, then the computations by name: callees may stand in any order before their callers.
std::vector<std::string> blocks(const Module& module) {
  std::string text = to_string(module);
  std::vector<std::string> all;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find("\n\n", at), text.size());
    all.push_back(text.substr(at, end - at));
    while (!all.back().empty() && all.back().back() == '\n') all.back().pop_back();
    at = end + 2;
  }
  std::sort(all.begin() + 1, all.end());
  return all;
}

Literal random_literal(const Shape& shape, std::mt19937& random) {
  if (shape.is_tuple()) {
    std::vector<Literal> elements;
    for (const Shape& s : shape.elements) elements.push_back(random_literal(s, random));
    return Literal::tuple(std::move(elements));
  }
  Literal literal(shape);
  for (int64_t i = 0; shape.is_array() && i < shape.element_count(); ++i) {
    if (is_integral(shape.type) || is_pred(shape.type)) {
      literal.set_int(i, static_cast<int64_t>(random() % (is_pred(shape.type) ? 2 : 4)));
    } else {
      literal.set_double(i, static_cast<double>(random() % 2000) / 1000 - 1);
    }
  }
  return literal;
}

// ROWS: 7
TEST_CASE("a proto gives the module that its text gives") {
  for (const fs::path& golden : goldens()) {
    CAPTURE(golden.string());
    std::string bytes = golden_proto(golden);
    CHECK(is_hlo_proto(bytes));
    CHECK_FALSE(is_hlo_proto(golden_text(golden)));
    std::vector<std::string> got = blocks(*parse_module_proto(bytes));
    std::vector<std::string> want = blocks(*parse_module(golden_text(golden)));
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == want[i]);
  }
}

TEST_CASE("a proto means what its text means") {
  int evaluated = 0;
  for (const fs::path& golden : goldens()) {
    CAPTURE(golden.string());
    auto from_proto = parse_module_proto(golden_proto(golden));
    auto from_text = parse_module(golden_text(golden));
    std::mt19937 random(7);
    std::vector<Literal> inputs;
    for (const Instruction* p : from_text->entry()->parameters()) {
      inputs.push_back(random_literal(p->shape, random));
    }
    check(*from_proto);
    Literal want;
    try {
      want = evaluate(*from_text->entry(), inputs);
    } catch (const Error& error) {  // custom calls, channels
      REQUIRE(error.kind() == ErrorKind::kUnsupported);
      continue;
    }
    CHECK(evaluate(*from_proto->entry(), inputs).identical(want));
    ++evaluated;
  }
  CHECK(evaluated >= 6);
}

TEST_CASE("what a proto gives prints as text that reads back") {
  for (const fs::path& golden : goldens()) {
    CAPTURE(golden.string());
    auto module = parse_module_proto(golden_proto(golden));
    CHECK(to_string(*parse_module(to_string(*module))) == to_string(*module));
  }
}

TEST_CASE("every attribute of the op table has its place in the proto") {
  Module module("m");
  Computation* c = module.add_computation("c");
  for (int op = 0; op < op_count(); ++op) {
    const Instruction* i = c->add(static_cast<Opcode>(op), Shape::token(), {});
    for (std::string_view key : attribute_keys(*i)) {
      CAPTURE(key);
      CHECK(proto::knows_attribute(key));
    }
  }
}

// ---- made by hand ---------------------------------------------------------------------------

// Writes fields; a message is what it has written.
struct Out {
  std::string bytes;
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) bytes += static_cast<char>(v | 0x80);
    bytes += static_cast<char>(v);
  }
  Out& number(uint32_t field, int64_t v) {
    varint(field << 3);
    varint(static_cast<uint64_t>(v));
    return *this;
  }
  Out& text(uint32_t field, std::string_view v) {
    varint(field << 3 | 2);
    varint(v.size());
    bytes += v;
    return *this;
  }
  Out& message(uint32_t field, const Out& m) { return text(field, m.bytes); }
  Out& packed(uint32_t field, const std::vector<int64_t>& list) {
    Out inner;
    for (int64_t v : list) inner.varint(static_cast<uint64_t>(v));
    return text(field, inner.bytes);
  }
  Out& unpacked(uint32_t field, const std::vector<int64_t>& list) {
    for (int64_t v : list) number(field, v);
    return *this;
  }
  Out& real32(uint32_t field, float v) {
    varint(field << 3 | 5);
    bytes.append(reinterpret_cast<const char*>(&v), 4);
    return *this;
  }
};

Out shape_of(DType type, const std::vector<int64_t>& dims) {
  return Out().number(2, static_cast<int64_t>(type)).unpacked(3, dims);
}

Out instruction(std::string_view name, std::string_view opcode, const Out& shape, int64_t id,
                const std::vector<int64_t>& operands = {}) {
  return Out().text(1, name).text(2, opcode).message(3, shape).number(35, id).unpacked(36, operands);
}

// A module of one computation with these instructions, the last being the root.
Out module_of(const std::vector<Out>& instructions, int64_t root) {
  Out c = Out().text(1, "main").number(5, 3).number(6, root);
  for (const Out& i : instructions) c.message(2, i);
  return Out().text(1, "m").text(2, "main").message(3, c).number(6, 3);
}

std::string printed(const Out& module) { return to_string(*parse_module_proto(module.bytes)); }

std::string failure(const std::string& bytes) {
  try {
    parse_module_proto(bytes);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInvalid);
    return error.what();
  }
  return "no error";
}

// A module whose root is a constant.
Out constant_module(const Out& shape, const Out& literal) {
  return module_of({instruction("c", "constant", shape, 1).message(8, literal)}, 1);
}

TEST_CASE("lists are read one by one as well as packed") {
  Out shape = shape_of(DType::kF32, {2, 3});
  Out out = shape_of(DType::kF32, {3, 2});
  Out transpose = instruction("t", "transpose", out, 9, {5}).unpacked(14, {1, 0});
  Out module = module_of({instruction("p", "parameter", shape, 5), transpose}, 9);
  CHECK(printed(module).find("t = f32[3,2]{1,0} transpose(p), dimensions={1,0}") != std::string::npos);

  Out literal = Out().message(1, shape_of(DType::kF32, {3})).real32(8, 1).real32(8, 2.5f).real32(8, -0.0f);
  CHECK(printed(constant_module(shape_of(DType::kF32, {3}), literal)).find("constant({1, 2.5, -0})") !=
        std::string::npos);
}

TEST_CASE("a module is found inside an HloProto and an HloSnapshot") {
  Out module = module_of({instruction("p", "parameter", shape_of(DType::kF32, {}), 0)}, 0);
  Out hlo = Out().message(1, module).text(3, "buffers");
  Out snapshot = Out().message(1, hlo).message(2, Out().message(1, shape_of(DType::kF32, {})));
  for (const Out* m : {&hlo, &snapshot}) {
    CHECK(is_hlo_proto(m->bytes));
    CHECK(printed(*m) == printed(module));
  }
}

TEST_CASE("ids of 64 bits, also where operands leave out the computation's half") {
  int64_t high = int64_t{3} << 32;
  Out shape = shape_of(DType::kF32, {});
  std::vector<Out> full = {instruction("p", "parameter", shape, high),
                           instruction("n", "negate", shape, high + 1, {high})};
  std::vector<Out> half = {instruction("p", "parameter", shape, 0), instruction("n", "negate", shape, 1, {high})};
  CHECK(printed(module_of(full, high + 1)).find("ROOT n = f32[] negate(p)") != std::string::npos);
  CHECK(printed(module_of(half, high + 1)) == printed(module_of(full, high + 1)));
}

TEST_CASE("literals stand in their own layout's order") {
  Out own = shape_of(DType::kS32, {2, 3}).message(5, Out().packed(1, {0, 1}));
  Out literal = Out().message(1, own).packed(4, {1, 4, 2, 5, 3, -6});
  std::string text = printed(constant_module(shape_of(DType::kS32, {2, 3}), literal));
  CHECK(text.find("s32[2,3]{1,0} constant({ { 1, 2, 3 }, { 4, 5, -6 } })") != std::string::npos);
}

TEST_CASE("elements below a byte: packed, or one a byte") {
  Out shape = shape_of(DType::kS4, {5});
  Out packed = Out().message(1, shape).text(21, "\xe1\x83\x07");
  Out single = Out().message(1, shape).text(21, std::string_view("\x01\x0e\x03\xf8\x07", 5));
  for (const Out* literal : {&packed, &single}) {
    CHECK(printed(constant_module(shape, *literal)).find("constant({1, -2, 3, -8, 7})") != std::string::npos);
  }
}

TEST_CASE("names become names of text, twice the same becomes two") {
  Out shape = shape_of(DType::kF32, {});
  Out module = module_of({instruction("a b/1", "parameter", shape, 1), instruction("x", "negate", shape, 2, {1}),
                          instruction("x", "negate", shape, 3, {2})},
                         3);
  auto parsed = parse_module_proto(module.bytes);
  CHECK(parsed->entry()->find("a_b_1") != nullptr);
  std::string text = to_string(*parsed);
  CHECK(to_string(*parse_module(text)) == text);
}

TEST_CASE("what is wrong is said with the instruction's name") {
  Out f32 = shape_of(DType::kF32, {});
  Out p = instruction("p", "parameter", f32, 1);
  auto with = [&](const Out& last) { return failure(module_of({p, last}, 2).bytes); };
  CHECK(with(instruction("x", "negotiate", f32, 2, {1})) == "x: unknown opcode 'negotiate'");
  CHECK(with(instruction("x", "negate", f32, 2, {7})) == "x: instruction 7 is not defined above in this computation");
  CHECK(with(instruction("x", "add", f32, 2, {1})) == "x: add takes 2 operands, not 1");
  CHECK(with(instruction("x", "negate", f32, 1, {1})) == "x: a second instruction has the id 1");
  CHECK(with(instruction("x", "negate", f32, 2, {1}).number(37, 2)) ==
        "x: instruction 2 is not defined above in this computation");
  CHECK(with(instruction("x", "call", f32, 2, {1}).number(38, 9)).find("x: computation 9 is not defined") == 0);
  CHECK(with(instruction("x", "call", f32, 2, {1})) == "x: call needs to_apply=");
  CHECK(with(instruction("x", "compare", f32, 2, {1, 1}).text(63, "LT, type=FLOAT")).find("x: ") == 0);
  CHECK(with(instruction("x", "compare", f32, 2, {1, 1}).text(63, "ABOUT")).find("x: 'ABOUT' is no value") == 0);
  CHECK(with(instruction("x", "parameter", f32, 2).number(9, 5)) == "x: its parameter number leaves a gap");
  CHECK(with(instruction("x", "parameter", f32, 2)).find("a second parameter of its number") != std::string::npos);
  CHECK(with(instruction("x", "constant", f32, 2)) == "x: the constant has no value");
  CHECK(with(instruction("x", "negate", shape_of(DType::kInvalid, {}), 2, {1})).find("x: no element type") == 0);
  CHECK(failure(module_of({p}, 2).bytes).find("instruction 2 is not defined") != std::string::npos);
}

TEST_CASE("sizes that the bytes do not bear out cost no memory") {
  int64_t huge = int64_t{1} << 38;
  for (std::vector<int64_t> dims : {std::vector<int64_t>{huge}, {huge, huge}, {-1}, {5}, {1}}) {
    Out shape = shape_of(DType::kS4, dims);
    CHECK(failure(constant_module(shape, Out().message(1, shape).text(21, "\x01\x02")).bytes).find("c: ") == 0);
  }
  Out f32 = shape_of(DType::kF32, {2});
  CHECK(failure(constant_module(f32, Out().message(1, f32).text(8, "\x01\x02\x03")).bytes).find("c: ") == 0);
  CHECK(failure(constant_module(f32, Out().message(1, shape_of(DType::kF32, {3}))).bytes).find("c: ") == 0);
  for (const Out& shape : {shape_of(DType::kF32, {huge, 0}), shape_of(DType::kToken, {}),
                           shape_of(DType::kPred, std::vector<int64_t>(1000, 1))}) {
    CHECK(failure(constant_module(shape, Out().message(1, shape).packed(2, {1})).bytes).find("c: ") == 0);
  }
  Out tuples = shape_of(DType::kF32, {});
  for (int i = 0; i < 2000; ++i) tuples = Out().number(2, 13).message(4, tuples);
  CHECK(failure(module_of({instruction("p", "parameter", tuples, 1)}, 1).bytes).find("nested too deeply") !=
        std::string::npos);
}

// Reads, prints and verifies; everything but an Error is a failure.
void survive(const std::string& bytes) {
  try {
    auto module = parse_module_proto(bytes);
    to_string(*module);
    check(*module);
  } catch (const Error& error) {
    CHECK(error.kind() != ErrorKind::kFailed);
  }
}

TEST_CASE("damaged protos end in an error or a module") {
  std::mt19937 random(1);
  for (const fs::path& golden : goldens()) {
    CAPTURE(golden.string());
    std::string good = golden_proto(golden);
    size_t step = 1 + good.size() / 600;
    for (size_t at = 0; at < good.size(); at += step) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
      survive(bytes);
      bytes[random() % bytes.size()] = static_cast<char>(random());
      survive(bytes);
      if (at % 4 == 0) survive(good.substr(0, at));
    }
  }
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    survive(bytes);
  }
}

TEST_CASE("text is not taken for a proto") {
  for (std::string_view text : {"", "HloModule m", "\nHloModule m\n", "\n\n\t// a remark\n", "ENTRY e {", "f32[] ",
                                "\r\nHloModule caf\xc3\xa9"}) {
    CHECK_FALSE(is_hlo_proto(text));
  }
  CHECK(is_hlo_proto(std::string_view("\n\1m\x12\4main", 9)));
  CHECK(is_hlo_proto("\x1a\3abc"));
}

}  // namespace
}  // namespace hlojit

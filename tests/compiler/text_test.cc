// HLO text: what is accepted, and that printing and parsing are inverse.
#include "compiler/text/parser.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/text/diagnostics.h"
#include "compiler/text/printer.h"

namespace hlojit {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> hlo_files(std::string_view folder) {
  std::vector<std::filesystem::path> files;
  auto root = std::filesystem::path(HLOJIT_SOURCE_DIR) / folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".hlo") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// The text of a module whose entry holds the given lines behind x = f32[4]{0} parameter(0).
std::string with_lines(const std::string& lines) {
  return "HloModule m\n"
         "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
         "ENTRY main {\n  x = f32[4]{0} parameter(0)\n" +
         lines + "\n}\n";
}

// The named instruction of with_lines(...), printed.
std::string printed(const std::string& lines, std::string_view name = "r") {
  auto module = parse_module(with_lines(lines));
  const Instruction* found = module->entry()->find(name);
  REQUIRE(found);
  std::string text = to_string(*found);
  return text.starts_with("ROOT ") ? text.substr(5) : text;
}

TEST_CASE("files in canonical form print as they are") {
  for (const auto& path : hlo_files("tests/hlo/text")) {
    CAPTURE(path.string());
    std::string text = read_file(path);
    CHECK(to_string(*parse_module(text)) == text);
  }
}

TEST_CASE("what JAX prints reads, and printing it is stable") {
  for (const auto& path : hlo_files("bench/hlo")) {
    CAPTURE(path.string());
    std::string once = to_string(*parse_module(read_file(path)));
    auto module = parse_module(once);
    CHECK(to_string(*module) == once);
    // With operand shapes it is the same module.
    CHECK(to_string(*parse_module(to_string(*module, {.operand_shapes = true}))) == once);
    CHECK(to_string(*module->clone()) == once);
  }
}

// ROWS: 1, 3
TEST_CASE("names, comments, spaces") {
  auto same = [](std::string_view text) { return to_string(*parse_module(text)); };
  std::string plain =
      "HloModule m\n\nENTRY e (p: f32[2]{0}) -> f32[2]{0} {\n  p = f32[2]{0} parameter(0)\n"
      "  ROOT n = f32[2]{0} negate(p)\n}\n";
  CHECK(same(plain) == plain);
  CHECK(same("HloModule m ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }") == plain);
  CHECK(same("HloModule %m\nENTRY %e {\n%p=f32[2]{0} parameter(0)\nn = negate(%p)}") == plain);
  CHECK(same("// one\nHloModule m /* two\n */ ENTRY e { /*index=5*/ p = f32[ 2 ]{ 0 } parameter(0)\r\n"
             "\tROOT n = f32[2]{0} negate(f32[2]{0} %p) } // end") == plain);
  CHECK(same("HloModule m\n%e (p: f32[2]) -> f32[2] { p = f32[2] parameter(0) n = negate(p) }") == plain);
  // Names need not say what they name.
  CHECK_NOTHROW(same("HloModule m ENTRY add { add = f32[] parameter(0) ROOT tuple.1 = negate(add) }"));
  // Reserved words are names with % only, or before a colon.
  CHECK(printed("%inf = f32[4] negate(x)\n r = add(%inf, x)") == "r = f32[4]{0} add(%inf, x)");
  CHECK_NOTHROW(same("ENTRY e (token: f32[]) -> f32[] { %token = f32[] parameter(0) }"));
}

// ROWS: 1, 5
TEST_CASE("modules without a header, single instructions") {
  CHECK(parse_module("ENTRY e { ROOT c = f32[] constant(1) }")->name == "module_e");
  CHECK(parse_module("f { ROOT c = f32[] constant(1) } g { ROOT c = f32[] constant(2) }")->entry()->name == "g");
  CHECK(parse_module("%f () -> f32[] { ROOT c = f32[] constant(1) }")->entry()->name == "f");
  auto single = parse_module("r = f32[2] add(f32[2] %a, f32[2]{0} b), metadata={op_name=\"x\"}");
  CHECK(single->entry()->parameters().size() == 2);
  CHECK(to_string(*single->entry()->root()) == "ROOT r = f32[2]{0} add(a, b), metadata={op_name=\"x\"}");
  auto bare = parse_module("f32[2] add(f32[2] a, f32[2] a)");
  CHECK(bare->entry()->parameters().size() == 1);
  auto unnamed = parse_module("(f32[2], f32[2]) tuple(f32[2], f32[2])");
  CHECK(unnamed->entry()->parameters().size() == 2);
}

TEST_CASE("stack tables are skipped") {
  auto module = parse_module(
      "HloModule m, is_scheduled=true\n\nFileNames\n1 \"a.py\"\n2 \"b.py\"\nFunctionNames\n1 "
      "\"f\"\n"
      "FileLocations\n1 {file_name_id=1 line=1}\nStackFrames\n1 {file_location_id=1}\n\n"
      "ENTRY e { ROOT c = f32[] constant(1), metadata={stack_frame_id=1} }");
  CHECK(module->config.is_scheduled);
}

// ROWS: 3, 6
TEST_CASE("nested operands and inline bodies") {
  CHECK(printed("r = f32[4] add(f32[4] negate(x), abs(f32[4] x))") == "r = f32[4]{0} add(negate, abs)");
  // A generated name makes way for one in the text.
  auto module = parse_module(with_lines("q = negate(abs(x))\n abs = f32[4] sign(x)\n r = add(abs, q)"));
  CHECK(module->entry()->find("abs")->is(Opcode::kSign));
  CHECK(to_string(*parse_module(to_string(*module))) == to_string(*module));
  auto inlined =
      parse_module(with_lines("z = f32[] constant(0)\n"
                              "r = f32[] reduce(x, z), dimensions={0}, to_apply={ a = f32[] "
                              "parameter(0) b = f32[] parameter(1)"
                              " ROOT m = maximum(a, b) }"));
  CHECK(inlined->entry()->find("r")->to_apply()->root()->is(Opcode::kMaximum));
  CHECK(inlined->entry()->name == "main");
  CHECK(to_string(*parse_module(to_string(*inlined))) == to_string(*inlined));
}

TEST_CASE("operands that are elements of tuples") {
  auto short_form = parse_module(
      "ENTRY e { t = (f32[4], (s32[], f32[4])) parameter(0)\n ROOT r = f32[4] add(f32[4] %t#1#1, %t#1#1) }");
  const Instruction* r = short_form->entry()->root();
  CHECK(r->operand(0) == r->operand(1));
  CHECK(r->operand(0)->attrs.tuple_index == 1);
  CHECK(r->operand(0)->operand(0)->attrs.tuple_index == 1);
  CHECK(short_form->entry()->instructions().size() == 4);
  CHECK(to_string(*parse_module(to_string(*short_form))) == to_string(*short_form));
}

TEST_CASE("attributes in other spellings") {
  auto from = [](const std::string& attributes) { return printed("z = f32[] constant(0)\n r = " + attributes); };
  CHECK(from("f32[2] slice(x), slice={[0:4:2]}") == "r = f32[2]{0} slice(x), slice={[0:4:2]}");
  CHECK(from("f32[2] slice(x), slice={[ 0 : 2 : 1 ]}") == "r = f32[2]{0} slice(x), slice={[0:2]}");
  CHECK(from("f32[2] reduce-window(x, z), to_apply=%add, window={ pad=0_0 stride=2 size=2 }") ==
        "r = f32[2]{0} reduce-window(x, z), window={size=2 stride=2}, to_apply=add");
  CHECK(from("pred[4] compare(x, x), type=FLOAT, direction=EQ") == "r = pred[4]{0} compare(x, x), direction=EQ");
  CHECK(from("f32[4] rng(z, z), distribution=RNG_Uniform") == "r = f32[4]{0} rng(z, z), distribution=rng_uniform");
  CHECK(from("f32[] dot(x, x), rhs_contracting_dims={0}, lhs_contracting_dims={0}, "
             "operand_precision={HIGHEST, default}") ==
        "r = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}, "
        "operand_precision={highest,default}");
  CHECK(from("f32[4] custom-call(x), to_apply=add, custom_call_target=\"\\x41\\102\"") ==
        "r = f32[4]{0} custom-call(x), custom_call_target=\"AB\", called_computations={add}");
  CHECK(from("f32[4] negate(x), frontend_attributes = {\n composite.name=\"a.b\"}") ==
        "r = f32[4]{0} negate(x), frontend_attributes={\n composite.name=\"a.b\"}");
  CHECK(from("f32[8] broadcast(z)") == "r = f32[8]{0} broadcast(z), dimensions={}");
  CHECK(from("f32[4] all-reduce(x), replica_groups=[2, 2] <= [ 4 ], to_apply=add") ==
        "r = f32[4]{0} all-reduce(x), replica_groups=[2,2]<=[4], to_apply=add");
}

// ROWS: 2
TEST_CASE("result shapes that are left out are inferred") {
  CHECK(printed("r = negate(x)") == "r = f32[4]{0} negate(x)");
  CHECK(printed("t = (f32[4], f32[4]) tuple(x, x)\n r = get-tuple-element(t), index=1") ==
        "r = f32[4]{0} get-tuple-element(t), index=1");
  CHECK(printed("z = f32[] constant(0)\n r = reduce(x, z), dimensions={0}, to_apply=add") ==
        "r = f32[] reduce(x, z), dimensions={0}, to_apply=add");
}

TEST_CASE("locations are those of names") {
  auto module = parse_module(with_lines("\n  r = add(x,\n   negate(x))\n  s = abs(r)"));
  Location r = module->entry()->find("r")->location;
  CHECK(r.line == 6);
  CHECK(r.column == 3);
  CHECK(module->entry()->find("s")->location.line == 8);
}

TEST_CASE("wide and long modules in linear time") {
  std::string lines;
  for (int i = 0; i < 20000; ++i) {
    std::string n = std::to_string(i);
    lines += "  y" + n + " = f32[4]{0} add(" + (i ? "y" + std::to_string(i - 1) : "x") + ", x)\n";
  }
  lines += "  r = tuple(";
  for (int i = 0; i < 20000; ++i) lines += (i ? ", y" : "y") + std::to_string(i);
  lines += ")";
  std::string text = with_lines(lines);
  auto start = std::chrono::steady_clock::now();
  auto module = parse_module(text);
  std::string out = to_string(*module);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(module->entry()->find("r")->operand_count() == 20000);
  CHECK(to_string(*parse_module(out)) == out);
  MESSAGE((text.size() / 1000) << " kB parsed and printed in " << (seconds.count() * 1e3) << " ms");
  CHECK(seconds.count() < 20);  // quadratic would be minutes; the rest is for sanitizers
}

TEST_CASE("a diagnostic shows the line, the place and the rule") {
  std::string source = "HloModule m\nENTRY e {\n\tr = f32[2] negatte(x)\n}";
  try {
    parse_module(source);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "3:13: unknown opcode 'negatte'");
    CHECK(render(error.diagnostics()[0], source) ==
          "   r = f32[2] negatte(x)\n"
          "              ^\n"
          "  rule: unknown-opcode\n"
          "  did you mean 'negate'?\n");
  }
  Diagnostic far{.location = {1, 500}, .instruction = {}, .rule = {}, .message = "m", .details = {}};
  std::string shown = render(far, std::string(1000, 'x'));
  size_t line = shown.find('\n');
  CHECK(line < 120);
  CHECK(shown.find('^') - line - 1 < line);
  CHECK(render({.location = {9, 1}, .instruction = {}, .rule = {}, .message = "m", .details = "a\nb"}, "x") ==
        "  a\n  b\n");
}

TEST_CASE("forms that XLA takes beside its own printing") {
  auto module = parse_module(
      "HloModule odd:, is_scheduled=true\n"
      "ENTRY e (f32[2] p, q f32[2]) -> f32[2] {\n"
      "  p = f32[2] parameter(0)  q = f32[2] parameter(1)\n"
      "  ROOT r = f32[2] add(p,, q,)\n}\n");
  CHECK(module->name == "odd");
  CHECK(module->config.is_scheduled);
  CHECK(module->entry()->root()->operand_count() == 2);
  // A bare scalar is an array's first element.
  CHECK(printed("ROOT r = f32[2,2] constant(3)") == "r = f32[2,2]{1,0} constant({ { 3, 0 }, { 0, 0 } })");
  CHECK(printed("ROOT r = s32[2] constant({1, 2,})") == "r = s32[2]{0} constant({1, 2})");
  CHECK(printed("ROOT r = s32[2,2] constant({{1 2} {3,, 4}})") == "r = s32[2,2]{1,0} constant({ { 1, 2 }, { 3, 4 } })");
  CHECK(printed("ROOT r = u64[] constant(-1)") == "r = u64[] constant(18446744073709551615)");
  CHECK(printed("i = f32[1,4,1] reshape(x)\n k = f32[1,1,1] constant(1)\n"
                "ROOT r = f32[1,4,1] convolution(i, k), window={size=1}, "
                "dim_labels=b0f?_0io?->b0f??, conv_kind=wgrad") ==
        "r = f32[1,4,1]{2,1,0} convolution(i, k), window={size=1}, dim_labels=b0f_0io->b0f, "
        "convolution_kind=wgrad");
  CHECK(printed("ROOT r = f32[4] custom-call(x), dim_labels=?b0f_0?io->bf?0, custom_call_target=\"f\"") ==
        "r = f32[4]{0} custom-call(x), custom_call_target=\"f\", dim_labels=?b0f_0?io->bf?0");
  CHECK(printed("i = f32 [2,2] reshape(x)\n ROOT r = f32[2,2] convolution(i, i), window={}, dim_labels=bf_io->bf") ==
        "r = f32[2,2]{1,0} convolution(i, i), dim_labels=bf_io->bf");
}

TEST_CASE("device groups over mesh axes are read as lists") {
  auto groups = [](const std::string& mesh) {
    std::string text = printed("ROOT r = f32[4] all-reduce(x), replica_groups=" + mesh + ", to_apply=add");
    size_t at = text.find("replica_groups=") + 15;
    return text.substr(at, text.find("}}", at) + 2 - at);
  };
  CHECK(groups("mesh['a'=2,'b'=4] {'b'}") == "{{0,1,2,3},{4,5,6,7}}");
  CHECK(groups("mesh['a'=2,'b'=4] {'a'}") == "{{0,4},{1,5},{2,6},{3,7}}");
  CHECK(groups("mesh['a'=2,'b'=2] {'b','a'}") == "{{0,2,1,3}}");
  CHECK(groups("mesh['a'=2,'b'=4] {'b':(1)2}") == "{{0,2},{1,3},{4,6},{5,7}}");
  CHECK(groups("mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}") == "{{0,1},{2,3},{4,5},{6,7}}");
}

}  // namespace
}  // namespace hlojit

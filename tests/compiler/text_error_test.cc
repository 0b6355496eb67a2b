// Wrong HLO text: each mistake gives one located error; no bytes at all crash.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "compiler/text/parser.h"
#include "compiler/text/printer.h"
#include "compiler/verify/verifier.h"

namespace hlojit {
namespace {

// "LINE:COLUMN: message [rule]" of the error, or "accepted".
std::string error_of(std::string_view text) {
  try {
    parse_module(text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInvalid);
    return std::string(error.what()) + " [" + error.diagnostics()[0].rule + "]";
  }
  return "accepted";
}

// The same for lines of an entry computation, the first of which is line 1.
std::string error_in(const std::string& lines) {
  return error_of(
      "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = add(a, b) } "
      "ENTRY e { x = f32[4] parameter(0) p = pred[] parameter(1)\n" +
      lines + "\n}");
}

TEST_CASE("errors of instructions") {
  struct Row {
    const char *lines, *error;
  };
  const Row rows[] = {
      {"r = f32[4] negatte(x)", "2:12: unknown opcode 'negatte' [unknown-opcode]"},
      {"r = f32[4] foo-start(x)", "2:12: unknown opcode 'foo-start' [unknown-opcode]"},
      {"r = f32[4] add(x, y)", "2:19: 'y' is not defined above [undefined-name]"},
      {"r = f32[4] add(x, r)", "2:19: 'r' is not defined above [undefined-name]"},
      {"r = f32[4] add(x)", "2:12: add takes 2 operands, not 1 [operand-count]"},
      {"r = f32[4] negate(x, x)", "2:12: negate takes 1 operand, not 2 [operand-count]"},
      {"r = f32[4] negate-start(x, x)", "2:12: negate-start takes 1 operand, not 2 [operand-count]"},
      {"r = f32[4] negate-done()", "2:12: negate-done takes 1 operand, not 0 [operand-count]"},
      {"r = f32[4] negate(f32[5] x)",
       "2:19: the shape given for operand 'x' is not that of its definition [operand-shape]"},
      {"t = (f32[4]) tuple(x)\n r = f32[4] negate(t#1)", "3:22: t is (f32[4]), which has no element 1 [tuple-index]"},
      {"r = f32[4] negate(x#0)", "2:21: x is f32[4], which has no element 0 [tuple-index]"},
      {"x = f32[4] negate(x)", "2:1: a second instruction of the name 'x' [duplicate-name]"},
      {"r= f32[4] negate(x)", "2:2: a space is needed between an instruction's name and '=' [syntax]"},
      {"inf = f32[4] negate(x)", "2:1: 'inf' is a reserved word; as a name write %inf [reserved-word]"},
      {"s1 = f32[4] negate(x)", "2:1: 's1' is a reserved word; as a name write %s1 [reserved-word]"},
      {"r = convert(x)", "2:5: convert needs its result shape written out [result-shape]"},
      {"r = constant(1)", "2:5: constant needs its result shape written out [result-shape]"},
      {"r = f32[4] negate(x), foo=1", "2:23: unknown attribute 'foo' of negate [unknown-attribute]"},
      {"k = f32[2,2] convolution(x, x), window={size=2 pad=1}, dim_labels=bf0_io0->bf0",
       "2:53: expected '_' and the high padding, found '}' [syntax]"},
      {"k = f32[2,2] convolution(x, x), window={size=2}, dim_labels=bf0",
       "3:1: expected '_' and the kernel's labels, as in b01f_01io->b01f, found '}' [syntax]"},
      {"k = f32[2,2] convolution(x, x), window={size=2}, dim_labels=bf0_io0",
       "3:1: expected '->' and the result's labels, as in b01f_01io->b01f, found '}' [syntax]"},
      {"k = f32[2,2] convolution(x, x), window={size=2}, dim_labels=b_i->b",
       "2:61: dim_labels need at least two dimensions [dim-labels]"},
      {"k = f32[2,2] convolution(x, x), window={size=2}, dim_labels=bf0_io01->bf0",
       "2:61: dim_labels part 'io01' has another rank than the first part [dim-labels]"},
      {"r = f32[4] batch-norm-training(x, x, x), epsilon=1e999, feature_index=0",
       "2:50: number out of range [number-range]"},
      {"r = f32[4] custom-call(x), custom_call_target=\"a\\xg\"",
       "2:50: \\x needs a hexadecimal digit [string-escape]"},
      {"r = f32[4] custom-call(x), custom_call_target=\"a\\q\"", "2:49: unknown escape in a string [string-escape]"},
      {"r = f32[4] custom-call(x), custom_call_target=abc", "2:47: expected a quoted string, found 'abc' [syntax]"},
      {"r = f4e2m1fn[] constant(nan)", "2:25: f4e2m1fn has no NaN [literal-range]"},
      {"r = f8e4m3fn[] constant(nan(0x1))", "2:28: NaNs of f8e4m3fn have no payload [literal-range]"},
      {"r = f32[] constant(nan(x))", "2:24: expected a payload such as 0x7 [syntax]"},
      {"r = s32[] constant(1.5)", "2:20: a value of type s32 is an integer [literal-type]"},
      {"r = f32[4]{0:D(X)} negate(x)", "2:16: expected a dimension level (D, C, S or H) [shape-syntax]"},
      {"r = f32[4] negate(x), metadata={}, metadata={}",
       "2:36: attribute 'metadata' is given twice [duplicate-attribute]"},
      {"r = f32[4] iota()", "2:18: iota needs iota_dimension= [missing-attribute]"},
      {"r = s32[] conditional(p, x, x), branch_computations={add}",
       "2:53: a conditional on a pred takes true_computation= and false_computation= "
       "[conditional-branches]"},
      {"r = s32[] conditional(x, x), true_computation=add",
       "2:47: a conditional on an index takes branch_computations= [conditional-branches]"},
      {"r = s32[] conditional(p, x, x), true_computation=add",
       "2:31: conditional needs true_computation= and false_computation=, or branch_computations= "
       "[missing-attribute]"},
      {"r = f32[4] call(x), to_apply=later", "2:30: computation 'later' is not defined above [undefined-name]"},
      {"r = pred[4] compare(x, x), direction=eq", "2:38: 'eq' is no value of direction [attribute-value]"},
      {"r = f32[2] slice(x), slice={[0:]}", "2:32: expected a slice limit, found ']' [syntax]"},
      {"r = f32[2] broadcast(x), dimensions={99999999999999999999}",
       "2:38: integer 99999999999999999999 does not fit 64 bits, as an integer [integer-range]"},
      {"q = f32[4] all-gather(x), dimensions={0}, replica_groups=mesh['a'=2] {'b'}",
       "2:71: the mesh has no axis 'b' [replica-groups]"},
      {"q = f32[4] all-gather(x), dimensions={0}, replica_groups=mesh['a'=6] {'a':(4)2}",
       "2:71: axis 'a' has no such part [replica-groups]"},
      {"q = f32[4] all-gather(x), dimensions={0}, replica_groups=mesh['a'=4] {'a','a':(2)2}",
       "2:75: axis 'a' is named twice [replica-groups]"},
      {"q = f32[4] all-gather(x), dimensions={0}, replica_groups=mesh['a'=4], device_ids=([3]) "
       "{'a'}",
       "2:83: device_ids do not number the 4 devices of the mesh [replica-groups]"},
      {"q = f32[4] all-gather(x), dimensions={0}, replica_groups=mesh['a'=0] {'a'}",
       "2:67: a mesh of no devices, or of more than 65536 [replica-groups]"},
      {"r = f32[4] convolution(x, x), dim_labels=b0f_0io->b0g",
       "2:42: dim_labels part 'b0g' is not made of b, f and the digits 0 to 0, each once "
       "[dim-labels]"},
      {"r = f32[4] reduce-window(x, x), window={stride=2}, to_apply=add",
       "2:40: a window needs size= [missing-attribute]"},
      {"r = f32[4] reduce-window(x, x), window={size=2x2 stride=2}, to_apply=add",
       "2:40: window stride has 1 entries, size has 2 [window-rank]"},
      {"r = f32[4] reduce-window(x, x), window={size=2 size=2}, to_apply=add",
       "2:48: window gives size twice [duplicate-attribute]"},
      {"r = f32[4] custom-call(x), custom_call_target=\"a", "2:47: string without an end [syntax]"},
      {"r = f32[4] negate(x), metadata={{", "2:32: '{' without its '}' [syntax]"},
      {"r = f32[4] negate(x) /* ", "2:22: comment without an end [syntax]"},
      {"r = f32[4] negate(x),", "3:1: expected the name of an attribute, found '}' [syntax]"},
      {"r = f32[4] negate(x) ROOT", "3:1: expected an instruction or '}', found '}' [syntax]"},
      {"ROOT r = f32[4] negate(x) ROOT s = f32[4] negate(x)", "2:27: a second ROOT instruction [root]"},
      {"q = f32[4] parameter(3)",
       "2:1: parameter number 3 leaves a gap: 'e' has 3 of them "
       "[parameter-number]"},
      {"q = f32[4] parameter(1)", "2:1: a second parameter of number 1 [parameter-number]"},
      {"q = f32[4] parameter(-1)", "2:22: a parameter's number is not negative [parameter-number]"},
      {"q = f32[4] negate(x), result_accuracy={mode=highest}",
       "2:23: unknown attribute 'result_accuracy' of negate [unknown-attribute]"},
      {"q = f32[4] tanh(x), result_accuracy={mode=best}", "2:43: 'best' is no value of mode [attribute-value]"},
      {"q = f32[4] tanh(x), result_accuracy={exact=1}",
       "2:38: 'exact' is no accuracy: mode= and tolerance= are [result-accuracy]"},
      {"q = f32[4] tanh(x), result_accuracy={tolerance={ulps=-1}}",
       "2:54: a tolerance is not negative [result-accuracy]"},
      {"q = f32[4] custom-call(x), custom_call_target=\"f\", api_version=API_VERSION_UNSPECIFIED",
       "2:64: 'API_VERSION_UNSPECIFIED' is no value of api_version [attribute-value]"},
      {"q = f32[4] parameter(9223372036854775807)",
       "2:1: parameter number 9223372036854775807 leaves a gap: 'e' has 3 of them "
       "[parameter-number]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.lines);
    CHECK(error_in(row.lines) == row.error);
  }
}

TEST_CASE("errors of literals") {
  struct Row {
    const char *constant, *error;
  };
  const Row rows[] = {
      {"s8[] constant(300)", "1:28: 300 is out of the range of s8 [literal-range]"},
      {"s8[] constant(-129)", "1:28: -129 is out of the range of s8 [literal-range]"},
      {"u8[] constant(-1)", "1:28: -1 is out of the range of u8 [literal-range]"},
      {"u64[] constant(18446744073709551616)", "1:29: 18446744073709551616 is out of the range of u64 [literal-range]"},
      {"s32[] constant(1.0)", "1:29: a value of type s32 is an integer [literal-type]"},
      {"f16[] constant(70000)", "1:29: 70000 is out of the range of f16 [literal-range]"},
      {"f32[] constant(1e39)", "1:29: 1e39 is out of the range of f32 [literal-range]"},
      {"f64[] constant(1e309)", "1:29: 1e309 is out of the range of f64 [literal-range]"},
      {"f8e4m3fn[] constant(500)", "1:34: 500 is out of the range of f8e4m3fn [literal-range]"},
      {"f4e2m1fn[] constant(8)", "1:34: 8 is out of the range of f4e2m1fn [literal-range]"},
      {"f8e8m0fnu[] constant(-1)", "1:35: -1 is out of the range of f8e8m0fnu [literal-range]"},
      {"f32[] constant(nan(0x0))", "1:33: a NaN payload of f32 is from 1 to its mantissa mask [literal-range]"},
      {"f16[] constant(nan(0x400))", "1:33: a NaN payload of f16 is from 1 to its mantissa mask [literal-range]"},
      {"f32[] constant()", "1:29: expected a number, as f32, found ')' [syntax]"},
      {"c64[2] constant((1,2))", "1:30: expected '{' before the values of dimension 0, found '(' [syntax]"},
      {"f32[0] constant(1)", "1:30: expected '{' before the values of dimension 0, found '1' [syntax]"},
      {"f32[99999,99999] constant(1)", "1:40: too few values for a constant of shape f32[99999,99999] [literal-count]"},
      {"f32[2] constant({1})", "1:32: dimension 0 has only 1 values [literal-count]"},
      {"f32[2] constant({1,2,3})", "1:35: dimension 0 has more than 2 values [literal-count]"},
      {"f32[2] constant({1 2 3})", "1:35: dimension 0 has more than 2 values [literal-count]"},
      {"f32[2] constant({1; 2})", "1:32: expected a number, as f32, found ';' [syntax]"},
      {"f32[2] constant({1 2;})", "1:34: expected '}' after the values of dimension 0, found ';' [syntax]"},
      {"f32[2,2] constant({{1,2}})", "1:38: dimension 0 has only 1 values [literal-count]"},
      {"f32[0] constant({1})", "1:31: dimension 0 has more than 0 values [literal-count]"},
      {"f32[3] constant({...})",
       "1:30: the values of this constant were elided ({...}) when it was printed "
       "[literal-elided]"},
      {"f32[1000000000000] constant({1})",
       "1:42: too few values for a constant of shape f32[1000000000000] [literal-count]"},
      {"token[] constant(1)", "1:31: no literal can have the shape token[] [literal-type]"},
      {"(f32[], f32[]) constant((1))", "1:40: expected ',' between a tuple's elements, found ')' [syntax]"},
      {"pred[] constant(yes)", "1:30: expected true or false, found 'yes' [syntax]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.constant);
    CHECK(error_of("ENTRY e {c = " + std::string(row.constant) + " }") == row.error);
  }
}

TEST_CASE("errors of modules") {
  CHECK(error_of("") == "1:1: a module needs at least one computation [entry]");
  CHECK(error_of("HloModule m") == "1:12: a module needs at least one computation [entry]");
  CHECK(error_of("HloModule m, foo=1\nENTRY e { c = f32[] constant(1) }") ==
        "1:14: unknown attribute 'foo' of a module [unknown-attribute]");
  CHECK(error_of("HloModule m, is_scheduled=true, is_scheduled=true") ==
        "1:33: attribute 'is_scheduled' is given twice [duplicate-attribute]");
  CHECK(error_of("HloModule m, replica_count=0") == "1:28: the number of devices is at least 1 [device-count]");
  CHECK(error_of("ENTRY e { }") == "1:11: computation 'e' has no instruction [root]");
  CHECK(error_of("ENTRY e { c = f32[] constant(1)") ==
        "1:32: expected '}' after a computation's instructions, found the end of the text [syntax]");
  CHECK(error_of("ENTRY e { c = f32[] constant(1) } ENTRY f { c = f32[] constant(1) }") ==
        "1:35: a second ENTRY computation [entry]");
  CHECK(error_of("ENTRY e { c = f32[] constant(1) } e { c = f32[] constant(1) }") ==
        "1:35: a second computation of the name 'e' [duplicate-name]");
  CHECK(error_of("ENTRY e () -> f32[2] { c = f32[] constant(1) }") ==
        "1:15: the result declared for 'e' is not that of its root [signature-result]");
  CHECK(error_of("e { c = call(), to_apply=e }") == "1:26: computation 'e' is not defined above [undefined-name]");
  CHECK(error_of("f32[2] add(f32[2] a, f32[2] b) trailing") ==
        "1:32: expected the end of the text after a single instruction, found 'trailing' [syntax]");
}

TEST_CASE("an unknown attribute lists those allowed") {
  try {
    parse_module("ENTRY e { p = f32[2,2] parameter(0) r = transpose(p), dimension={1,0} }");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.diagnostics()[0].details.starts_with("allowed: dimensions, parameter_replication"));
  }
}

std::string repeat(std::string_view text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

TEST_CASE("deep nesting is an error") {
  const int n = 100000;
  CHECK(error_of("ENTRY e { p = f32[] parameter(0) r = " + repeat("negate(", n) + "p" + repeat(")", n) + " }")
            .ends_with("nested too deeply [nesting]"));
  CHECK(error_of("ENTRY e { p = f32[] parameter(0) r = " + repeat("f32[] call(p), to_apply={ p = f32[] "
                                                                  "parameter(0) r = ",
                                                                  n))
            .ends_with("nested too deeply [nesting]"));
  CHECK(error_of("ENTRY e { p = " + repeat("(", n)) != "accepted");
  CHECK(error_of("ENTRY e { p = f32[] parameter(0), sharding=" + repeat("{", n)) != "accepted");
  // Calls are dissolved, so that a chain of them is only long; loops in loops stay.
  std::string calls = "c { p = f32[] parameter(0) ROOT t = pred[] constant(true) }\ncall0 { p = f32[] parameter(0) }\n";
  std::string loops = calls;
  for (int i = 1; i < 1000; ++i) {
    std::string name = "call" + std::to_string(i), callee = "call" + std::to_string(i - 1);
    calls += name + " { p = f32[] parameter(0) r = f32[] call(p), to_apply=" + callee + " }\n";
    loops += name + " { p = f32[] parameter(0) r = f32[] while(p), condition=c, body=" + callee + " }\n";
  }
  CHECK(error_of(calls + "ENTRY e { p = f32[] parameter(0) r = f32[] call(p), to_apply=call999 }") == "accepted");
  CHECK(error_of(loops).ends_with("calls are nested too deeply [nesting]"));
  std::string dims = repeat("1,", 999) + "1";
  CHECK(error_of("ENTRY e { p = f32[" + dims + "] constant(" + repeat("{", 1000)) != "accepted");
}

TEST_CASE("mutated text is parsed or refused, and what is parsed prints stably") {
  std::vector<std::string> corpus;
  for (std::string_view folder : {"tests/hlo/text", "bench/hlo"}) {
    auto root = std::filesystem::path(HLOJIT_SOURCE_DIR) / folder;
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      if (entry.path().extension() != ".hlo" || entry.file_size() > 30000) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      std::stringstream text;
      text << file.rdbuf();
      corpus.push_back(text.str());
    }
  }
  std::ranges::sort(corpus);
  REQUIRE(!corpus.empty());
  std::mt19937_64 random(7);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = corpus[below(corpus.size())];
    for (size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      size_t at = below(text.size());
      switch (below(6)) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text[at] = "{}()[],=%\"-<>*/0123456789:x_ \n"[below(31)]; break;
        case 2: text.erase(at, 1 + below(8)); break;
        case 3: text.insert(at, text.substr(below(text.size()), 1 + below(30))); break;
        case 4: text.resize(at); break;
        default: text.insert(at, std::to_string(random() >> below(64)));
      }
    }
    try {
      auto module = parse_module(text);
      ++accepted;
      verify(*module);  // whatever it finds, it does not crash either
      std::string once = to_string(*module);
      // Generated names aside, what was accepted is printed in a form that is accepted.
      CHECK(to_string(*parse_module(once)) == once);
    } catch (const Error& error) {
      CHECK(!std::string_view(error.what()).empty());
    }
  }
  MESSAGE(accepted << " of 6000 mutants accepted");
}

}  // namespace
}  // namespace hlojit

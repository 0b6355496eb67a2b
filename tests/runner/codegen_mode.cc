// `codegen`: what the innermost loops of the emitted code consist of. `--isa` names a CPU: what one of them does better
// with other code is the same on any machine.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "compiler/text/parser.h"
#include "tests/compiled.h"
#include "tests/runner/inner_loops.h"
#include "tests/runner/test_file.h"

namespace hlojit::test {
namespace {

struct Expectations {
  CompiledOptions options;
  int vector_bytes = 0;
  bool gathers = false;
};

Expectations expectations_of(const TestFile& file) {
  Expectations e;
  e.options.isa = "znver3";
  for (const std::string& option : file.options) {
    const size_t equals = option.find('=');
    const std::string name = option.substr(0, equals);
    const std::string value = equals == option.npos ? "" : option.substr(equals + 1);
    if (name == "--isa")
      e.options.isa = value;
    else if (name == "--vector-bytes")
      e.vector_bytes = std::stoi(value);
    else if (name == "--smaller")
      e.options.smaller = std::stoi(value);
    else if (name == "--gathers")
      e.gathers = true;
    else
      throw std::runtime_error(file.path + ": unknown option " + option);
  }
  return e;
}

// A loop that is entered for every element may add and shift, not divide: digits make every address affine.
bool divides(std::string_view line) {
  constexpr std::array<std::string_view, 4> kWords = {" udiv ", " urem ", " sdiv ", " srem "};
  return std::ranges::any_of(kWords, [&](std::string_view w) { return line.contains(w); });
}

// Lanes filled or read one at a time. The splat's insert into lane 0 of nothing is none of that.
bool moves_single_lanes(std::string_view line) {
  if (line.contains(" insertelement ")) {
    return !line.contains(" poison, ") || !line.contains("i64 0");
  }
  return line.contains(" extractelement ") || line.contains("@llvm.masked.gather") ||
         line.contains("@llvm.masked.scatter");
}

}  // namespace

void check_codegen(const TestFile& file, const Section& section, Failures& failures) {
#ifdef HLOJIT_TEST_COMPILED
  const Expectations wanted = expectations_of(file);
  const std::string ir = emit_llvm(*parse_module(section.text), wanted.options, wanted.vector_bytes);
  std::string printed;
  for (const InnerLoop& loop : inner_loops(ir)) {
    const std::string where = "loop %" + loop.label + " of @" + loop.function;
    printed += where + "\n";
    for (const std::string& line : loop.lines) {
      printed += line + "\n";
      if (divides(line)) {
        failures.push_back(at(file, section.first_line) + where + " divides:" + line);
      } else if (!wanted.gathers && moves_single_lanes(line)) {
        failures.push_back(at(file, section.first_line) + where + " moves single lanes:" + line);
      }
    }
  }
  match_claims(file, section, printed, failures);
#endif
}

}  // namespace hlojit::test
